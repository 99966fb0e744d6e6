import process from 'node:process';
import { interval, ratio, record, table } from './figures.js';
import { BRIEF } from './fleet.js';
import { introduce, paid, unpaid } from './measure.js';
import { rounds, seconds } from './pace.js';
import { startOurs } from './processes.js';

/** The lowest acceptable ratio of this version's figure to the other's: a loss of up to 3 % is accepted. */
const LEAST = 0.97;

/**
 * Measures the cost of a change: compares this version with another one, which is built in the folder `BEFORE`.
 * @param {import('./measure.js').Bench} bench
 */
export async function before(bench) {
  const root = process.env.BEFORE;
  if (!root) throw new Error('set BEFORE to the folder of a built checkout of the version to compare with');
  await beside(bench, ['this version', {}], ['the other version', { root }]);
}

export const PAIRS = 15;
export const QUICK_PAIRS = 5;

/**
 * Measures two servers in interleaved pairs. Both are restarted for every pair, because two processes of the same program can differ by up to a
 * tenth for as long as they run.
 */
async function beside(bench, ...how) {
  const names = how.map(([name]) => name);
  const tables = { paid: tablesOf('paid call', names), unpaid: tablesOf('402', names) };
  for (let pair = 0; pair < rounds(PAIRS, QUICK_PAIRS); pair++) {
    const servers = [];
    try {
      for (const [name, options] of pair % 2 ? how.toReversed() : how)
        servers.push(await startedAs(bench, name, options));
      await measurePair(bench, servers, tables);
    } finally {
      await Promise.all(servers.map(server => server.stop()));
    }
  }
  for (const what of Object.values(tables)) conclude(bench, what, names);
}

async function startedAs(bench, name, options) {
  const { server } = await startOurs(bench.stubs, options);
  server.name = name;
  await introduce(bench, server, BRIEF);
  return server;
}

/**
 * One figure per server for each kind of call. The first four thousand paid calls of a process are not measured: they cost half as much again as
 * later ones, because V8 is still compiling.
 */
async function measurePair(bench, servers, tables) {
  const sell = (server, time) => paid(bench, server, { ...BRIEF, connections: 64, seconds: time });
  const refuse = (server, time) => unpaid(bench, server, { ...BRIEF, connections: 100, seconds: time });
  for (const [run, into, warm, measured] of [
    [sell, tables.paid, seconds(8, 2), seconds(4, 1)],
    [refuse, tables.unpaid, seconds(2, 1), seconds(2, 1)],
  ]) {
    for (const server of servers) await run(server, warm);
    for (const server of servers) await measure(server, each => run(each, measured), into);
  }
}

async function measure(server, run, { rate, spent }) {
  const began = server.cpuSeconds();
  const { answers, seconds } = await run(server);
  const ended = server.cpuSeconds();
  record(rate, server.name, answers / seconds);
  if (began !== undefined && ended !== undefined)
    record(spent, server.name, ((ended - began) * 1e6) / answers);
}

export function tablesOf(what, [one, other]) {
  return {
    what,
    rate: table(`${what}, ${one} and ${other}`, 'calls/s'),
    spent: table(`Processor time of the server per ${what}, ${one} and ${other}`, 'µs', 'less'),
  };
}

/** Adds the ratio of the two versions to the report, with its 95 % interval. */
export function conclude(bench, { what, rate, spent }, [one, other]) {
  for (const of of [rate, spent]) {
    const between = interval(of, one, other);
    if (between) {
      const [mean, low, high] = between.map(value => value.toFixed(3));
      of.notes.push(`Mean of the pairs' ratios ${mean}, 95 % interval ${low} to ${high}.`);
    }
    bench.report.add(of);
  }
  bench.report.gate(`${what}, ${one} / ${other}`, ratio(rate, one, other), 'least', LEAST);
}
