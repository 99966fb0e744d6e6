import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { conclude, PAIRS, QUICK_PAIRS, tablesOf } from './before.js';
import { median, record } from './figures.js';
import { BRIEF } from './fleet.js';
import { introduce, paid, unpaid } from './measure.js';
import { rounds } from './pace.js';
import { startOurs } from './processes.js';

const NAMES = ['with log and metrics', 'without'];
const SWITCH = ['--import', new URL('observation-switch.js', import.meta.url).href];
const QUICK_RUNS = 2;
/** Enough turns for other load on the machine to affect both variants equally. */
const RUNS = 8;
const SIGNAL_MS = 100;

/**
 * Measures what logs, metrics and traces cost. Each pair of figures comes from one new server, which switches them on and off in turns
 * (`observation-switch.js`); the two figures are the medians of these turns.
 * @param {import('./measure.js').Bench} bench
 */
export async function observation(bench) {
  const kinds = [
    {
      ...tablesOf('paid call', NAMES),
      run: server => paid(bench, server, { ...BRIEF, connections: 64, seconds: 4, mostPerSecond: 2_500 }),
    },
    {
      ...tablesOf('402', NAMES),
      run: server => unpaid(bench, server, { ...BRIEF, connections: 100, seconds: 2 }),
    },
  ];
  for (let pair = 0; pair < rounds(PAIRS, QUICK_PAIRS); pair++) {
    const { server } = await startOurs(bench.stubs, { nodeArgs: SWITCH });
    try {
      await introduce(bench, server, BRIEF);
      for (const kind of kinds) await measureTurns(server, kind, rounds(RUNS, QUICK_RUNS));
    } finally {
      await server.stop();
    }
  }
  for (const kind of kinds) conclude(bench, kind, NAMES);
}

async function measureTurns(server, { run, rate, spent }, runs) {
  // Lets V8 compile the code first.
  await run(server);
  await turnsOf(server);
  const turns = [];
  for (let at = 0; at < runs; at++) {
    await run(server);
    turns.push(...(await turnsOf(server)));
  }
  for (const [index, name] of NAMES.entries()) {
    const its = turns.filter(({ observed }) => observed === (index === 0));
    record(rate, name, median(its.map(({ calls, ms }) => (calls * 1_000) / ms)));
    record(spent, name, median(its.map(({ calls, cpu }) => cpu / calls)));
  }
}

/** The turns since the last reading, without those in which the load started or ended. */
async function turnsOf(server) {
  server.child.kill('SIGUSR2');
  await after(SIGNAL_MS);
  /** @type {import('./observation-switch.js').Turn[]} */
  const turns = JSON.parse(await readFile(join(server.folder, 'turns.json'), 'utf8'));
  return turns.filter(({ calls }) => calls > 0).slice(1, -1);
}
