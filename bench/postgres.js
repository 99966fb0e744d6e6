import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { clearInterval, setInterval } from 'node:timers';
import pg from 'pg';
import { ratio, record, table } from './figures.js';
import { BRIEF } from './fleet.js';
import { paid, PREPARED } from './measure.js';
import { amount, rounds, seconds } from './pace.js';
import { prepareSignatures } from './payments.js';
import { freePort, Partner, startOurs, statOf } from './processes.js';
import { ORDER_PRICE, PAYERS } from './terms.js';

/** Connections of all servers together. */
const CONNECTIONS = 64;
/** How many calls each server answers before the measurement, at least one for each payer. Until V8 has compiled its code, a call takes up to twice as long. */
const WARM_UP = amount(5_000, PAYERS);
const MOST_SERVERS = 4;
const ROUNDS = rounds(5, 2);
/** A load at which no server is busy all the time, in calls per second for each. */
const STEADY = 40;
/** How many payments one payer makes in a round. */
const HOT = amount(100, 80);
/** How many orders a group gets in a round. A sample respondent of the sandbox replies to each. */
const ORDERS = MOST_SERVERS * amount(32, 32);
const PREPARED_ORDERS = MOST_SERVERS * ROUNDS * ORDERS;
const ORDER = {
  path: '/brand-feedback',
  body: JSON.stringify({ brand: 'Harbour Coffee', question: 'What do you think of the new cup?', n: 1 }),
  amount: ORDER_PRICE,
  prepared: PREPARED_ORDERS,
};
/** More sales per second than one of these servers can make. */
const MOST_PER_SECOND = 2_000;
const LOOK_MS = 100;

/** @typedef {import('./measure.js').Bench} Bench */

/** @returns {string | undefined} the folder of the newest PostgreSQL programs */
function programs() {
  const installed = '/usr/lib/postgresql';
  if (!existsSync(installed)) return undefined;
  const versions = readdirSync(installed).filter(name => Number(name) >= 15);
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
  return newest && join(installed, newest, 'bin');
}

/** PostgreSQL refuses to run as root. @param {string[]} command */
function run(command) {
  const root = process.getuid?.() === 0;
  const [program, ...args] = root ? ['runuser', '-u', 'postgres', '--', ...command] : command;
  execFileSync(program, args, { stdio: 'ignore', cwd: '/' });
}

/** @returns {number} processor time in seconds that a PostgreSQL server and its sessions have used */
function cpuSeconds(postmaster) {
  const ticks = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => ({ pid: Number(pid), fields: statOf(Number(pid)) }))
    .filter(({ pid, fields }) => pid === postmaster || Number(fields?.[1]) === postmaster)
    // PostgreSQL's own time includes that of its children that have ended.
    .map(({ pid, fields }) =>
      fields.slice(11, pid === postmaster ? 15 : 13).reduce((sum, each) => sum + Number(each), 0),
    );
  return ticks.reduce((sum, each) => sum + each, 0) / 100;
}

