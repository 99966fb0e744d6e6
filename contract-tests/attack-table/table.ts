import '../../src/rails/solana/silence-bigint-warning.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Keypair } from '@solana/web3.js';
import { spawnSandbox, type SpawnedSandbox } from '../../src/sandbox/child.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { countingProxy } from '../support/proxy.js';
import { call, challengeOf, post, TEXT, type Answer } from '../support/world.js';
import { fundedPayers, usdcOf } from './funding.js';
import { ITEMS, ResoldApi } from './resold-api.js';
import { Target, type Size } from './target.js';

/**
 * Runs each attack against a server in the sandbox and reports what honest callers experienced meanwhile. Server,
 * sandbox (chain and facilitator), attacker and honest callers run in one process each; the attacker has a lower
 * priority, because on a machine of its own it would use none of the server's processor time. ATTACKS="held
 * bodies;unfunded flood" selects attacks, SECONDS is how long each lasts (15), AFTER how many seconds later the remaining
 * memory is measured (60). Exits with 1 if a limit is exceeded.
 */
const ALL = [
  'nothing',
  'hostile texts, speech',
  'hostile texts, summaries',
  'held bodies',
  'stalled readers of an answer',
  'stalled readers of documents',
  'late-signed work',
  'abandoned work',
  'unfunded flood',
  'big unfunded bodies',
  'lone refused payments',
  'unsold calls of an API',
  'failing calls of ten wallets',
  'unsold reads of the chain',
  'resends of a failed order',
  'garbage over MCP',
  'resends of a large answer',
];
/** Attacks on a shop that sells an API. */
const ON_RESOLD = new Set([
  'unsold calls of an API',
  'failing calls of ten wallets',
  'resends of a failed order',
]);
/** Attacks whose source addresses the server limits. It reads the address from a header. */
const FROM_FAR = new Set([
  ...ON_RESOLD,
  'unsold reads of the chain',
  'garbage over MCP',
  'resends of a large answer',
]);
const ATTACKERS = 10;
const CHOSEN = process.env['ATTACKS']?.split(/\s*;\s*/) ?? ALL;
const ATTACK_SECONDS = Number(process.env['SECONDS'] ?? 15);
const AFTER_SECONDS = Number(process.env['AFTER'] ?? 60);
/** A payment is sent this long after it was signed, shortly before its blockhash expires. */
const LATE_SECONDS = 60;
const CALL_MS = 20_000;
const PAUSE_MS = 250;
const NICE = 10;
const PAYERS = 40;
/** Attacks during which nobody else buys, so that their commits can be counted. */
const ALONE = new Set(['lone refused payments']);
/** Seconds between commits that the attack does not cause: a server regularly stores the chain's height. */
const LOOK_SECONDS = 1;
const ATTACKER = fileURLToPath(new URL('attacker.js', import.meta.url));

/** How much longer an honest known buyer may wait during an attack, and how much memory may remain in use after it. */
const MAX_DELAY_MS = 1_000;
const MAX_LEFT_MB = 100;
/** Commits to the ledger for each refused payment. */
const MAX_COMMITS = 2;

type Seen = { waitsMs: number[]; failures: string[] };
type Said = { statuses: Record<string, number>; perSecond: number; bytes: number };
/** The cost of the attack: requests to the API, reads of the chain, and the USDC (in atomic units) that the attackers spent. */
type Cost = { requests: number; reads: number; usdc: bigint };
type Row = {
  attack: string;
  known: Seen;
  fresh: Seen;
  health: Seen;
  sizes: [before: Size, most: Size, end: Size, after: Size];
  seconds: number;
  said: Said;
  cost: Cost;
};

const unseen = (): Seen => ({ waitsMs: [], failures: [] });
const slowest = ({ waitsMs }: Seen): number => Math.max(0, ...waitsMs);
const median = ({ waitsMs }: Seen): number =>
  [...waitsMs].sort((a, b) => a - b)[Math.floor(waitsMs.length / 2)] ?? 0;

