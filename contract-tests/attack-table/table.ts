import '../../src/quiet.js';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Keypair } from '@solana/web3.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { Stage } from '../support/stage.js';
import { challengeOf, post, TEXT } from '../support/world.js';

/**
 * Runs each attack against a server in the sandbox and says what honest callers saw meanwhile. ATTACKS="held bodies;unfunded flood" selects,
 * SECONDS is how long each lasts (15), AFTER how long its memory may linger (60). Exits with 1 where a bound is broken.
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
];
const CHOSEN = process.env['ATTACKS']?.split(/\s*;\s*/) ?? ALL;
const ATTACK_SECONDS = Number(process.env['SECONDS'] ?? 15);
const AFTER_SECONDS = Number(process.env['AFTER'] ?? 60);
/** A payment is sent so long after it was signed, shortly before its blockhash dies. */
const LATE_SECONDS = 60;
const SLOT_MS = 400;
const CALL_MS = 20_000;
const PAUSE_MS = 250;
const MEGABYTE = 1024 * 1024;
const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const ATTACKER = fileURLToPath(new URL('attacker.js', import.meta.url));

/** An honest known buyer may wait so much longer than without an attack; so much memory may be left of one. */
const MAX_DELAY_MS = 1_000;
const MAX_LEFT_MB = 100;

type Seen = { slowestMs: number; failures: number; calls: number };
type Size = { rssMb: number; ledgerMb: number };
type Row = {
  attack: string;
  known: Seen;
  fresh: Seen;
  health: Seen;
  sizes: [Size, Size, Size];
  said: string;
};

const unseen = (): Seen => ({ slowestMs: 0, failures: 0, calls: 0 });