/** Starts a PostgreSQL cluster with default settings, which include fsync. */
async function startPostgres(bin) {
  const folder = mkdtempSync(join(tmpdir(), 'coinslot-bench-'));
  chmodSync(folder, 0o777);
  const data = join(folder, 'data');
  const port = await freePort();
  const control = join(bin, 'pg_ctl');
  run([join(bin, 'initdb'), '-D', data, '-U', 'bench', '-A', 'trust']);
  const options = `-p ${port} -h 127.0.0.1 -k ${folder}`;
  run([control, '-D', data, '-w', '-l', join(folder, 'log'), '-o', options, 'start']);
  const url = name => `postgres://bench@127.0.0.1:${port}/${name}`;
  const client = new pg.Client({ connectionString: url('postgres') });
  await client.connect();
  const { rows } = await client.query("select pg_read_file('postmaster.pid', 0, 20) as text");
  const postmaster = parseInt(rows[0].text, 10);
  return {
    client,
    create: async name => {
      await client.query(`create database ${name}`);
      return url(name);
    },
    cpuSeconds: () => (existsSync('/proc/self/stat') ? cpuSeconds(postmaster) : undefined),
    stop: async () => {
      await client.end();
      run([control, '-D', data, '-m', 'fast', 'stop']);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Samples how many sessions are waiting for a lock. @returns {() => number} ends the sampling, and returns the average */
function watchLocks(client) {
  const seen = [];
  const look = async () => {
    const { rows } = await client.query(
      "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'",
    );
    seen.push(rows[0].n);
  };
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS);
  return () => {
    clearInterval(timer);
    return seen.reduce((sum, each) => sum + each, 0) / Math.max(1, seen.length);
  };
}

/**
 * The number of a server's first payment. `spread`: the first half of the signed payments, divided among the servers; payments that follow
 * each other come from different payers. `copies`: the third quarter, which every server gets. `one payer`: the last quarter; each round
 * uses those payments in it that one payer makes. `orders`: payments at another price.
 */
const FIRST = {
  spread: index => (PREPARED / 2 / MOST_SERVERS) * index,
  copies: () => PREPARED / 2,
  'one payer': index => Math.ceil((PREPARED * 0.75) / PAYERS) + (HOT / MOST_SERVERS) * index,
  orders: index => (PREPARED_ORDERS / MOST_SERVERS) * index,
};

const STEADILY = `${STEADY} calls/s each`;
const STEADILY_FOR_ALL = `${STEADY * MOST_SERVERS} calls/s`;

/** @param {string} way @returns {keyof typeof FIRST} the payments that it uses */
const kindOf = way => (way in FIRST ? way : 'spread');

/** Servers on one database, each with a load generator. */
async function startGroup({ bench, database, loads }, { name, count, ways = ['spread'] }) {
  const url = name === 'SQLite' ? undefined : await database.create(name.replace(' ', '_'));
  const servers = [];
  for (let index = 0; index < count; index += 1) {
    const { server } = await startOurs(bench.stubs, { core: null, env: url ? { DATABASE_URL: url } : {} });
    servers.push(server);
  }
  const benches = servers.map((_, index) => ({ ...bench, load: loads[index] }));
  for (const [index, server] of servers.entries()) {
    server.nextPayment = FIRST.spread(index);
    await paid(benches[index], server, { ...BRIEF, connections: 16, requests: WARM_UP });
  }
  return {
    name,
    servers,
    benches,
    ways,
    used: { spread: WARM_UP, copies: 0, 'one payer': 0, orders: 0 },
  };
}

/** One round of a group: all its servers concurrently. */
async function measure({ database }, { servers, benches, used }, way, round) {
  const connections = CONNECTIONS / servers.length;
  const timed = { ...BRIEF, connections, seconds: seconds(5, 2), mostPerSecond: MOST_PER_SECOND };
  const jobs = {
    spread: timed,
    [STEADILY]: { ...timed, perSecond: STEADY },
    [STEADILY_FOR_ALL]: { ...timed, perSecond: STEADY * MOST_SERVERS },
    copies: { ...timed, isShared: true },
    'one payer': { ...BRIEF, connections, payer: round % PAYERS, requests: HOT / servers.length },
    orders: { ...ORDER, connections, requests: ORDERS / servers.length },
  };
  const kind = kindOf(way);
  for (const [index, server] of servers.entries()) server.nextPayment = FIRST[kind](index) + used[kind];
  const ofServers = () => servers.reduce((sum, server) => sum + (server.cpuSeconds() ?? NaN), 0);
  const before = { servers: ofServers(), database: database.cpuSeconds() };
  const locks = watchLocks(database.client);
  const results = await Promise.all(servers.map((server, index) => paid(benches[index], server, jobs[way])));
  const waiting = locks();
  if (way !== 'one payer')
    used[kind] = Math.max(...servers.map(({ nextPayment }, index) => nextPayment - FIRST[kind](index)));
  const answers = results.reduce((sum, each) => sum + each.answers, 0);
  const spent = { servers: ofServers() - before.servers, database: database.cpuSeconds() - before.database };
  return {
    rate: results.reduce((sum, each) => sum + each.answers / each.seconds, 0),
    servers: (spent.servers * 1_000) / answers,
    database: (spent.database * 1_000) / answers,
    both: ((spent.servers + spent.database) * 1_000) / answers,
    p50: Math.max(...results.map(({ p50 }) => p50)),
    p99: Math.max(...results.map(({ p99 }) => p99)),
    waiting,
  };
}

const GROUPS = [
  { name: 'SQLite', count: 1 },
  { name: 'one server', count: 1, ways: ['spread', STEADILY, STEADILY_FOR_ALL, 'orders'] },
  { name: 'two servers', count: 2 },
  { name: 'four servers', count: MOST_SERVERS, ways: ['spread', STEADILY, 'orders', 'one payer', 'copies'] },
];

/** Compares servers that share a PostgreSQL database with a server on SQLite. @param {Bench} bench */
export async function postgres(bench) {
  const bin = programs();
  if (!bin)
    return bench.report.skip(
      'servers that share a PostgreSQL database',
      'no PostgreSQL 15 or newer is installed',
    );
  await prepareSignatures(ORDER_PRICE, PREPARED_ORDERS);
  const database = await startPostgres(bin);
  const loads = [bench.load, ...Array.from({ length: MOST_SERVERS - 1 }, () => new Partner('load.js', null))];
  const world = { bench, database, loads };
  const tables = {
    rate: table(`Paid calls on PostgreSQL, ${CONNECTIONS} connections in all`, 'answers/s'),
    servers: table('Processor time per answer on PostgreSQL: the servers', 'ms', 'less'),
    database: table('Processor time per answer on PostgreSQL: the database', 'ms', 'less'),
    both: table('Processor time per answer on PostgreSQL: both', 'ms', 'less'),
    p50: table('Latency of a paid call on PostgreSQL, median of the slowest server', 'ms', 'less'),
    p99: table('Latency of a paid call on PostgreSQL, 99th percentile of the slowest server', 'ms', 'less'),
    waiting: table('PostgreSQL sessions waiting for a lock, on average', 'sessions', 'less'),
  };
  const all = [];
  try {
    for (const group of GROUPS) all.push(await startGroup(world, group));
    for (let round = 0; round < ROUNDS; round += 1)
      for (const group of all)
        for (const way of group.ways) {
          const name = way === 'spread' ? group.name : `${group.name}, ${way}`;
          for (const [key, value] of Object.entries(await measure(world, group, way, round)))
            if (Number.isFinite(value)) record(tables[key], name, value);
        }
  } finally {
    await Promise.all(all.flatMap(({ servers }) => servers).map(server => server.stop()));
    for (const partner of loads.slice(1)) partner.end();
    await database.stop();
  }
  tables.rate.notes.push(
    'Nothing is pinned here. Servers, database, stubs and load generators share the same cores. fsync is on.',
    '“One payer”: all payments are by one buyer, for the same call, and the servers must tell them from copies. “Copies”: each payment goes to all four servers and buys once; a copy that waits too long is answered with 503. “Orders” are answered when a sample respondent has replied.',
    `“${STEADILY}”, “${STEADILY_FOR_ALL}”: a steady load that the servers can sustain.`,
  );
  for (const each of Object.values(tables)) bench.report.add(each);
  bench.report.gate(
    'paid calls, one server on PostgreSQL / on SQLite',
    ratio(tables.rate, 'one server', 'SQLite'),
    'least',
    0.6,
  );
  bench.report.gate(
    `processor time per sale on PostgreSQL, four servers / one, ${STEADILY}`,
    ratio(tables.both, `four servers, ${STEADILY}`, `one server, ${STEADILY}`),
    'most',
    1.1,
  );
}
