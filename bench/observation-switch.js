import { writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setInterval, setTimeout } from 'node:timers';

/**
 * Loaded into our server by `--import`. Switches log lines of sales, metrics, traces and ledger reports on and off in short turns. On SIGUSR2 it
 * writes the durations to `turns.json`. Both variants run in one process, because two processes of the same program differ by more than logs,
 * metrics, traces and reports cost, and in short turns, because other load on the machine changes from second to second.
 * @typedef {{ observed: boolean, calls: number, ms: number, cpu: number }} Turn `cpu`: processor time in µs
 */
const TURN_MS = 350;
/** The beginning of a turn is not measured, because buffered log lines of the previous turn are written then. */
const UNMEASURED_MS = 100;

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

function begin() {
  turn.calls = 0;
  began = now();
}

setInterval(() => {
  const ended = now();
  turns.push({ ...turn, ms: ended.ms - began.ms, cpu: ended.cpu - began.cpu });
  turn.observed = !turn.observed;
  setTimeout(begin, UNMEASURED_MS);
}, TURN_MS).unref();

process.on('SIGUSR2', () => {
  writeFileSync('turns.json', JSON.stringify(turns));
  turns = [];
});
register('./switched-modules.js', import.meta.url);
