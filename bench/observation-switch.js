import { writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setInterval } from 'node:timers';

/**
 * Loaded by `--import` into our server. By turns, it works with and without log lines of sales, metrics, traces and reports of the
 * ledger; on SIGUSR2 it writes what the turns took into `turns.json`. Both in one process, because two processes of the same program
 * differ by more than observing costs; and in short turns, because what else a machine does changes from second to second.
 * @typedef {{ observed: boolean, calls: number, ms: number, cpu: number }} Turn `cpu`: processor time in µs
 */
const TURN_MS = 250;

/** Read by the modules in `switched-modules.js`. */
const turn = { observed: true, calls: 0 };
globalThis.turn = turn;

/** @type {Turn[]} */
let turns = [];
let began = now();

function now() {
  const { user, system } = process.cpuUsage();
  return { ms: performance.now(), cpu: user + system };
}

setInterval(() => {
  const ended = now();
  turns.push({ ...turn, ms: ended.ms - began.ms, cpu: ended.cpu - began.cpu });
  began = ended;
  turn.observed = !turn.observed;
  turn.calls = 0;
}, TURN_MS).unref();

process.on('SIGUSR2', () => {
  writeFileSync('turns.json', JSON.stringify(turns));
  turns = [];
});
register('./switched-modules.js', import.meta.url);
