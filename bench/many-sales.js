import { performance } from 'node:perf_hooks';
import Database from 'libsql';
import pg from 'pg';
import { openLedger } from '../dist/src/ledger/store.js';
import { payers } from './filled-ledger.js';
import { NETWORK, PAY_TO, PAYERS } from './terms.js';

/**
 * Fills a new ledger in either engine with finished sales. A tenth of them are to regular buyers, one in two hundred was released, one in five
 * hundred was refunded, and one in fifty has a payment-identifier. Sales from the last ten minutes still have their answers. Indexes are created
 * afterwards, which is faster, but leaves them denser than individual inserts would.
 */

const SLICE = 250_000;
const OCCASIONAL = 200_000;
const ANSWERS_KEPT_MS = 600_000;
const ANSWER_BYTES = 1_400;

/** SQL that differs between the two engines. `random`: a random string of a given length; `i`: the number of the sale. */
const SPELLINGS = {
  sqlite: {
    id: 'randomblob(32)',
    random: digits => `substr(lower(hex(randomblob(${Math.ceil(digits / 2)}))), 1, ${digits})`,
    padded: (prefix, number, width) => `printf('${prefix}%0${width}d', ${number})`,
    series: (from, to) =>
      `(with recursive n(i) as (select ${from} union all select i + 1 from n where i + 1 < ${to}) select i from n)`,
    body: `randomblob(${ANSWER_BYTES})`,
  },
  postgres: {
    id: "sha256(convert_to('sale ' || i, 'UTF8'))",
    random: digits =>
      `left(encode(sha512(convert_to(i || '-${digits}', 'UTF8')), 'hex'), ${Math.min(digits, 128)})`,
    padded: (prefix, number, width) => `'${prefix}' || lpad((${number})::text, ${width}, '0')`,
    series: (from, to) => `generate_series(${from}::bigint, ${to}::bigint - 1) as n(i)`,
    body: `decode(repeat('ab', ${ANSWER_BYTES}), 'hex')`,
  },
};

/** @param {'sqlite' | 'postgres'} name @param {{ rows: number, began: number, everyMs: number, wholeBytes: number }} how */
function sales(name, { rows, began, everyMs, wholeBytes }, from, to) {
  const { id, random, padded, series } = SPELLINGS[name];
  const at = `(${began} + i * ${everyMs})`;
  const state = `case when i % 200 = 3 then 'released' when i % 500 = 1 then 'refunded' else 'delivered' end`;
  const settled = what => `case when i % 200 = 3 then null else ${what} end`;
  const payer = `case when i % 10 = 0 then (select payer from regulars where number = i / 10 % ${PAYERS})
    else ${padded('Buyer', `i * 7919 % ${OCCASIONAL}`, 39)} end`;
  const columns = {
    id,
    operation: "case when i % 3 = 0 then 'summarize' else 'solTokenBrief' end",
    request_hash: random(64),
    payer,
    amount: "'10000'",
    network: `'${NETWORK}'`,
    x402_version: '2',
    method: "'x402-v2'",
    signed_transaction: wholeBytes > 0 ? '(select text from whole)' : padded('Account', 'i', 37),
    identifier: `case when i % 50 = 2 then ${random(32)} end`,
    flow: "'authorization'",
    state,
    claim: '1',
    owner: "'5ad3acf4-2838-4f5a-b42e-5d2559a3d931'",
    lease_until: `${at} + 90000`,
    callers: '1',
    caller_until: '0',
    runs: '1',
    asks: '1',
    claim_slot: '300000000 + i',
    claim_height: '280000000 + i',
    settlement: settled(random(88)),
    reason: "case when i % 200 = 3 then 'expired' when i % 500 = 1 then 'refunded' end",
    created_at: at,
    settling_at: `${at} + 80`,
    settled_at: settled(`${at} + 120`),
    decided_at: `${at} + 120`,
    written_to: '1',
    unwritten: '0',
    written_at: `${at} + 125`,
    audited_at: `case when i >= ${rows} - ${Math.ceil(20_000 / everyMs)} then null else ${at} + 22000 end`,
    answer_expires_at: `case when i >= ${rows} - ${Math.ceil(ANSWERS_KEPT_MS / everyMs)} and i % 200 <> 3
      and i % 500 <> 1 then ${at} + ${ANSWERS_KEPT_MS} end`,
    repaid: "case when i % 500 = 1 then '10000' else '0' end",
    repaid_by: `case when i % 500 = 1 then ${random(86)} end`,
    request_id: random(36),
  };
  const source = name === 'sqlite' ? `${series(from, to)} as n` : series(from, to);
  return `insert into payments (${Object.keys(columns).join(', ')}) select ${Object.values(columns).join(', ')} from ${source}`;
}

