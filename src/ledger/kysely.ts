import type * as KyselyPackage from 'kysely';
import { createRequire } from 'node:module';
import type { Dialect, Query } from './engine.js';
import type { Tables } from './schema.js';

/**
 * The query builder, for what runs before the program does (`generate.ts`) and for copies of ledgers. As CommonJS: an `import` would
 * read its 262 modules twice.
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

/**
 * A typed query. The program runs what `generate.ts` made of it, for which `build` is given placeholders where it expects
 * values, so it must not look at them. `single`: it returns one row at most.
 */
export function statement<Values extends object, Row>(
  build: (values: Values) => KyselyPackage.Compilable<Row>,
  { single = false } = {},
): (values: Values) => Query<Row> {
  return values => {
    const { sql, parameters } = build(values).compile();
    return { sql, parameters, single };
  };
}
