import type { Now } from './clock.js';
import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { Dialect, TransactionBody } from './engine.js';
import { opening } from './engines/open-engine.js';
import { LedgerFault } from './fault.js';
import { bytesOf, idBytes } from './ids.js';
import { MIGRATION_LOCK } from './migrate.js';
import { answerFacts } from './queries/answers.js';
import { findToChange } from './queries/claims.js';
import { findOrderToChange, setDone } from './queries/orders.js';
import { serversUsing } from './queries/server-presence.js';
import { allStores, columnExists, findStore, recordStore, type StoreRow } from './queries/stores.js';
import { raw, sql } from './sql.js';
import type { Value } from './sql.js';

/** SQL for both engines; `{bytes}` stands for the column type of raw bytes. `ifColumn`: a `table.column` without which the step is skipped. */
export type StoreStep = string | { ifColumn: string; sql: string };

/** The tables that an operation keeps in the ledger's database, so that one transaction can change both. */
export type StoreDefinition = {
  /** The names of all its tables begin with this and `_`. */
  name: string;
  /**
   * The tables with the columns of their primary keys, ordered so that foreign keys are valid when tables are
   * copied in this order. A column `payment` must hold the id of a payment (`paymentKey`), and a column
   * `text` must hold text that people wrote, which the operator can delete.
   */
  tables: Readonly<Record<string, readonly string[]>>;
  /** The steps to each version, in order. Never edit them once released. */
  migrations: readonly (readonly StoreStep[])[];
  /**
   * The earliest version whose servers can use the tables as they are now. These servers may run while a newer one migrates the tables.
   * Without it, the tables are migrated only while no server of an earlier version uses them.
   */
  oldestBeside?: number;
};

/** An open store. An operation may run more than once, so it must have no side effects besides its queries. */
export type OperationStore = {
  /** The time at which a statement runs, in ms since 1970, as SQL. */
  now: Now;
  read<T>(operation: () => TransactionBody<T>): Promise<T>;
  /** Resolves once the operation is on disk. */
  write<T>(operation: () => TransactionBody<T>): Promise<T>;
};

const NAME = /^[a-z][a-z0-9_]{0,40}$/;

/**
 * Brings the tables of an operation up to date and opens them.
 * @throws LedgerFault `open` if a newer version of the operation created them, or if running servers need them as they are; RangeError if
 * the definition is wrong
 */
export async function openStore(
  { engine, now }: Pick<Connection, 'engine' | 'now'>,
  definition: StoreDefinition,
): Promise<OperationStore> {
  checkDefinition(definition);
  const { name, migrations } = definition;
  // Announced before the version is read. If a server migrates the tables now, either it sees this announcement, or this server reads the new
  // version.
  await opening(engine.show(name, useOf(name, migrations.length)));
  await opening(engine.write(() => migrateStore(engine.dialect, definition)));
  return {
    now,
    read: operation => engine.read(operation),
    write: operation => engine.write(operation),
  };
}

function checkDefinition({ name, tables }: StoreDefinition): void {
  const wrong = [name, ...Object.keys(tables)].find(each => !NAME.test(each));
  if (wrong !== undefined)
    throw new RangeError(`${wrong} is not a valid name: use lower-case letters, digits and _`);
  const strange = Object.keys(tables).find(each => !each.startsWith(`${name}_`));
  if (strange !== undefined) throw new RangeError(`the table ${strange} must begin with ${name}_`);
}

