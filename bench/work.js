import { best, ratio, table } from './figures.js';
import { MINT_INFO, startSellers, SUMMARIZE } from './fleet.js';
import { interleave, introduce, paid } from './measure.js';
import { prepareSignatures } from './payments.js';
import { SPEECH_PRICE } from './terms.js';
import { textOf } from './text.js';

/** @typedef {import('./measure.js').Bench} Bench */

const PEERS = ['@x402/express', '@x402/hono'];
const SPEECHES = 400;

/** Facilitator 50 ms, work 50 ms: three waits for the peers, two for us. @param {Bench} bench */
export async function latency(bench) {
  const sellers = await startSellers(bench, { work: 'mint', slow: true });
  try {
    const of = table(
      'Latency of a paid call, one known payer, 50 ms each for verify, work and settle',
      'ms',
      'less',
    );
    const job = { ...MINT_INFO, connections: 1, requests: bench.quick ? 6 : 25 };
    await introduce(bench, sellers.ours, MINT_INFO);
    await interleave(
      of,
      sellers.all,
      bench.quick ? 3 : 7,
      async server => (await paid(bench, server, job)).p50,
    );
    of.notes.push(
      'The work reads a mint from a chain that takes 50 ms. Verify and work side by side, then settle, is 100 ms.',
    );
    bench.report.add(of);
    const value = ratio(of, 'coinslot', '@x402/express');
    bench.report.gate('latency at 50/50/50 ms / @x402/express (floor 0.667)', value, 'most', 0.72);
  } finally {
    await sellers.stop();
  }
}

/** 100 KB to be summarised elsewhere, then by the embedded summariser. @param {Bench} bench */
export async function summaries(bench) {
  const elsewhere = await summariesWith(bench, 'model', 'by a model that answers at once', 16);
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
    const seconds = bench.quick ? 1.2 : 4;
    await introduce(bench, sellers.ours, { ...SUMMARIZE, connections: 2 });
    for (const server of sellers.all)
      await paid(bench, server, { ...SUMMARIZE, connections, requests: 2 * connections });
    await interleave(of, sellers.all, bench.quick ? 3 : 5, async server => {
      const result = await paid(bench, server, { ...SUMMARIZE, connections, seconds, mostPerSecond: 2_000 });
      return result.answers / result.seconds;
    });
    of.notes.push(`${connections} connections; the same summariser behind all.`);
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
  try {
    const of = table('Paid speech of 2 500 characters', 's', 'less');
    const body = JSON.stringify({ text: textOf(2_500) });
    const job = { path: '/v1/tts', body, amount: SPEECH_PRICE, prepared: SPEECHES, connections: 1 };
    const calls = bench.quick ? 1 : 2;
    const servers = bench.quick ? [sellers.ours, sellers.express] : sellers.all;
    if (!bench.quick) for (const server of servers) await paid(bench, server, { ...job, requests: 1 });
    await interleave(of, servers, bench.quick ? 1 : 3, async server => {
      const { p50 } = await paid(bench, server, { ...job, requests: calls });
      return p50 / 1_000;
    });
    of.notes.push('About 165 s of sound, 7 MB, made by the same engine behind all.');
    bench.report.add(of);
  } finally {
    await sellers.stop();
  }
}
