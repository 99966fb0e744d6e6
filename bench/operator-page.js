import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { DAY_MS, fill, open, payers } from './filled-ledger.js';
import { median } from './figures.js';
import { cleanRuns, runFolder } from './processes.js';
import { look, serve, signIn } from './served-page.js';

/**
 * Measures how long the operator page takes for a ledger with a million sales in the last 30 days (`ROWS` sets another number), and how long it
 * blocks the server: for the first request, which starts counting the sales, for those during the count, and for later ones.
 */

const ROWS = Number(process.env.ROWS ?? 1_000_000);
const LATER_LOOKS = 20;
/** Pages that read the ledger on every request. */
const PAGES = [
  ['the first page of sales', '/sales'],
  ['sales of an operation that has none', '/sales?operation=nothing'],
  ['the best buyer', `/payers/${payers[0]}`],
];

/** @param {string} what @param {() => Promise<string>} work */
async function watched(what, work) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const figures = await work();
  delay.disable();
  const [p99, most] = [delay.percentile(99), delay.max].map(ns => (ns / 1e6).toFixed(1));
  process.stdout.write(
    `${what}: ${figures}; the event loop was delayed by ${p99} ms (p99), ${most} ms at most\n`,
  );
}

cleanRuns();
const file = join(runFolder('operator-page'), 'ledger.db');
const began = Date.now() - 29.5 * DAY_MS;
const { seconds } = await fill(file, ROWS, { began, everyMs: Math.floor((29.5 * DAY_MS) / ROWS) });
process.stdout.write(`${ROWS} sales of 30 days written in ${Math.round(seconds)} s\n`);
const ledger = await open(file);
const { url, close } = await serve(ledger);
const cookie = await signIn(url);
await watched('no requests', async () => (await pause(2_000), 'for comparison'));
const start = performance.now();
await watched('the first request', async () => {
  const { ms, counting } = await look(url, cookie);
  return `${Math.round(ms)} ms${counting ? ', still counting' : ''}`;
});
await watched('requests while sales are being counted', async () => {
  const times = [];
  for (let found = { counting: true, ms: 0 }; found.counting;) {
    await pause(200);
    found = await look(url, cookie);
    times.push(found.ms);
  }
  const whole = ((performance.now() - start) / 1_000).toFixed(1);
  return `${Math.round(median(times))} ms, ${Math.round(Math.max(...times))} ms at most; all sales were counted after ${whole} s`;
});
await watched('later requests', async () => {
  const times = [];
  for (let n = 0; n < LATER_LOOKS; n += 1) {
    await pause(200);
    times.push((await look(url, cookie)).ms);
  }
  return `${median(times).toFixed(1)} ms, ${Math.max(...times).toFixed(1)} ms at most`;
});
for (const [what, path] of PAGES)
  await watched(what, async () => {
    const times = [];
    for (let n = 0; n < LATER_LOOKS; n += 1) times.push((await look(url, cookie, path)).ms);
    return `${median(times).toFixed(1)} ms, ${Math.max(...times).toFixed(1)} ms at most`;
  });
await watched(
  'all sales as CSV',
  async () => `${((await look(url, cookie, '/sales.csv')).ms / 1_000).toFixed(1)} s`,
);
close();
await ledger.close();
cleanRuns();
