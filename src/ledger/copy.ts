import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compilerOf, sql } from './kysely.js';
import type { Kysely } from './kysely.js';
import { engineOf, opening } from './connect.js';
import type { Engine, Query, Run } from './engine.js';
import { LedgerFault } from './fault.js';
import { checkReadable, migrate } from './migrate.js';
import type { Tables } from './schema.js';

/** How many rows were copied, and the exclusive or of their sha256 hashes, hex. */
export type CopiedTable = { table: string; rows: number; hash: string };

export type Copied = {
  /** Where the ledger lives now, without a password. */
  successor: string;
  tables: CopiedTable[];
  /** An earlier copy had been complete but for its last step. */
  resumed: boolean;
};

type Row = Record<string, unknown>;
type Side = { engine: Engine; db: Kysely<Tables> };
type Plan = { table: string; key: readonly string[]; slice: number; where?: string };

/** What the target writes about itself, and what only the source may say. */
const OWN_META = ['schema', 'pay_to', 'network', 'retired', 'arriving'];

/** In an order that keeps every reference valid. Answers are heavy, so few are held at once. */
const PLANS: readonly Plan[] = [
  { table: 'payments', key: ['id'], slice: 200 },
  { table: 'payers', key: ['payer'], slice: 500 },
  { table: 'orders', key: ['payment'], slice: 200 },
  { table: 'replies', key: ['payment', 'reply'], slice: 200 },
  { table: 'answers', key: ['payment'], slice: 8 },
  {
    table: 'meta',
    key: ['key'],
    slice: 200,
    where: `key not in (${OWN_META.map(key => `'${key}'`).join(', ')})`,
  },
];

/**
 * Moves a ledger to another database: copies every row in one transaction on either side, compares them one by one, and
 * only then retires the source. Whatever interrupts it, at most one of the two can be sold from.
 * @param options.from,options.to `file:…` or `postgres://…`; `to` must be empty, `from` not in use by a server
 * @throws LedgerFault
 */
export async function copyLedger(options: { from: string; to: string }): Promise<Copied> {
  const successor = publicName(options.to);
  if (successor === publicName(options.from))
    throw new LedgerFault('open', 'Source and target are the same ledger. Name another target.');
  const source = await sideOf(options.from, 'source');
  try {
    await opening(source.engine.read(() => checkReadable(source.engine.dialect)));
    const target = await sideOf(options.to, 'target');
    try {
      return await copyBetween(source, target, { predecessor: publicName(options.from), successor });
    } finally {
      await target.engine.close();
    }
  } finally {
    await source.engine.close();
  }
}

/** @returns the URL of a ledger without what must stay secret. */
export function publicName(url: string): string {
  if (url.startsWith('file:'))
    return `file:${url.startsWith('file://') ? fileURLToPath(url) : resolve(url.slice('file:'.length))}`;
  // Addresses without a host, such as those of a Unix socket, are PostgreSQL's own spelling.
  if (!URL.canParse(url))
    return url.replace(/:\/\/([^:@/?]*):[^@/]*@/, '://$1@').replace(/password=[^&]*&?/g, '');
  const parsed = new URL(url);
  parsed.password = '';
  for (const name of ['password', 'sslpassword']) parsed.searchParams.delete(name);
  return parsed.href;
}

async function sideOf(url: string, role: 'source' | 'target'): Promise<Side> {
  const engine = await engineOf(url, role);
  return { engine, db: compilerOf(engine.dialect) };
}

type Names = { predecessor: string; successor: string };

