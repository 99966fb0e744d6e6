import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEngine, opening } from './engines/open-engine.js';
import { runWith } from './engine.js';
import type { Dialect, Engine, Run } from './engine.js';
import { LedgerFault } from './fault.js';
import { idOf } from './ids.js';
import { checkReadable, migrate, readMeta } from './migrate.js';
import { FORMER_TABLES } from './migrations.js';
import { copyStoreSchema, tablesOf } from './operation-store.js';
import { allStores } from './queries/stores.js';
import { COPIED_META, deleteNotes, tableExists } from './queries/meta.js';
import { continueNumbers } from './queries/outbox.js';
import { list, raw, sql } from './sql.js';
import type { Query, Value } from './sql.js';

/** A copied table: its number of rows, and the XOR of their SHA-256 hashes, in hex. */
type MovedTable = { table: string; rows: number; hash: string };

export type MoveResult = {
  /** The new URL of the ledger, without a password. */
  successor: string;
  tables: MovedTable[];
  /** Whether this completed an earlier move that was interrupted before its last step. */
  resumed: boolean;
};

type Row = Record<string, Value>;
type RawRow = Record<string, Value | ArrayBuffer>;
type Plan = { table: string; key: readonly string[]; slice: number; where?: string };

/** Ordered so that foreign keys are always valid. Answers are large, so only a few are read at a time. */
const PLANS: readonly Plan[] = [
  { table: 'payments', key: ['id'], slice: 200 },
  { table: 'payers', key: ['payer'], slice: 500 },
  { table: 'orders', key: ['payment'], slice: 200 },
  ...FORMER_TABLES.map(former => ({ ...former, slice: 200 })),
  { table: 'refunds', key: ['payment'], slice: 500 },
  { table: 'repayments', key: ['id'], slice: 500 },
  { table: 'answers', key: ['payment'], slice: 8 },
  { table: 'targets', key: ['name'], slice: 200 },
  { table: 'outbox', key: ['seq'], slice: 200 },
  { table: 'uses', key: ['name'], slice: 500 },
  { table: 'meta', key: ['key'], slice: 200, where: COPIED_META },
];

const STORE_SLICE = 200;

/** The tables to copy: the ledger's, and those of operations. */
async function plansOf(run: Run, dialect: Dialect): Promise<Plan[]> {
  // A ledger of an earlier version has no table `stores`.
  const hasStores = (await run(tableExists(dialect, 'stores'))).length > 0;
  const stores = hasStores ? await run(allStores()) : [];
  const own = stores.flatMap(tablesOf).map(([table, key]) => ({ table, key, slice: STORE_SLICE }));
  return [...PLANS, ...own];
}

/**
 * Moves a ledger to another database: copies every row in one transaction on each side, compares the rows one by one, and only then
 * retires the source. If it is interrupted, at most one of the two ledgers can be used by servers.
 * @param options.from,options.to `file:…` or `postgres://…`; `to` must be empty, `from` not in use by a server
 * @throws LedgerFault
 */
