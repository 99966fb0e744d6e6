import type * as KyselyPackage from 'kysely';
import { createRequire } from 'node:module';
import type { Dialect } from './engine.js';
import type { Tables } from './schema.js';

/**
 * The query builder, loaded as CommonJS: as an `import` its 262 modules took 45 ms more of every start, and 6 MB.
 */
const {
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

export { sql };

export type Kysely<Tables> = KyselyPackage.Kysely<Tables>;

/** A query builder that compiles for the engine's dialect and is never connected itself. */
export function compilerOf(dialect: Dialect): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect:
      dialect.name === 'sqlite'
        ? {
            createAdapter: () => new SqliteAdapter(),
            createDriver: () => new DummyDriver(),
            createIntrospector: db => new SqliteIntrospector(db),
            createQueryCompiler: () => new SqliteQueryCompiler(),
          }
        : {
            createAdapter: () => new PostgresAdapter(),
            createDriver: () => new DummyDriver(),
            createIntrospector: db => new PostgresIntrospector(db),
            createQueryCompiler: () => new PostgresQueryCompiler(),
          },
  });
}
