import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import pg from 'pg';
import { openLedger } from '../dist/src/ledger/store.js';
import { claimTimes } from './claim-times.js';
import { DAY_MS, payers } from './filled-ledger.js';
import { fillWithSales } from './many-sales.js';
import { revision } from './processes.js';
import { look, serve, signIn } from './served-page.js';
import { NETWORK, PAY_TO } from './terms.js';

/**
 * Measures a ledger with ten million sales in a year (`ROWS` sets another number), on SQLite and, with `TEST_DATABASE_URL`, in a database of its own
 * on that PostgreSQL server. `FOLDER` keeps the filled ledgers for the next run. Prints a Markdown table.
 */

const ROWS = Number(process.env.ROWS ?? 10_000_000);
const FOLDER = process.env.FOLDER ?? fileURLToPath(new URL('.run/grown', import.meta.url));
const COMMAND = fileURLToPath(new URL('../src/cli/coinslot.js', import.meta.url));
const EVERY_MS = Math.floor((365 * DAY_MS) / ROWS);
const CLAIMS = 512;
const LOOKS = 20;
const tell = text => process.stderr.write(`${text}\n`);
const open = url => openLedger({ url, payTo: PAY_TO, network: NETWORK });

/**
 * @param {() => Promise<number | undefined>} work resolves to the processor time of a command in ms, if it ran one
 * @returns {Promise<string>}
 */
async function timed(work) {
  const began = performance.now();
  const before = process.cpuUsage();
  const ofCommand = await work();
  const { user, system } = process.cpuUsage(before);
  return `${shown(performance.now() - began)} | ${shown(ofCommand ?? (user + system) / 1_000)}`;
}

const shown = ms =>
  ms >= 10_000
    ? `${(ms / 1_000).toFixed(0)} s`
    : ms >= 1_000
      ? `${(ms / 1_000).toFixed(1)} s`
      : `${ms.toFixed(ms < 1 ? 2 : 1)} ms`;

