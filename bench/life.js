import { median, ratio, record, table } from './figures.js';
import { BRIEF, sampleBriefFile } from './fleet.js';
import { introduce, paid, unpaid } from './measure.js';
import { amount, rounds } from './pace.js';
import { shopOfApis, startOurs, startPeer } from './processes.js';

/** @typedef {import('./measure.js').Bench} Bench */

const OF_APIS = 'coinslot with three HTTP APIs';

/** @param {Bench} bench @param {string} shop */
const startOfApis = ({ stubs }, shop) =>
  startOurs(stubs, {
    name: OF_APIS,
    shop,
    probe: '/v1/orders',
    env: { PETSTORE_URL: stubs.market, PETSTORE_KEY: 'special-key', ALLOW_PRIVATE_UPSTREAMS: 'true' },
  });

/** @param {Bench} bench @param {string} file */
function starters({ stubs }, file) {
  return [
    () => startOurs(stubs),
    () => startPeer('express', stubs, { answerFile: file }),
    () => startPeer('hono', stubs, { answerFile: file }),
  ];
}

/**
 * Measures the time from the start of the process to the first 402 and to the first answer to a payment. Each run begins with an empty
 * state folder.
 * @param {Bench} bench
 */
export async function starts(bench) {
  const of = table('Start to the first answer', 'ms', 'less');
  const spent = table('Processor time until the first answer', 'ms', 'less');
  const ready = table('Start to the first answer to a payment', 'ms', 'less');
  of.notes.push('Coinslot opens its port only when it can accept payments.');
  ready.notes.push('The payment is an invalid one, which is refused.');
  const file = sampleBriefFile();
  const shop = shopOfApis();
  for (let round = 0; round < rounds(11, 3); round++) {
    for (const start of [...starters(bench, file), () => startOfApis(bench, shop)]) {
      const { server, startMs, startCpu, readyMs } = await start();
      record(of, server.name, startMs);
      record(ready, server.name, readyMs);
      if (startCpu !== undefined) record(spent, server.name, startCpu * 1_000);
      await server.stop();
    }
  }
  bench.report.add(of);
  bench.report.add(spent);
  bench.report.add(ready);
  const express = '@x402/express';
  const compared = table('Start until ready to be paid', 'ms', 'less');
  compared.rows.set('coinslot', ready.rows.get('coinslot')).set(express, of.rows.get(express));
  compared.rows.set(OF_APIS, ready.rows.get(OF_APIS));
  const measure = 'start until ready to be paid / start of @x402/express to its first answer';
  bench.report.gate(measure, ratio(compared, 'coinslot', express), 'most', 3.5);
  bench.report.gate(`${measure}, three HTTP APIs`, ratio(compared, OF_APIS, express), 'most', 2.5);
}

/** Measures resident memory, idle and after the same number of calls. @param {Bench} bench */
export async function memory(bench) {
  const idle = table('Memory, idle', 'MB', 'less');
  const after = table('Memory after load', 'MB', 'less');
  const file = sampleBriefFile();
  const calls = { unpaid: amount(20_000, 5_000), paid: amount(6_000, 1_000) };
  for (let round = 0; round < rounds(3, 1); round++) {
    for (const start of starters(bench, file)) {
      const { server } = await start();
      await settle();
      if (server.memory() === undefined) return bench.report.skip('memory', 'this system has no /proc');
      record(idle, server.name, server.memory());
      await introduce(bench, server, BRIEF);
      await unpaid(bench, server, { ...BRIEF, connections: 100, requests: calls.unpaid });
      await paid(bench, server, { ...BRIEF, connections: 64, requests: calls.paid });
      record(after, server.name, server.memory());
      await server.stop();
    }
  }
  const shop = shopOfApis();
  for (let round = 0; round < rounds(3, 1); round++) {
    const { server } = await startOfApis(bench, shop);
    await settle();
    record(idle, server.name, server.memory());
    await server.stop();
  }
  after.notes.push(`After ${calls.unpaid} unpaid calls and ${calls.paid} paid ones.`);
  bench.report.add(idle);
  bench.report.add(after);
  const value = median(after.rows.get('coinslot')) / median(after.rows.get('@x402/express'));
  bench.report.gate('memory after load / @x402/express', value, 'most', 0.9);
  bench.report.gate('MB of memory, idle, three HTTP APIs', median(idle.rows.get(OF_APIS)), 'most', 100);
}

/** Waits until the work after startup is done. */
const settle = () => new Promise(resolve => setTimeout(resolve, 2_000));