const REFUNDS = `insert into repayments (id, payment, amount, receiver, way, state, cause, after, signature, created_at, decided_at, slot,
    landed_at, source)
  select substr(request_id, 1, 24), id, amount, payer, 'link', 'done', 'operator', claim_slot, repaid_by, decided_at + 1, decided_at + 2,
    claim_slot + 9, decided_at + 3, '${PAY_TO}' from payments where state = 'refunded'`;

const answers = name =>
  `insert into answers (payment, status, headers, size, saved_at, body)
    select id, 200, '{"content-type":"application/json"}', ${ANSWER_BYTES}, created_at, ${SPELLINGS[name].body}
    from payments where answer_expires_at is not null`;

const KNOWN = `insert into payers (payer, known, delivered_at) select payer, 1, max(settled_at) from payments
  where settled_at is not null group by payer`;

const BOUND = `insert into meta (key, value) values ('pay_to', '${PAY_TO}')`;

/** An ordinary transaction has 664 characters in base64. */
const whole = bytes => `create temp table whole as select '${'Q'.repeat(bytes)}' as text`;

/**
 * @param {string} url of a database that no server has used
 * @param {{ rows: number, began: number, everyMs: number, wholeBytes?: number, tell?: (text: string) => void }} how
 *   `wholeBytes`: stores whole transactions of this many characters, as earlier versions did
 */
export async function fillWithSales(url, { wholeBytes = 0, tell = () => {}, ...how }) {
  await (await openLedger({ url, payTo: PAY_TO, network: NETWORK })).close();
  const began = performance.now();
  const name = url.startsWith('file:') ? 'sqlite' : 'postgres';
  const database = name === 'sqlite' ? onSqlite(url) : await onPostgres(url);
  const seconds = () => Math.round((performance.now() - began) / 1_000);
  try {
    const indexes = await database.dropIndexes();
    await database.run('create temp table regulars (number bigint, payer text)');
    for (const [number, payer] of payers.entries())
      await database.run(`insert into regulars values (${number}, '${payer}')`);
    if (wholeBytes > 0) await database.run(whole(wholeBytes));
    for (let from = 0; from < how.rows; from += SLICE) {
      await database.run(sales(name, { ...how, wholeBytes }, from, Math.min(from + SLICE, how.rows)));
      tell(`${name}: ${Math.min(from + SLICE, how.rows)} sales written after ${seconds()} s`);
    }
    for (const statement of [REFUNDS, answers(name), KNOWN, BOUND]) await database.run(statement);
    for (const index of indexes) await database.run(index);
    await database.settle();
    tell(`${name}: indexes created after ${seconds()} s`);
  } finally {
    await database.close();
  }
}

function onSqlite(url) {
  const db = new Database(new URL(url).pathname);
  db.exec('pragma cache_size = -2000000');
  db.exec('pragma synchronous = off');
  return {
    run: async statement => void db.exec(statement),
    dropIndexes: async () => {
      const found = db
        .prepare(
          "select name, sql from sqlite_master where type = 'index' and tbl_name = 'payments' and sql is not null",
        )
        .all();
      for (const { name } of found) db.exec(`drop index ${name}`);
      return found.map(({ sql }) => sql);
    },
    settle: async () => void db.exec('pragma wal_checkpoint(truncate)'),
    close: async () => void db.close(),
  };
}

async function onPostgres(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query("set maintenance_work_mem = '1GB'; set synchronous_commit = off");
  return {
    run: statement => client.query(statement),
    dropIndexes: async () => {
      const { rows } = await client.query(
        `select indexname, indexdef from pg_indexes where tablename = 'payments' and schemaname = current_schema()
           and indexname not like '%_pkey'`,
      );
      for (const { indexname } of rows) await client.query(`drop index ${indexname}`);
      return rows.map(({ indexdef }) => indexdef);
    },
    settle: () => client.query('vacuum (analyze)'),
    close: () => client.end(),
  };
}