function* migrateStore(dialect: Dialect, definition: StoreDefinition): TransactionBody<void> {
  const { name, tables, migrations } = definition;
  if (dialect.concurrentWriters) yield* execute(sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  const [before] = yield* execute(findStore({ name }));
  const version = before?.version ?? 0;
  if (version > migrations.length)
    throw new LedgerFault(
      'open',
      `The tables of ${name} have version ${version}; this program supports versions up to ${migrations.length}. Run the newer program.`,
    );
  if (version === migrations.length) return;
  if (version > 0 && dialect.concurrentWriters) yield* refuseServersBehind(definition);
  if (dialect.concurrentWriters) yield* execute(raw('set local statement_timeout = 0'));
  yield* applySteps(dialect, migrations.slice(version));
  const texts = { tables: JSON.stringify(tables), migrations: JSON.stringify(migrations) };
  yield* execute(recordStore({ name, version: migrations.length, ...texts }));
}

const useOf = (name: string, version: number): string => `${name} ${version}`;

/** Servers that start during this check wait for the migration, and then read the new version. */
function* refuseServersBehind({
  name,
  migrations,
  oldestBeside = migrations.length,
}: StoreDefinition): TransactionBody<void> {
  const uses = migrations.slice(0, oldestBeside - 1).map((_, index) => useOf(name, index + 1));
  if (uses.length === 0) return;
  const [behind] = yield* execute(serversUsing({ uses }));
  if (!behind || behind.servers === 0) return;
  throw new LedgerFault(
    'open',
    `The tables of ${name} have an earlier version, and ${behind.servers} other running server(s) still need it. Stop them, then ` +
      'start this one, which will bring the tables up to date. Nothing was changed.',
  );
}

function* applySteps(dialect: Dialect, migrations: StoreDefinition['migrations']): TransactionBody<void> {
  for (const step of migrations.flat()) {
    const { ifColumn, sql: text } = typeof step === 'string' ? { ifColumn: '', sql: step } : step;
    const [table = '', column = ''] = ifColumn.split('.');
    if (table && (yield* execute(columnExists(dialect, table, column))).length === 0) continue;
    yield* execute({ ...raw(text.replaceAll('{bytes}', dialect.bytes)), slow: true });
  }
}

/** The tables of a recorded store, with the columns of their keys. */
export function tablesOf({ tables }: StoreRow): [string, string[]][] {
  return Object.entries(JSON.parse(tables) as Record<string, string[]>);
}

/** Creates the tables of a recorded store in another database, without the rows. */
export function* copyStoreSchema(dialect: Dialect, row: StoreRow): TransactionBody<void> {
  yield* applySteps(dialect, JSON.parse(row.migrations) as StoreDefinition['migrations']);
  yield* execute(recordStore(row));
}

/** A row about a payment in an operation's tables, with bytes in hex. */
export type StoredRow = Record<string, string | number | null>;

/** The rows about a payment in all operations' tables, by table. */
export function* storedRows(payment: string): TransactionBody<Record<string, StoredRow[]>> {
  const found: Record<string, StoredRow[]> = {};
  for (const store of yield* execute(allStores()))
    for (const [table, key] of tablesOf(store)) {
      if (!key.includes('payment')) continue;
      const rows = yield* execute(
        sql<Record<string, Value | ArrayBuffer>>`
          select * from ${raw(table)} where payment = ${idBytes(payment)} order by ${raw(key.join(', '))}`,
      );
      if (rows.length > 0) found[table] = rows.map(shown);
    }
  return found;
}

/** Empties the columns `text`, which hold text that people wrote, in all operations' rows about a payment. */
export function* removeStoredTexts(dialect: Dialect, payment: string): TransactionBody<void> {
  for (const store of yield* execute(allStores()))
    for (const [table, key] of tablesOf(store)) {
      if (!key.includes('payment')) continue;
      if ((yield* execute(columnExists(dialect, table, 'text'))).length === 0) continue;
      yield* execute(sql`update ${raw(table)} set text = '' where payment = ${idBytes(payment)}`);
    }
}

function shown({ payment: _, ...row }: Record<string, Value | ArrayBuffer>): StoredRow {
  const text = (value: Value | ArrayBuffer): string | number | null =>
    typeof value === 'object' && value !== null ? bytesOf(value).toString('hex') : value;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, text(value)]));
}

/** The order of a payment while an attempt is in progress, locked until the commit; undefined if it has ended or there is none. */
export function* lockOpenOrder(payment: string): TransactionBody<{ wanted: number } | undefined> {
  const [order] = yield* execute(findOrderToChange({ payment }));
  return order?.finished_at === null ? { wanted: order.wanted } : undefined;
}

/**
 * Locks a payment and its order until the commit. All transactions lock payments before orders, so that they can't deadlock.
 * @returns the order if its work may still be changed: it is owed, and no answer is saved
 */
export function* lockUnanswered(payment: string): TransactionBody<{ wanted: number } | undefined> {
  const [row] = yield* execute(findToChange({ id: payment }));
  if (row?.state !== 'owed') return undefined;
  const [order] = yield* execute(findOrderToChange({ payment }));
  const answered = (yield* execute(answerFacts({ id: payment }))).length > 0;
  return order && !answered ? { wanted: order.wanted } : undefined;
}

/** Stores how many parts of an order are done. The caller must have locked the order. */
export function* reportDone(payment: string, done: number): TransactionBody<void> {
  yield* execute(setDone({ payment, done }));
}