async function copyBetween(source: Side, target: Side, names: Names): Promise<Copied> {
  const { successor } = names;
  const done = await source.engine.transact(async read => {
    await holdStill(source, read);
    const meta = await metaOf(source, read);
    const retired = meta.get('retired');
    if (retired !== undefined)
      return { tables: await resume(source, target, read, { retired, successor }), resumed: true };
    await refuseFull(target);
    const identity = { payTo: meta.get('pay_to') ?? '', network: meta.get('network') ?? '' };
    await opening(target.engine.write(() => migrate(target.engine.dialect, identity)));
    const tables = await target.engine.transact(async write => {
      await holdStill(target, write);
      await refuseRows(target, write);
      await write(sql`delete from meta where key like 'note:%'`.compile(target.db));
      for (const plan of PLANS) await copyTable(plan, { source, read, target, write });
      await write(
        sql`insert into meta (key, value) values ('arriving', ${names.predecessor})`.compile(target.db),
      );
      return verify({ source, read, target, write });
    });
    await retire(source, read, successor);
    return { tables, resumed: false };
  });
  await target.engine.transact(write =>
    write(sql`delete from meta where key = 'arriving'`.compile(target.db)),
  );
  return { successor, ...done };
}

/** The source was retired, but the target does not know yet that it may be used. */
async function resume(
  source: Side,
  target: Side,
  read: Run,
  { retired, successor }: { retired: string; successor: string },
): Promise<CopiedTable[]> {
  const arriving = retired === successor && (await isLedger(target));
  if (!arriving)
    throw new LedgerFault('open', `This ledger is retired: it was copied to ${retired}. Use that one.`);
  return target.engine.transact(async write => {
    if (!(await metaOf(target, write)).has('arriving'))
      throw new LedgerFault('open', `This ledger was copied to ${retired} before, completely. Use that one.`);
    return verify({ source, read, target, write });
  });
}

/** Keeps writers out until the transaction ends, and lets it wait for the other side. */
async function holdStill({ engine, db }: Side, run: Run): Promise<void> {
  if (!engine.dialect.concurrentWriters) return;
  await run(sql`set local idle_in_transaction_session_timeout = '10min'`.compile(db));
  const tables = sql.join(PLANS.map(({ table }) => sql.table(table)));
  await run(sql`lock table ${tables} in share row exclusive mode`.compile(db));
}

async function metaOf({ db }: Side, run: Run): Promise<Map<string, string>> {
  const rows = await run(
    sql<{ key: string; value: string }>`select key, value from meta`.compile(db) as Query<{
      key: string;
      value: string;
    }>,
  );
  return new Map(rows.map(({ key, value }) => [key, value]));
}

async function isLedger({ engine, db }: Side): Promise<boolean> {
  const query = engine.dialect.concurrentWriters
    ? sql`select 1 from information_schema.tables where table_schema = current_schema() and table_name = 'payments'`
    : sql`select 1 from sqlite_master where type = 'table' and name = 'payments'`;
  return (await engine.transact(run => run(query.compile(db)))).length > 0;
}

async function refuseFull(target: Side): Promise<void> {
  if (await isLedger(target)) await target.engine.transact(run => refuseRows(target, run));
}

async function refuseRows(target: Side, run: Run): Promise<void> {
  for (const { table } of PLANS) {
    if (table === 'meta') continue;
    const [row] = await run(sql`select 1 from ${sql.table(table)} limit 1`.compile(target.db));
    if (row === undefined) continue;
    const unfinished = (await metaOf(target, run)).has('arriving');
    throw new LedgerFault(
      'open',
      unfinished
        ? 'The target holds a copy that was interrupted before its source was retired. Empty it and copy again.'
        : `The target is not empty: there are rows in ${table}. Name a database that was never sold from.`,
    );
  }
}

type Copying = { source: Side; read: Run; target: Side; write: Run };

async function copyTable(plan: Plan, { source, read, target, write }: Copying): Promise<void> {
  for await (const rows of slicesOf(plan, source, read)) {
    const columns = Object.keys(rows[0] ?? {});
    const values = rows.map(row => sql`(${sql.join(columns.map(column => row[column]))})`);
    await write(
      sql`insert into ${sql.table(plan.table)} (${sql.join(columns.map(column => sql.ref(column)))})
          values ${sql.join(values)}`.compile(target.db),
    );
  }
}