export async function moveLedger(options: { from: string; to: string }): Promise<MoveResult> {
  const successor = publicName(options.to);
  if (successor === publicName(options.from))
    throw new LedgerFault('open', 'Source and target are the same ledger. Choose another target.');
  const source = await openEngine(options.from, 'source');
  try {
    await opening(source.read(() => checkReadable()));
    const target = await openEngine(options.to, 'target');
    try {
      return await copyBetween(source, target, { predecessor: publicName(options.from), successor });
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** @returns a ledger's URL without the secrets in it */
export function publicName(url: string): string {
  if (url.startsWith('file:'))
    return `file:${url.startsWith('file://') ? fileURLToPath(url) : resolve(url.slice('file:'.length))}`;
  // PostgreSQL also has URLs without a host, for example for a Unix socket.
  if (!URL.canParse(url))
    return url.replace(/:\/\/([^:@/?]*):[^@/]*@/, '://$1@').replace(/password=[^&]*&?/g, '');
  const parsed = new URL(url);
  parsed.password = '';
  for (const name of ['password', 'sslpassword']) parsed.searchParams.delete(name);
  return parsed.href;
}

type Names = { predecessor: string; successor: string };

async function copyBetween(source: Engine, target: Engine, names: Names): Promise<MoveResult> {
  const { successor } = names;
  const done = await source.transact(async read => {
    const plans = await plansOf(read, source.dialect);
    await holdStill(source, read, plans);
    const meta = await runWith(read, readMeta());
    const retired = meta.get('retired');
    if (retired !== undefined)
      return { tables: await resume(target, read, { retired, successor, plans }), resumed: true };
    await refuseFull(target);
    const identity = { payTo: meta.get('pay_to') ?? '', network: meta.get('network') ?? '' };
    await opening(target.write(() => migrate(target.dialect, identity)));
    const tables = await target.transact(async write => {
      await holdStill(target, write, PLANS);
      await refuseRows(write, target.dialect);
      await write(deleteNotes());
      await makeStores(target, read, write);
      for (const plan of plans) await copyTable(plan, { read, target, write });
      if (target.dialect.name === 'postgres') await write(continueNumbers());
      await write(sql`insert into meta (key, value) values ('arriving', ${names.predecessor})`);
      return verify(plans, { read, target, write });
    });
    await retire(source, read, successor, plans);
    return { tables, resumed: false };
  });
  await target.transact(write => write(sql`delete from meta where key = 'arriving'`));
  return { successor, ...done };
}

/** Completes a move whose source was retired but whose target is still marked as incomplete. */
async function resume(
  target: Engine,
  read: Run,
  { retired, successor, plans }: { retired: string; successor: string; plans: readonly Plan[] },
): Promise<MovedTable[]> {
  const arriving = retired === successor && (await isLedger(target));
  if (!arriving)
    throw new LedgerFault('open', `This ledger is retired: it was copied to ${retired}. Use that one.`);
  return target.transact(async write => {
    if (!(await runWith(write, readMeta())).has('arriving'))
      throw new LedgerFault(
        'open',
        `This ledger has already been copied completely to ${retired}. Use that one.`,
      );
    return verify(plans, { read, target, write });
  });
}

/** Locks out writers until the transaction ends, and lets the transaction stay idle while it waits for the other database. */
async function holdStill(engine: Engine, run: Run, plans: readonly Plan[]): Promise<void> {
  if (!engine.dialect.concurrentWriters) return;
  await run(sql`set local idle_in_transaction_session_timeout = '10min'`);
  const tables = list(plans.map(({ table }) => raw(table)));
  await run(sql`lock table ${tables} in share row exclusive mode`);
}

async function isLedger(engine: Engine): Promise<boolean> {
  return (await engine.transact(run => run(tableExists(engine.dialect, 'payments')))).length > 0;
}

async function refuseFull(target: Engine): Promise<void> {
  if (await isLedger(target)) await target.transact(run => refuseRows(run, target.dialect));
}

async function refuseRows(run: Run, dialect: Dialect): Promise<void> {
  for (const { table } of await plansOf(run, dialect)) {
    // A ledger of an earlier version does not have all tables.
    if (table === 'meta' || (await run(tableExists(dialect, table))).length === 0) continue;
    const [row] = await run(sql`select 1 from ${raw(table)} limit 1`);
    if (row === undefined) continue;
    const unfinished = (await runWith(run, readMeta())).has('arriving');
    throw new LedgerFault(
      'open',
      unfinished
        ? 'The target holds a copy that was interrupted before its source was retired. Empty it and move the ledger again.'
        : `The target is not empty: there are rows in ${table}. Choose a database that no server has used.`,
    );
  }
}

/** Creates the operations' tables as they are in the source. Those that exist in the target have no rows, so they are dropped first. */
async function makeStores(target: Engine, read: Run, write: Run): Promise<void> {
  for (const store of await write(allStores())) {
    for (const [table] of tablesOf(store).toReversed()) await write(sql`drop table ${raw(table)}`);
    await write(sql`delete from stores where name = ${store.name}`);
  }
  for (const store of await read(allStores())) await runWith(write, copyStoreSchema(target.dialect, store));
}

type Copying = { read: Run; target: Engine; write: Run };

async function copyTable(plan: Plan, { read, write }: Copying): Promise<void> {
  for await (const rows of slicesOf(plan, read)) {
    const columns = Object.keys(rows[0] ?? {});
    const values = rows.map(row => sql`(${list(valuesOf(row, columns))})`);
    await write(sql`insert into ${raw(plan.table)} (${raw(columns.join(', '))}) values ${list(values)}`);
  }
}

/** Pages through a table along its primary key, so that no page costs more than the first. */
async function* slicesOf(plan: Plan, run: Run): AsyncGenerator<Row[]> {
  const key = raw(plan.key.join(', '));
  let last: Row | undefined;
  for (;;) {
    const after: Query = last ? sql`(${key}) > (${list(valuesOf(last, plan.key))})` : sql`1 = 1`;
    const found = await run(
      sql<RawRow>`select * from ${raw(plan.table)} where ${after} and ${countedRows(plan)}
        order by ${key} limit ${plan.slice}`,
    );
    const rows = found.map(withBytes);
    if (rows.length > 0) yield rows;
    if (rows.length < plan.slice) return;
    last = rows.at(-1);
  }
}

function countedRows({ where }: Plan): Query {
  return raw(where ?? '1 = 1');
}

function valuesOf(row: Row, columns: readonly string[]): Value[] {
  return columns.map(column => row[column] ?? null);
}

/** libsql returns an ArrayBuffer, pg a Buffer. */
function withBytes(row: RawRow): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof ArrayBuffer ? Buffer.from(value) : value,
    ]),
  );
}