let bought = 0;
/** One purchase: a summary, an operation at another path, or an item of the resold API. */
async function buy(url: string, payer: Keypair, path = '/v1/summarize'): Promise<void> {
  const text = `${TEXT} This is call number ${++bought}.`;
  const send = (headers: Record<string, string>): Promise<Answer> =>
    path.startsWith(ITEMS) ? call(url + path, { headers }) : post(url + path, { text }, headers);
  type Offer = { amount: string; payTo: string; extra: { feePayer: string; recentBlockhash: string } };
  const offer = challengeOf(await send({})).accepts[0] as Offer;
  const { feePayer, recentBlockhash: blockhash } = offer.extra;
  const amount = BigInt(offer.amount);
  const { transaction } = craftPayment({ payer, amount, payTo: offer.payTo, feePayer, blockhash });
  const answer = await send({ 'PAYMENT-SIGNATURE': v2Header(offer, transaction) });
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body.toString().slice(0, 200)}`);
}

async function watch(seen: Seen, over: AbortSignal, call: () => Promise<unknown>): Promise<void> {
  while (!over.aborted) {
    const began = performance.now();
    const late = pause(CALL_MS).then(() => Promise.reject(new Error('no answer')));
    await Promise.race([call(), late]).catch((error: unknown) => seen.failures.push(String(error)));
    late.catch(() => {});
    seen.waitsMs.push(Math.round(performance.now() - began));
    await pause(PAUSE_MS);
  }
}

async function attacked(attack: string, url: string, attackers: Keypair[], seconds: number): Promise<Said> {
  const secrets = attackers.map(({ secretKey }) => Buffer.from(secretKey).toString('base64')).join(' ');
  const attacking = spawn(process.execPath, [ATTACKER, attack, url, String(seconds)], {
    env: { PATH: process.env['PATH'] ?? '', SECRETS: secrets },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: (seconds + 60) * 1_000,
  });
  if (attacking.pid !== undefined) setPriority(attacking.pid, NICE);
  let said = '';
  attacking.stdout.on('data', chunk => (said += String(chunk)));
  await once(attacking, 'close');
  return JSON.parse(said || '{"statuses":{},"perSecond":0,"bytes":0}') as Said;
}

async function measure(attack: string, sandbox: SpawnedSandbox, folder: string): Promise<Row> {
  const api = ON_RESOLD.has(attack) ? await ResoldApi.open() : undefined;
  const rpc = await countingProxy(sandbox.info.rpcUrl);
  const more = {
    ...(FROM_FAR.has(attack) ? { TRUST_PROXY: '1', SOLANA_RPC_URL: rpc.url } : {}),
    ...(api ? { SHOP_DIR: api.folder, ALLOW_PRIVATE_UPSTREAMS: 'true' } : {}),
  };
  const target = await Target.start(sandbox.info, more);
  try {
    const payers = await fundedPayers(sandbox.info, folder, PAYERS);
    const attackers = payers.splice(0, ATTACKERS);
    const used = { requests: 0, reads: 0, usdc: 0n };
    const note = async (): Promise<Cost> => ({
      requests: api?.requests ?? 0,
      reads: rpc.count('getAccountInfo') + rpc.count('getMultipleAccounts'),
      usdc: await usdcOf(sandbox.info, attackers),
    });
    const watched = await watchedAttack(attack, target, [attackers, payers], async () =>
      Object.assign(used, await note()),
    );
    const now = await note();
    const honest = api ? watched.known.waitsMs.length + watched.fresh.waitsMs.length : 0;
    const cost = {
      requests: Math.max(0, now.requests - used.requests - honest),
      reads: now.reads - used.reads,
      usdc: used.usdc - now.usdc,
    };
    if (attack !== 'nothing') await pause(AFTER_SECONDS * 1_000);
    const [before, most, end] = watched.sizes;
    return { ...watched, cost, sizes: [before, most, end, target.size()] };
  } finally {
    await target.stop();
    await rpc.close();
    await api?.close();
  }
}

/** Runs the attack while honest buyers buy. `begins` is called just before it. */
async function watchedAttack(
  attack: string,
  target: Target,
  [attackers, honest]: [Keypair[], Keypair[]],
  begins: () => Promise<unknown>,
): Promise<Omit<Row, 'cost' | 'sizes'> & { sizes: [before: Size, most: Size, end: Size] }> {
  const { url } = target;
  const [known, ...fresh] = honest as [Keypair, ...Keypair[]];
  const path = ON_RESOLD.has(attack) ? `${ITEMS}/1` : undefined;
  for (let n = 0; n < 3; n++) await buy(url, known, path);
  // What an honest call loads into memory must not count as the attack's.
  if (!path) for (const each of ['/v1/summarize', '/v1/tts']) await buy(url, attackers[0] as Keypair, each);
  await begins();
  const before = target.size();
  const most = { ...before };
  const row = { attack, known: unseen(), fresh: unseen(), health: unseen() };
  const over = new AbortController();
  const sampling = setInterval(() => {
    const now = target.size();
    most.rssMb = Math.max(most.rssMb, now.rssMb);
    most.ledgerMb = Math.max(most.ledgerMb, now.ledgerMb);
  }, 500);
  const watching = ALONE.has(attack)
    ? []
    : [
        watch(row.known, over.signal, () => buy(url, known, path)),
        watch(row.fresh, over.signal, async () => {
          const next = fresh.shift();
          await (next ? buy(url, next, path) : pause(1_000));
        }),
        watch(row.health, over.signal, () => fetch(`${url}/health`).then(answer => answer.text())),
      ];
  const began = performance.now();
  const asked = attack === 'late-signed work' ? LATE_SECONDS + ATTACK_SECONDS : ATTACK_SECONDS;
  const said = await attacked(attack, url, attackers, asked);
  over.abort();
  await Promise.all(watching);
  clearInterval(sampling);
  const seconds = (performance.now() - began) / 1_000;
  return { ...row, seconds, said, sizes: [before, most, target.size()] };
}

/** Commits for each refused payment; undefined if none was refused. */
function commitsPerRefusal(
  { attack, sizes: [before, , end], seconds, said }: Row,
  quiet: Row,
): number | undefined {
  const refused = said.statuses['402'] ?? 0;
  if (refused === 0) return undefined;
  const usual = ALONE.has(attack) ? 1 / LOOK_SECONDS : commitsOf(quiet) / quiet.seconds;
  return Math.max(0, end.commits - before.commits - usual * seconds) / refused;
}

function commitsOf({ sizes: [before, , end] }: Row): number {
  return end.commits - before.commits;
}

function faultsOf(row: Row, quiet: Row): string[] {
  const { known, sizes } = row;
  const delay = slowest(known) - slowest(quiet.known);
  const left = Math.round(sizes[3].rssMb - sizes[0].rssMb);
  const commits = commitsPerRefusal(row, quiet) ?? 0;
  return [
    ...(known.failures.length > 0 ? [`the known buyer failed ${known.failures.length} times`] : []),
    ...(delay > MAX_DELAY_MS ? [`the known buyer waited ${delay} ms longer`] : []),
    ...(left > MAX_LEFT_MB ? [`${left} MB are left`] : []),
    ...(commits > MAX_COMMITS ? [`${commits.toFixed(2)} commits for each refused payment`] : []),
  ];
}

const COLUMNS = [
  'attack',
  'the attacker got',
  'known buyer, usual / slowest',
  'new buyers',
  'health',
  'memory in MB before / most / after',
  'ledger in MB',
  'commits per refused payment',
  'processor time of the server',
  'cost to the operator',
  'cost to the attacker',
  'bounds',
];

function printed(row: Row, quiet: Row, faults: string[]): string {
  const { attack, said, known, fresh, health, sizes, seconds } = row;
  const seen = (who: Seen): string => {
    const { waitsMs, failures } = who;
    if (waitsMs.length === 0) return '–';
    const failed = failures.length === 0 ? '' : `, ${failures.length} of ${waitsMs.length} failed`;
    return `${median(who)} / ${slowest(who)} ms${failed}`;
  };
  const [before, most, end, after] = sizes;
  const each = (name: 'rssMb' | 'ledgerMb', digits: number): string =>
    [before, most, after].map(size => size[name].toFixed(digits)).join(' / ');
  const got = Object.entries(said.statuses).map(
    ([status, count]) => `${count} × ${status === '0' ? 'none' : status}`,
  );
  const cells = [
    attack,
    got.length === 0 ? '–' : `${got.join(', ')} (${said.perSecond} a second)`,
    seen(known),
    seen(fresh),
    seen(health),
    each('rssMb', 0),
    each('ledgerMb', 1),
    commitsPerRefusal(row, quiet)?.toFixed(2) ?? '–',
    `${Math.round((100 * (end.cpuSeconds - before.cpuSeconds)) / seconds)} %`,
    costOf(row),
    `${Number(row.cost.usdc) / 1e6} USDC`,
    faults.length === 0 ? 'held' : `MISSED: ${faults.join('; ')}`,
  ];
  return `| ${cells.join(' | ')} |\n`;
}

function costOf({ attack, cost, said, sizes: [before, , end] }: Row): string {
  const used = [
    ...(ON_RESOLD.has(attack) ? [`${cost.requests} requests to the API`] : []),
    ...(FROM_FAR.has(attack) && !ON_RESOLD.has(attack) ? [`${cost.reads} reads of the chain`] : []),
    `${end.logLines - before.logLines} log lines (${Math.round((end.logBytes - before.logBytes) / 1024)} KB)`,
    `${(said.bytes / 1e6).toFixed(1)} MB sent`,
  ];
  return used.join(', ');
}

const folder = await mkdtemp(join(tmpdir(), 'coinslot-attack-table-'));
const sandbox = await spawnSandbox({
  stateDir: folder,
  host: '127.0.0.1',
  rpcPort: 0,
  facilitatorPort: 0,
  publicUrl: 'http://127.0.0.1:8402',
  onExit: reason => process.stderr.write(`${reason}\n`),
});
let missed = 0;
try {
  process.stdout.write(`| ${COLUMNS.join(' | ')} |\n| ${COLUMNS.map(() => '---').join(' | ')} |\n`);
  let quiet: Row | undefined;
  for (const attack of ['nothing', ...CHOSEN.filter(name => name !== 'nothing')]) {
    const row = await measure(attack, sandbox, folder);
    quiet ??= row;
    const faults = faultsOf(row, quiet);
    missed += faults.length;
    process.stdout.write(printed(row, quiet, faults));
    for (const failure of new Set([...row.known.failures, ...row.fresh.failures, ...row.health.failures]))
      process.stderr.write(`${attack}: ${failure}\n`);
  }
} finally {
  await sandbox.stop();
  await rm(folder, { recursive: true, force: true });
}
process.exit(missed === 0 ? 0 : 1);