/** Runs a command in a process of its own and discards its output. @returns {Promise<number>} its processor time in ms */
async function command(url, ...args) {
  const env = { ...process.env, DATABASE_URL: url, NETWORK: 'sandbox', TIMEFORMAT: '%U %S' };
  const script = 'time "$@" > /dev/null 2>&1';
  const child = spawn('bash', ['-c', script, 'bash', process.execPath, COMMAND, 'ledger', ...args], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr.on('data', data => (text += data));
  await once(child, 'close');
  const [user, system] = text.trim().split(' ').map(Number);
  return (user + system) * 1_000;
}

/** @param {string} url @param {(file: string) => Promise<unknown>} backUp @returns {Promise<[string, string][]>} */
async function measured(url, backUp) {
  const figures = [];
  const add = async (what, work) => {
    figures.push([what, await timed(work)]);
    tell(figures.at(-1).join(' | '));
  };
  let ledger;
  await add('a server opens the ledger', async () => void (ledger = await open(url)));
  const { alone, together } = await claimTimes(ledger, CLAIMS);
  note(figures, 'a claim, one at a time', shown(alone / 1_000));
  note(figures, 'a claim, 64 at a time', shown(together / 1_000));
  const since = { since: 0, id: '' };
  await add('the reconciler reads the payments that have not been audited yet', async () => {
    await ledger.openFates(since, { settledBefore: Date.now(), limit: 1_000 });
  });
  await page(ledger, figures);
  await ledger.close();
  await add('`ledger summary`', () => command(url, 'summary'));
  await add('`ledger list <transaction>`', () => command(url, 'list', 'f'.repeat(88)));
  const month = new Date(Date.now() - 40 * DAY_MS).toISOString().slice(0, 7);
  await add('`ledger statement` of a month', () => command(url, 'statement', month, '--no-chain'));
  await add('`ledger export` of a day', () =>
    command(url, 'export', '--from', `${month}-10`, '--to', `${month}-10`),
  );
  await add('`ledger export` of a month', () =>
    command(url, 'export', '--from', `${month}-01`, '--to', `${month}-28`),
  );
  const copy = join(FOLDER, 'copy');
  rmSync(copy, { force: true });
  await add('a backup', () => backUp(copy));
  note(figures, 'its size', `${(statSync(copy).size / 1e9).toFixed(2)} GB`);
  rmSync(copy, { force: true });
  return figures;
}

/** @param {[string, string][]} figures @param {string} what @param {string} figure */
function note(figures, what, figure) {
  figures.push([what, `${figure} |`]);
  tell(figures.at(-1).join(' | '));
}

/** @param {import('../dist/src/ledger/store.js').Ledger} ledger @param {[string, string][]} figures */
async function page(ledger, figures) {
  const { url, close } = await serve(ledger);
  const cookie = await signIn(url);
  const add = async (what, work) => {
    figures.push([what, await timed(work)]);
    tell(figures.at(-1).join(' | '));
  };
  await add('the operator page, first request', async () => void (await look(url, cookie)));
  await add('until all sales of 90 days are counted, alongside other work', async () => {
    for (let counting = true; counting;) {
      await new Promise(resolve => setTimeout(resolve, 500));
      ({ counting } = await look(url, cookie));
    }
  });
  for (const [what, path] of [
    ['20 later requests for the operator page', '/overview'],
    ['20 requests for the first page of sales', '/sales'],
    ['20 requests for the sales of an operation that has none', '/sales?operation=nothing'],
    ['20 requests for the page about the best buyer', `/payers/${payers[0]}`],
  ])
    await add(what, async () => {
      for (let n = 0; n < LOOKS; n += 1) await look(url, cookie, path);
    });
  close();
}

const fill = url =>
  fillWithSales(url, { rows: ROWS, began: Date.now() - ROWS * EVERY_MS, everyMs: EVERY_MS, tell });

async function onSqlite() {
  const file = join(FOLDER, 'ledger.db');
  const url = `file:${file}`;
  if (!statSync(file, { throwIfNoEntry: false })) await fill(url);
  const figures = await measured(url, copy => command(url, 'backup', copy));
  const db = new Database(file, { readonly: true });
  const sizes = db
    .prepare('select name, sum(pgsize) as bytes from dbstat group by name order by bytes desc limit 10')
    .all();
  db.close();
  return [...figures, ...bytesOf(sizes, statSync(file).size)];
}

async function onPostgres(server) {
  const name = `coinslot_grown_${ROWS}`;
  const url = Object.assign(new URL(server), { pathname: name }).href;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  const { rows } = await admin.query('select 1 from pg_database where datname = $1', [name]);
  if (rows.length === 0) {
    await admin.query(`create database ${name}`);
    await fill(url);
  }
  await admin.end();
  const figures = await measured(
    url,
    async copy => void execFileSync('pg_dump', ['-d', url, '-Fc', '-Z1', '-f', copy], { stdio: 'inherit' }),
  );
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const sizes = await client.query(
    `select relname as name, pg_relation_size(oid) as bytes from pg_class where relnamespace = current_schema()::regnamespace
       order by pg_relation_size(oid) desc limit 10`,
  );
  const whole = await client.query('select pg_database_size(current_database()) as bytes');
  await client.end();
  return [...figures, ...bytesOf(sizes.rows, Number(whole.rows[0].bytes))];
}

const bytesOf = (sizes, whole) => [
  ['bytes a sale, in all', `${Math.round(whole / ROWS)} |`],
  ...sizes.map(({ name, bytes }) => [`of these \`${name}\``, `${Math.round(Number(bytes) / ROWS)} |`]),
];

mkdirSync(FOLDER, { recursive: true });
const wanted = process.env.ENGINES?.split(',') ?? ['SQLite', 'PostgreSQL'];
const columns = wanted.includes('SQLite') ? { SQLite: onSqlite } : {};
if (wanted.includes('PostgreSQL') && process.env.TEST_DATABASE_URL)
  columns.PostgreSQL = () => onPostgres(process.env.TEST_DATABASE_URL);
const out = [
  `${ROWS.toLocaleString('en')} sales, revision ${revision()}, ${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores (${cpus()[0]?.model}).`,
];
for (const [name, measure] of Object.entries(columns)) {
  tell(name);
  out.push(
    '',
    `| ${name} | time | processor time |`,
    '|---|---|---|',
    ...(await measure()).map(([what, figure]) => `| ${what} | ${figure} |`),
  );
}
process.stdout.write(`${out.join('\n')}\n`);
