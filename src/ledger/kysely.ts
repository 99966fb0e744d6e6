import type * as KyselyPackage from 'kysely';
import { createRequire } from 'node:module';

/**
 * The query builder, loaded as CommonJS: as an `import` its 262 modules took 45 ms more of every start, and 6 MB.
 */
export const {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} = createRequire(import.meta.url)('kysely') as typeof KyselyPackage;

export type Kysely<Tables> = KyselyPackage.Kysely<Tables>;
