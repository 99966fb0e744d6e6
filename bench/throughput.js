import { best, median, ratio, record, table } from './figures.js';
import { BRIEF, sampleBriefFile, startFleet, startSellers } from './fleet.js';
import { interleave, introduce, paid, unpaid } from './measure.js';
import { amount, rounds, seconds } from './pace.js';
import { Partner } from './processes.js';
import { PAYERS } from './terms.js';
import { textOf } from './text.js';

/** @typedef {import('./measure.js').Bench} Bench */

const PEERS = ['@x402/express', '@x402/hono'];

/** Calls per second. Notes how busy the load generator was: at a value close to 1, it would itself be the limit. */
function perSecond(result, busy) {
  busy.push(result.cpu);
  return result.answers / result.seconds;
}

/** @param {number[]} busy */
function busyNote(busy) {
  return `The load generator used at most ${Math.round(100 * Math.max(...busy))} % of its core.`;
}

/** Measures 402s with several numbers of connections. @param {Bench} bench @param {import('./fleet.js').Fleet} fleet */
async function challenges(bench, fleet) {
  for (const connections of [100, 1, 10, 1000]) {
    const of = table(`402, ${connections} connection${connections > 1 ? 's' : ''}`, 'calls/s');
    const job = { ...BRIEF, connections, seconds: seconds(3, 0.5) };
    const busy = [];
    for (const server of fleet.all) await unpaid(bench, server, { ...job, seconds: seconds(2, 0.3) });
    await interleave(of, fleet.all, rounds(7, connections === 100 ? 4 : 2), async server =>
      perSecond(await unpaid(bench, server, job), busy),
    );
    of.notes.push(busyNote(busy));
    bench.report.add(of);
    if (connections !== 100) continue;
    bench.report.gate('402 / bare node:http', ratio(of, 'coinslot', 'node:http'), 'least', 0.9);
    bench.report.gate('402 / @x402/express', ratio(of, 'coinslot', '@x402/express'), 'least', 8);
    bench.report.gate('402 / @x402/hono', ratio(of, 'coinslot', '@x402/hono'), 'least', 5);
  }
}

/** @param {Bench} bench @param {import('./fleet.js').Fleet} fleet */
async function largeBodies(bench, fleet) {
  const of = table('402, body of 1 MB, 10 connections', 'calls/s');
  const body = JSON.stringify({ text: textOf(1_000_000) });
  const job = { path: '/v1/sol-token-brief', body, connections: 10, seconds: seconds(2, 0.6) };
  const busy = [];
  await interleave(of, fleet.all, rounds(5, 2), async server =>
    perSecond(await unpaid(bench, server, job), busy),
  );
  of.notes.push(busyNote(busy), 'No server reads the body, but all have to receive it.');
  bench.report.add(of);
}

/**
 * @param {Bench} bench @param {import('./processes.js').Server[]} servers ours and the peers, which all know the payers
 * @param {{ where: string, bound: number }} how
 */
async function sales(bench, servers, { where, bound }) {
  const of = table(`Paid call, instant backend, ${where}, 64 connections, ${PAYERS} payers`, 'calls/s');
  const spent = table(`Processor time of the server per paid call, ${where}`, 'µs', 'less');
  const job = { ...BRIEF, connections: 64, seconds: seconds(4, 1.5) };
  const busy = [];
  for (const server of servers) await paid(bench, server, { ...job, seconds: seconds(8, 1.5) });
  await interleave(of, servers, rounds(5, 3), async server => {
    const before = server.cpuSeconds();
    const result = await paid(bench, server, job);
    const after = server.cpuSeconds();
    if (before !== undefined && after !== undefined)
      record(spent, server.name, ((after - before) * 1e6) / result.answers);
    return perSecond(result, busy);
  });
  of.notes.push(
    busyNote(busy),
    'Coinslot stores every payment in a ledger on disk (fsync); the peers store nothing.',
  );
  bench.report.add(of);
  bench.report.add(spent);
  const peer = best(of, PEERS);
  bench.report.gate(
    `paid, instant backend, ${where} / best peer (${peer})`,
    ratio(of, 'coinslot', peer),
    'least',
    bound,
  );
}

/** Measures sales without pinning: the server, its threads, the stubs and the load generator share all cores. @param {Bench} bench */
export async function cores(bench) {
  const [stubs, load] = [new Partner('stubs.js', null), new Partner('load.js', null)];
  const here = { ...bench, stubs: await stubs.hears(), load };
  const sellers = await startSellers(here, { answerFile: sampleBriefFile(), core: null });
  try {
    await introduce(here, sellers.ours, BRIEF);
    await sales(here, sellers.all, { where: 'nothing pinned', bound: 4 });
  } finally {
    await sellers.stop();
    stubs.end();
    load.end();
  }
}

/** Measures the number of sales per request to the facilitator. @param {Bench} bench */
export async function asks(bench) {
  const sellers = await startSellers(bench, { answerFile: sampleBriefFile() });
  try {
    const of = table('Sales per request to the facilitator, known payers', 'sales');
    const job = { ...BRIEF, connections: 64, requests: amount(10_000, 1_000) };
    await introduce(bench, sellers.ours, BRIEF);
    for (const server of sellers.all) {
      const before = await bench.asked();
      const { answers } = await paid(bench, server, job);
      record(of, server.name, answers / ((await bench.asked()) - before));
    }
    bench.report.add(of);
    const value = median(of.rows.get('coinslot'));
    bench.report.gate('sales per facilitator request, known payers', value, 'least', 1);
  } finally {
    await sellers.stop();
  }
}

/** @param {Bench} bench @param {import('./fleet.js').Fleet} fleet */
async function documents(bench, fleet) {
  const of = table('GET /openapi.json, 50 connections', 'calls/s');
  const job = {
    path: '/openapi.json',
    method: 'GET',
    connections: 50,
    seconds: seconds(2, 0.6),
    status: 200,
  };
  const busy = [];
  const servers = [fleet.ours, fleet.bare, fleet.fastify];
  await interleave(of, servers, rounds(5, 3), async server =>
    perSecond(await unpaid(bench, server, job), busy),
  );
  of.notes.push(busyNote(busy));
  bench.report.add(of);
  bench.report.gate('/openapi.json / bare node:http', ratio(of, 'coinslot', 'node:http'), 'least', 0.9);
}

/** Compares all servers with backends that answer instantly. @param {Bench} bench */
export async function throughput(bench) {
  const fleet = await startFleet(bench);
  try {
    await challenges(bench, fleet);
    await sales(bench, fleet.selling, { where: 'one core', bound: 3 });
    await largeBodies(bench, fleet);
    await documents(bench, fleet);
  } finally {
    await fleet.stop();
  }
}