async function serve(stage: Stage, folder: string): Promise<{ url: string; child: ChildProcess }> {
  const env = {
    PATH: process.env['PATH'] ?? '',
    NETWORK: 'sandbox',
    PORT: '0',
    STATE_DIR: folder,
    SOLANA_RPC_URL: stage.sandbox.rpc.url,
    FACILITATOR_URL: stage.sandbox.facilitator.url,
    PAY_TO: stage.sandbox.info.payTo,
  };
  const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface(child.stdout)) {
    const url = /ready to be paid at (http[^"]+)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stdout.resume();
    return { url, child };
  }
  throw new Error('the server ended');
}

let bought = 0;
async function buy(url: string, payer: Keypair): Promise<void> {
  type Offer = { amount: string; payTo: string; extra: { feePayer: string; recentBlockhash: string } };
  const offer = challengeOf(await post(`${url}/v1/summarize`, {})).accepts[0] as Offer;
  const { feePayer, recentBlockhash: blockhash } = offer.extra;
  const { transaction } = craftPayment({ payer, payTo: offer.payTo, feePayer, blockhash });
  const text = `${TEXT} This is call number ${++bought}.`;
  const answer = await post(
    `${url}/v1/summarize`,
    { text },
    { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) },
  );
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body.toString().slice(0, 200)}`);
}

async function watch(seen: Seen, over: AbortSignal, call: () => Promise<unknown>): Promise<void> {
  while (!over.aborted) {
    const began = performance.now();
    const late = pause(CALL_MS).then(() => Promise.reject(new Error('no answer')));
    await Promise.race([call(), late]).catch(() => (seen.failures += 1));
    late.catch(() => {});
    seen.slowestMs = Math.max(seen.slowestMs, Math.round(performance.now() - began));
    seen.calls += 1;
    await pause(PAUSE_MS);
  }
}

function sizeOf(pid: number, folder: string): Size {
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  const bytes = ['ledger.db', 'ledger.db-wal'].map(
    name => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  return {
    rssMb: Math.round(kilobytes / 1024),
    ledgerMb: bytes.reduce((sum, each) => sum + each, 0) / MEGABYTE,
  };
}

async function measure(attack: string, stage: Stage): Promise<Row> {
  const folder = await mkdtemp(join(tmpdir(), 'coinslot-attacked-'));
  const { url, child } = await serve(stage, folder);
  try {
    const [known, attacker, ...fresh] = (await stage.payers(30)) as [Keypair, Keypair, ...Keypair[]];
    for (let n = 0; n < 3; n++) await buy(url, known);
    await buy(url, attacker);
    const size = (): Size => sizeOf(child.pid ?? 0, folder);
    const before = size();
    const during = { ...before };
    const row = { attack, known: unseen(), fresh: unseen(), health: unseen(), said: '' };
    const over = new AbortController();
    const seconds = attack === 'late-signed work' ? LATE_SECONDS + ATTACK_SECONDS : ATTACK_SECONDS;
    const attacking = spawn(process.execPath, [ATTACKER, attack, url, String(seconds)], {
      env: { PATH: process.env['PATH'] ?? '', SECRET: Buffer.from(attacker.secretKey).toString('base64') },
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: (seconds + 60) * 1_000,
    });
    attacking.stdout.on('data', chunk => (row.said += String(chunk)));
    const sampling = setInterval(() => {
      const now = size();
      during.rssMb = Math.max(during.rssMb, now.rssMb);
      during.ledgerMb = Math.max(during.ledgerMb, now.ledgerMb);
    }, 500);
    const watching = [
      watch(row.known, over.signal, () => buy(url, known)),
      watch(row.fresh, over.signal, async () => {
        const next = fresh.shift();
        await (next ? buy(url, next) : pause(1_000));
      }),
      watch(row.health, over.signal, () => fetch(`${url}/health`).then(answer => answer.text())),
    ];
    await once(attacking, 'exit');
    over.abort();
    await Promise.all(watching);
    clearInterval(sampling);
    if (attack !== 'nothing') await pause(AFTER_SECONDS * 1_000);
    return { ...row, sizes: [before, during, size()] };
  } finally {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    await rm(folder, { recursive: true, force: true });
  }
}

function faultsOf({ known, sizes: [before, , after] }: Row, quiet: Seen): string[] {
  const delay = known.slowestMs - quiet.slowestMs;
  return [
    ...(known.failures > 0 ? [`the known buyer failed ${known.failures} times`] : []),
    ...(delay > MAX_DELAY_MS ? [`the known buyer waited ${delay} ms longer`] : []),
    ...(after.rssMb - before.rssMb > MAX_LEFT_MB ? [`${after.rssMb - before.rssMb} MB are left`] : []),
  ];
}

function printed({ attack, known, fresh, health, sizes }: Row, faults: string[]): string {
  const seen = ({ slowestMs, failures, calls }: Seen): string =>
    `${slowestMs} ms, ${failures} of ${calls} failed`;
  const each = (name: keyof Size): string => sizes.map(size => Math.round(size[name] * 10) / 10).join(' / ');
  const verdict = faults.length === 0 ? 'held' : `MISSED: ${faults.join('; ')}`;
  const cells = [attack, seen(known), seen(fresh), seen(health), each('rssMb'), each('ledgerMb'), verdict];
  return `| ${cells.join(' | ')} |\n`;
}

const stage = await Stage.open(SLOT_MS);
let missed = 0;
try {
  process.stdout.write(
    '| attack | known buyer, slowest | new buyers, slowest | health, slowest | memory in MB before / most / after | ledger in MB | bounds |\n' +
      '| --- | --- | --- | --- | --- | --- | --- |\n',
  );
  let quiet: Seen | undefined;
  for (const attack of ['nothing', ...CHOSEN.filter(name => name !== 'nothing')]) {
    const row = await measure(attack, stage);
    quiet ??= row.known;
    const faults = faultsOf(row, quiet);
    missed += faults.length;
    process.stdout.write(printed(row, faults));
    process.stderr.write(`${attack}: the attacker got ${row.said || 'nothing'}\n`);
  }
} finally {
  await stage.close();
}
process.exit(missed === 0 ? 0 : 1);