/** Pages through a table along its primary key, so that no page costs more than the first. */
async function* slicesOf(plan: Plan, side: Side, run: Run): AsyncGenerator<Row[]> {
  const key = sql.join(plan.key.map(column => sql.ref(column)));
  let last: Row | undefined;
  for (;;) {
    const from: Row | undefined = last;
    const after = from ? sql`(${key}) > (${sql.join(plan.key.map(column => from[column]))})` : sql`1 = 1`;
    const query = sql`select * from ${sql.table(plan.table)} where ${after} and ${sql.raw(plan.where ?? '1 = 1')}
      order by ${key} limit ${sql.lit(plan.slice)}`;
    const rows = (await run(query.compile(side.db) as Query<Row>)).map(withBytes);
    if (rows.length > 0) yield rows;
    if (rows.length < plan.slice) return;
    last = rows.at(-1);
  }
}

/** libsql hands out an ArrayBuffer, pg a Buffer. */
function withBytes(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof ArrayBuffer ? Buffer.from(value) : value,
    ]),
  );
}

/** Compares every row of the source with its copy. @throws LedgerFault `failed` at the first difference */
async function verify({ source, read, target, write }: Copying): Promise<CopiedTable[]> {
  const report: CopiedTable[] = [];
  for (const plan of PLANS) {
    const sum = Buffer.alloc(32);
    let rows = 0;
    for await (const slice of slicesOf(plan, source, read)) {
      const copies = await copiesOf(plan, slice, target, write);
      for (const row of slice) {
        const hash = hashOf(row);
        const copy = copies.get(keyOf(plan, row));
        if (!copy?.equals(hash)) throw different(plan.table, `the row ${keyOf(plan, row)} differs`);
        hash.forEach((byte, index) => (sum[index] = (sum[index] ?? 0) ^ byte));
      }
      rows += slice.length;
    }
    const count = sql`select count(*) as rows from ${sql.table(plan.table)} where ${sql.raw(plan.where ?? '1 = 1')}`;
    const [counted] = await write(count.compile(target.db) as Query<{ rows: number }>);
    if (counted?.rows !== rows) throw different(plan.table, `${rows} rows became ${counted?.rows}`);
    report.push({ table: plan.table, rows, hash: sum.toString('hex') });
  }
  return report;
}

async function copiesOf(plan: Plan, slice: Row[], target: Side, write: Run): Promise<Map<string, Buffer>> {
  const key = sql.join(plan.key.map(column => sql.ref(column)));
  const keys = sql.join(slice.map(row => sql`(${sql.join(plan.key.map(column => row[column]))})`));
  const query = sql`select * from ${sql.table(plan.table)} where (${key}) in (values ${keys})`;
  const rows = await write(query.compile(target.db) as Query<Row>);
  return new Map(rows.map(withBytes).map(row => [keyOf(plan, row), hashOf(row)]));
}

function keyOf(plan: Plan, row: Row): string {
  return plan.key.map(column => String(row[column])).join(' ');
}

/** Columns by name, values with their type and length: no two different rows read the same. */
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
    `The copy of ${table} does not agree with its source (${how}). Nothing was changed; check both databases and try again.`,
  );
}

const RETIRED_TABLES = ['payments', 'answers', 'payers', 'orders', 'replies'];

/**
 * From the commit on no server opens the source. PostgreSQL also refuses every later write, should a server have come
 * between unnoticed; a SQLite file has no other server as long as we hold its lock.
 */
async function retire({ engine, db }: Side, run: Run, successor: string): Promise<void> {
  await run(sql`insert into meta (key, value) values ('retired', ${successor})`.compile(db));
  if (!engine.dialect.concurrentWriters) return;
  await run(
    sql`create or replace function coinslot_retired() returns trigger language plpgsql as
        $$ begin raise exception 'This ledger is retired: it was copied to another database.'; end $$`.compile(
      db,
    ),
  );
  for (const table of RETIRED_TABLES)
    await run(
      sql`create trigger retired before insert or update or delete on ${sql.table(table)}
          for each statement execute function coinslot_retired()`.compile(db),
    );
}
