import { best, ratio, record, table } from './figures.js';
import { BRIEF, MINT_INFO, sampleBriefFile, startSellers, SUMMARIZE } from './fleet.js';
import { interleave, introduce, paid, unpaid } from './measure.js';
import { amount, PACE, rounds, seconds } from './pace.js';
import { prepareSignatures } from './payments.js';
import { startEngine } from './processes.js';
import { SPEECH_PRICE } from './terms.js';
import { textOf } from './text.js';

/** @typedef {import('./measure.js').Bench} Bench */

const PEERS = ['@x402/express', '@x402/hono'];
const SPEECHES = 400;

/**
 * Measures one call at a time, from known payers. The peers wait for verify, work and settle; for known payers, our server skips verify.
 * @param {Bench} bench
 */
export async function latency(bench) {
  await latencyOf(bench, 'mint', {
    call: MINT_INFO,
    title: 'Latency of a paid call, known payers, 50 ms each for verify, work and settle',
    note: 'The work reads a mint from a chain that takes 50 ms to answer.',
    measure: 'latency at 50/50/50 ms / @x402/express (floor 0.667)',
    bound: 0.69,
  });
  await latencyOf(bench, 'instant', {
    call: BRIEF,
    title: 'Latency of a paid call, known payers, 50 ms each for verify and settle, instant work',
    note: 'Our server answers from its cache, and the peers from memory.',
    measure: 'latency at 50/0/50 ms / @x402/express (floor 0.5)',
    bound: 0.54,
  });
}

async function latencyOf(bench, work, { call, title, note, measure, bound }) {
  const sellers = await startSellers(bench, { work, slow: true, answerFile: sampleBriefFile() });
  try {
    const of = table(title, 'ms', 'less');
    const job = { ...call, connections: 1, requests: amount(25, 6) };
    await introduce(bench, sellers.ours, call);
    await interleave(of, sellers.all, rounds(7, 3), async server => (await paid(bench, server, job)).p50);
    of.notes.push(note);
    bench.report.add(of);
    bench.report.gate(measure, ratio(of, 'coinslot', '@x402/express'), 'most', bound);
  } finally {
    await sellers.stop();
  }
}

/** Summarises 100 KB with an external model, then with the embedded summariser. @param {Bench} bench */
export async function summaries(bench) {
  const elsewhere = await summariesWith(bench, 'model', 'by a model that answers instantly', 16);
  const peer = best(elsewhere, PEERS);
  bench.report.gate(
    `paid summarize, 100 KB / best peer (${peer})`,
    ratio(elsewhere, 'coinslot', peer),
    'least',
    1.2,
  );
  await summariesWith(bench, 'summarize', 'by the embedded summariser', 4);
}

async function summariesWith(bench, work, by, connections) {
  const sellers = await startSellers(bench, { work, model: work === 'model' });
  try {
    const of = table(`Paid summarize of 100 KB ${by}`, 'calls/s');
    await introduce(bench, sellers.ours, { ...SUMMARIZE, connections: 2 });
    for (const server of sellers.all)
      await paid(bench, server, { ...SUMMARIZE, connections, requests: 2 * connections });
    await interleave(of, sellers.all, rounds(5, 3), async server => {
      const result = await paid(bench, server, {
        ...SUMMARIZE,
        connections,
        seconds: seconds(4, 1.2),
        mostPerSecond: 2_000,
      });
      return result.answers / result.seconds;
    });
    of.notes.push(`${connections} connections; all servers use the same summariser.`);
    bench.report.add(of);
    return of;
  } finally {
    await sellers.stop();
  }
}

/** @param {Bench} bench */
export async function speech(bench) {
  await prepareSignatures(SPEECH_PRICE, SPEECHES);
  const sellers = await startSellers(bench, { work: 'speech' });
  const { server: engine } = await startEngine();
  try {
    const of = table('Speech of 2 500 characters', 's', 'less');
    const spent = table('Processor time of a speech of 2 500 characters', 's', 'less');
    const body = JSON.stringify({ text: textOf(2_500) });
    const job = { path: '/v1/tts', body, connections: 1, requests: 1 };
    const buy = { ...job, amount: SPEECH_PRICE, prepared: SPEECHES };
    const ask = server =>
      server === engine ? unpaid(bench, server, { ...job, status: 200 }) : paid(bench, server, buy);
    const servers = PACE === 'full' ? [...sellers.all, engine] : [sellers.ours, sellers.express, engine];
    for (const server of servers) await ask(server);
    await interleave(of, servers, rounds(7, 3), async server => {
      const before = server.cpuSeconds();
      const { p50 } = await ask(server);
      if (before !== undefined) record(spent, server.name, server.cpuSeconds() - before);
      return p50 / 1_000;
    });
    of.notes.push(
      'About 140 s of sound, 6 MB. The engine alone synthesises the whole text in one run and returns its 16 kHz sound, without payment.',
    );
    bench.report.add(of);
    bench.report.add(spent);
    const value = ratio(of, 'coinslot', engine.name);
    bench.report.gate('speech of 2 500 characters / the engine alone', value, 'most', 1.05);
  } finally {
    await Promise.all([sellers.stop(), engine.stop()]);
  }
}