/** Compares every row of the source with its copy. @throws LedgerFault `failed` at the first difference */
async function verify(plans: readonly Plan[], { read, target, write }: Copying): Promise<MovedTable[]> {
  const report: MovedTable[] = [];
  for (const plan of plans) {
    const sum = Buffer.alloc(32);
    let rows = 0;
    for await (const slice of slicesOf(plan, read)) {
      const copies = await copiesOf(plan, slice, target, write);
      for (const row of slice) {
        const hash = hashOf(row);
        const copy = copies.get(keyOf(plan, row));
        if (!copy?.equals(hash)) throw different(plan.table, `the row ${keyOf(plan, row)} differs`);
        hash.forEach((byte, index) => (sum[index] = (sum[index] ?? 0) ^ byte));
      }
      rows += slice.length;
    }
    const [counted] = await write(
      sql<{ rows: number }>`select count(*) as rows from ${raw(plan.table)} where ${countedRows(plan)}`,
    );
    if (counted?.rows !== rows) throw different(plan.table, `${rows} rows became ${counted?.rows}`);
    report.push({ table: plan.table, rows, hash: sum.toString('hex') });
  }
  return report;
}

async function copiesOf(plan: Plan, slice: Row[], target: Engine, write: Run): Promise<Map<string, Buffer>> {
  // PostgreSQL reads an untyped value in a list of values as text.
  const typed = (value: Value): Query =>
    value instanceof Uint8Array ? sql`cast(${value} as ${raw(target.dialect.bytes)})` : sql`${value}`;
  const keys = list(slice.map(row => sql`(${list(valuesOf(row, plan.key).map(typed))})`));
  const rows = await write(
    sql<RawRow>`select * from ${raw(plan.table)} where (${raw(plan.key.join(', '))}) in (values ${keys})`,
  );
  return new Map(rows.map(withBytes).map(row => [keyOf(plan, row), hashOf(row)]));
}

function keyOf(plan: Plan, row: Row): string {
  const text = (value: Value | undefined): string =>
    value instanceof Uint8Array ? idOf(value) : String(value);
  return plan.key.map(column => text(row[column])).join(' ');
}

/** Hashes columns by name, and values with their type and length, so that different rows have different input. */
function hashOf(row: Row): Buffer {
  const hash = createHash('sha256');
  for (const name of Object.keys(row).sort()) {
    const value = row[name];
    const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
    hash.update(
      `${name}:${value === null ? 'null' : Buffer.isBuffer(value) ? 'bytes' : typeof value}:${bytes.length}:`,
    );
    hash.update(bytes);
  }
  return hash.digest();
}

function different(table: string, how: string): LedgerFault {
  return new LedgerFault(
    'failed',
    `The copy of ${table} differs from its source (${how}). Nothing was changed; check both databases and try again.`,
  );
}

/**
 * After the commit, servers refuse to open the source. On PostgreSQL, triggers also reject every later write, in case a server has started unnoticed.
 * No other server can open a SQLite file while this process holds its lock.
 */
async function retire(engine: Engine, run: Run, successor: string, plans: readonly Plan[]): Promise<void> {
  await run(sql`insert into meta (key, value) values ('retired', ${successor})`);
  if (!engine.dialect.concurrentWriters) return;
  await run(
    sql`create or replace function coinslot_retired() returns trigger language plpgsql as
        $$ begin raise exception 'This ledger is retired: it was copied to another database.'; end $$`,
  );
  for (const { table } of plans.filter(plan => plan.table !== 'meta'))
    await run(
      sql`create trigger retired before insert or update or delete on ${raw(table)}
          for each statement execute function coinslot_retired()`,
    );
}
