import { realpathSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { POSTGRES, SQLITE } from './engine.js';
import type { Dialect, Query } from './engine.js';
import { compilerOf } from './kysely.js';
import { metaTable, MIGRATIONS } from './migrations.js';
import { compileStatements } from './statements.js';
import type { Statements } from './statements.js';

/**
 * Writes generated/ledger.ts: the SQL of every query and migration, and for each query a function that puts its values where its
 * placeholders are. So the program neither loads the query builder nor compiles anything when it starts.
 */

export const LEDGER_SQL_FILE = new URL('../../../generated/ledger.ts', import.meta.url);

/** What generated/ledger.ts holds for a dialect. */
export type LedgerSql = {
  /** Creates the table of the schema's version, unless it is there. */
  readonly metaTable: string;
  /** The steps of every schema version, in order. */
  readonly migrations: readonly (readonly string[])[];
  readonly statements: Statements;
};

/** The text of generated/ledger.ts. */
export function renderLedgerSql(): string {
  return [
    '// Made of src/ledger/statements.ts and migrations.ts by `make generate`: change those.',
    "import type { LedgerSql } from '../src/ledger/generate.js';",
    '',
    "export const LEDGER_SQL: { readonly [name in 'sqlite' | 'postgres']: LedgerSql } = {",
    ...[SQLITE, POSTGRES].flatMap(renderDialect),
    '};',
    '',
  ].join('\n');
}

function renderDialect(dialect: Dialect): string[] {
  const db = compilerOf(dialect);
  const steps = MIGRATIONS.map(migration => migration(db, dialect).map(step => plainText(step.compile())));
  return [
    `  ${dialect.name}: {`,
    `    metaTable: ${quoted(plainText(metaTable(db).compile()))},`,
    '    migrations: [',
    ...steps.flatMap(texts => ['      [', ...texts.map(text => `        ${quoted(text)},`), '      ],']),
    '    ],',
    '    statements: {',
    ...Object.entries(compileStatements(db, dialect)).map(([name, statement]) =>
      renderStatement(name, statement as (values: object) => Query),
    ),
    '    },',
    '  },',
  ];
}

/** @throws Error where a migration has parameters: what creates tables takes none */
function plainText({ sql, parameters }: Pick<Query, 'sql' | 'parameters'>): string {
  if (parameters.length > 0) throw new Error(`A migration has parameters: ${sql}`);
  return sql;
}

/** Stands for a value while a query is compiled. */
class Slot {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

const SLOTS = new Proxy({}, { get: (_target, name) => new Slot(String(name)) });

function renderStatement(name: string, statement: (values: object) => Query): string {
  const { sql, parameters, single } = statement(SLOTS);
  const values = parameters.map(value => (value instanceof Slot ? `p.${value.name}` : JSON.stringify(value)));
  const taken = parameters.some(value => value instanceof Slot) ? 'p' : '()';
  return [
    `      ${name}: ${taken} => ({`,
    `        sql: ${quoted(sql)},`,
    `        parameters: [${values.join(', ')}],`,
    `        single: ${single},`,
    '      }),',
  ].join('\n');
}

/** In single quotes, since SQL is full of the others. */
function quoted(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

function main(): void {
  const text = renderLedgerSql();
  if (!process.argv.includes('--check')) return writeFileSync(LEDGER_SQL_FILE, text);
  if (readFileSync(LEDGER_SQL_FILE, 'utf8') === text) return;
  process.stderr.write('generated/ledger.ts is stale: run `make generate`.\n');
  process.exitCode = 1;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main();
