import process from 'node:process';
import { interval, ratio, record, table } from './figures.js';
import { BRIEF } from './fleet.js';
import { introduce, paid, unpaid } from './measure.js';
import { startOurs } from './processes.js';

/** Of the ratio of two versions, or of with and without: 3 % may be lost. */
const LEAST = 0.97;

/**
 * What a change cost: this version beside another one, built in the folder `BEFORE`. Without that folder nothing is measured.
 * @param {import('./measure.js').Bench} bench
 */
export async function before(bench) {
  const root = process.env.BEFORE;
  if (!root) throw new Error('BEFORE=<a checkout of another version, built> names what to compare with');
  await beside(bench, ['this version', {}], ['the version before', { root }]);
}

/** What log, metrics and traces cost: this version beside itself without them. @param {import('./measure.js').Bench} bench */
export async function observation(bench) {
  const nodeArgs = ['--import', new URL('unobserved.js', import.meta.url).href];
  await beside(bench, ['with log and metrics', {}], ['without', { nodeArgs }]);
}

/** Two servers in interleaved pairs. */
async function beside(bench, ...how) {
  const servers = [];
  try {
    for (const [name, options] of how) {
      const { server } = await startOurs(bench.stubs, options);
      server.name = name;
      servers.push(server);
      await introduce(bench, server, BRIEF);
    }
    const seconds = bench.quick ? 0.5 : 2;
    const sell = server => paid(bench, server, { ...BRIEF, connections: 64, seconds });
    const refuse = server => unpaid(bench, server, { ...BRIEF, connections: 100, seconds: seconds / 2 });
    await compare(bench, servers, 'paid call', sell);
    await compare(bench, servers, '402', refuse);
  } finally {
    await Promise.all(servers.map(server => server.stop()));
  }
}

/** Calls per second and processor time of one kind of call, with the ratio of the two versions and its 95 % interval. */
async function compare(bench, servers, what, run) {
  const [one, other] = servers.map(({ name }) => name);
  const rate = table(`${what}, ${one} and ${other}`, 'calls/s');
  const spent = table(`Processor time of the server per ${what}, ${one} and ${other}`, 'µs', 'less');
  for (const server of servers) await run(server);
  for (let pair = 0; pair < (bench.quick ? 5 : 15); pair++)
    for (const server of pair % 2 ? servers.toReversed() : servers) {
      const began = server.cpuSeconds();
      const { answers, seconds } = await run(server);
      const ended = server.cpuSeconds();
      record(rate, server.name, answers / seconds);
      if (began !== undefined && ended !== undefined)
        record(spent, server.name, ((ended - began) * 1e6) / answers);
    }
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
