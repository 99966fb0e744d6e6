import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Keypair } from '@solana/web3.js';
import { messageOf } from '../../src/ledger/fault.js';
import { until } from '../support/faults.js';
import { serve, type Served } from '../support/server-process.js';
import { TestChain } from '../support/test-chain.js';
import { auditOf, faultsOf, withReader } from './outcome.js';
import { Buyers } from './buyers.js';
import { Cluster, missing } from './cluster.js';
import { TTL_SECONDS, type Machine } from './machine.js';

/**
 * Makes a PostgreSQL with a synchronous standby lose its primary while three servers are selling: RUNS times (once by
 * default) in each way that ONLY names (ONLY=killed; all three by default). Prints a line for each run, and `N passed, N failed`.
 * BETWEEN=command is executed after each run. SIGTERM ends the program after the current run.
 */
const RUNS = Number(process.env['RUNS'] ?? 1);
const ONLY = process.env['ONLY'];
const BETWEEN = process.env['BETWEEN'];
const execute = promisify(execFile);
const BUYERS = 6;
const BEFORE_MS = 5_000;
const AFTER_MS = 3_000;
/** Blockhashes expire after 22 s, and payments are final after five. */
const SLOT_MS = 150;
const RESUMED_MS = 90_000;
const DATABASE = 'shop';

type Way = { lose: (machine: Machine) => void; bringBack: (machine: Machine) => void };
const WAYS: Record<string, Way> = {
  killed: { lose: machine => machine.kill(), bringBack: machine => machine.start() },
  frozen: { lose: machine => machine.freeze(), bringBack: machine => machine.thaw() },
  'cut off': { lose: machine => machine.cut(), bringBack: machine => machine.heal() },
};
const ASKED = Object.keys(WAYS).filter(name => !ONLY || name === ONLY);
if (ASKED.length === 0) throw new Error(`ONLY: '${ONLY}' is none of ${Object.keys(WAYS).join(', ')}`);

type Outage = { promoted: number; unsold: number };
type World = { cluster: Cluster; chain: TestChain; servers: Served[]; ledger: string };

async function openWorld(folder: string, closers: (() => unknown)[]): Promise<World> {
  const cluster = await Cluster.open();
  closers.push(() => cluster.close());
  await cluster.createDatabase(DATABASE);
  const chain = await TestChain.open(SLOT_MS);
  closers.push(() => chain.close());
  const { rpc, facilitator, info } = chain.sandbox;
  const servers: Served[] = [];
  for (const name of ['one', 'two', 'three']) {
    const served = await serve({
      STATE_DIR: join(folder, name),
      PORT: '0',
      SOLANA_RPC_URL: rpc.url,
      FACILITATOR_URL: facilitator.url,
      PAY_TO: info.payTo,
      // The third server still reaches a primary that is cut off from its standby and from etcd.
      DATABASE_URL: cluster.url(DATABASE, name === 'three'),
    });
    closers.push(() => served.kill());
    servers.push(served);
  }
  return { cluster, chain, servers, ledger: cluster.url(DATABASE) };
}

/** @returns the seconds until the standby was promoted, and until the first call was sold after that */
async function loseOne({ lose, bringBack }: Way, { cluster }: World, buyers: Buyers): Promise<Outage> {
  const { primary, standby } = await cluster.healthy();
  await sleep(BEFORE_MS);
  const lost = Date.now();
  const firstAfter = (time: number): number => buyers.sales.find(sale => sale > time) ?? Infinity;
  lose(primary);
  try {
    await until(
      'the standby is promoted',
      async () => (await standby.state())?.role === 'master',
      RESUMED_MS,
    );
    const promoted = Date.now();
    await until('calls are sold again', () => firstAfter(promoted) < Infinity, RESUMED_MS);
    await until('no server is connected to the former primary', () => primary.aside.open() === 0, RESUMED_MS);
    await sleep(AFTER_MS);
    return { promoted: (promoted - lost) / 1000, unsold: (firstAfter(promoted) - lost) / 1000 };
  } finally {
    bringBack(primary);
    await cluster.healthy();
    await sleep(AFTER_MS);
  }
}

/**
 * Resolves when the next primary can be taken down; purchases of this run may still be under way then. @returns `isRight`,
 * which resolves when they have ended: whether nothing was lost or duplicated
 */
async function failOver(name: string, world: World): Promise<{ isRight: Promise<boolean> }> {
  const { chain, servers } = world;
  const payers = await chain.payers(BUYERS);
  const buyers = new Buyers(
    servers.map(({ url }) => url),
    payers,
  );
  const faults: string[] = [];
  const outage = await loseOne(WAYS[name]!, world, buyers).catch((error: unknown) => {
    faults.push(messageOf(error));
  });
  return { isRight: judge(name, { world, payers, buyers, outage, faults }) };
}

type Run = { world: World; payers: Keypair[]; buyers: Buyers; outage: Outage | void; faults: string[] };

async function judge(name: string, { world, payers, buyers, outage, faults }: Run): Promise<boolean> {
  await buyers.end();
  const found = faultsOf(world.chain, world.ledger, payers, buyers);
  faults.push(...buyers.faults, ...(await found.catch((error: unknown) => [messageOf(error)])));
  const waited = buyers.purchases.map(({ began, answered = Infinity }) => (answered - began) / 1000);
  const statuses = [...buyers.statuses].map(([status, count]) => `${status}: ${count}`).join(', ');
  print(
    `${name}: promoted after ${outage?.promoted.toFixed(1)} s, ${outage?.unsold.toFixed(1)} s without sales, ` +
      `${waited.length} purchases (${statuses}), the slowest took ${Math.max(...waited).toFixed(0)} s, ${faults.length} faults`,
  );
  for (const fault of faults.slice(0, 10)) print(`  ${fault}`);
  return faults.length === 0;
}

let isToEnd = false;
process.on('SIGTERM', () => (isToEnd = true));

async function failAll(world: World): Promise<boolean[]> {
  const runs: Promise<boolean>[] = [];
  for (let run = 1; run <= RUNS; run += 1)
    for (const name of ASKED) {
      if (isToEnd) break;
      runs.push((await failOver(name, world)).isRight);
      if (BETWEEN !== undefined) await execute('sh', ['-c', BETWEEN]);
    }
  const outcomes = await Promise.all(runs);
  const { transfers, faults } = await withReader(world.ledger, reader => auditOf(world.chain, reader));
  print(`the books of all runs: ${transfers} transfers, ${faults.length} differences from the chain`);
  for (const fault of faults.slice(0, 10)) print(`  ${fault}`);
  return [...outcomes, faults.length === 0];
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const absent = missing();
const folder = mkdtempSync(join(tmpdir(), 'coinslot-failover-'));
const closers: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let outcomes: boolean[] = [];
if (absent.length > 0)
  print(`${absent.join(', ')}: not installed (apt-get install patroni etcd-server postgresql)`);
else {
  print(
    `${RUNS} of each way (${ASKED.join(', ')}), a lease of ${TTL_SECONDS} s, ${BUYERS} buyers, three servers`,
  );
  outcomes = await openWorld(folder, closers)
    .then(failAll)
    .catch((error: unknown) => (print(messageOf(error)), [false]));
}
for (const close of closers.toReversed()) await close();
const failed = outcomes.filter(outcome => !outcome).length;
print(`${outcomes.length - failed} passed, ${failed} failed, ${absent.length > 0 ? 1 : 0} skipped`);
process.exit(failed === 0 ? 0 : 1);
