import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { introduce, paid } from './measure.js';
import { fetchOnce, MINT_BODY, runFolder, startFixed, startOurs, startPeer } from './processes.js';
import { textOf } from './text.js';

/** The servers of the throughput scenarios. All run at the same time; those that get no requests use no processor time. */

export const BRIEF = { path: '/v1/sol-token-brief', body: MINT_BODY };
export const MINT_INFO = { path: '/v1/sol-mint-info', body: MINT_BODY };
export const SUMMARIZE = { path: '/v1/summarize', body: JSON.stringify({ text: textOf(100_000) }) };

/** Headers that node:http adds itself. */
const OF_THE_CONNECTION = /^(date|connection|keep-alive)$/i;

/** @param {import('./processes.js').Server} server @param {{ method: string, path: string, body?: string }} what */
export async function recordAnswer(server, what) {
  const { status, rawHeaders, body } = await fetchOnce({ port: server.port, ...what });
  const headers = rawHeaders.filter((_, index) => !OF_THE_CONNECTION.test(rawHeaders[index - (index % 2)]));
  return { method: what.method, path: what.path, status, headers, body: body.toString('base64') };
}

/** Records one paid answer, so that the peers can sell exactly the same. @param {import('./measure.js').Bench} bench */
async function recordBrief(bench, server) {
  const { kept } = await paid(bench, server, { ...BRIEF, connections: 1, requests: 1, keep: true });
  return Buffer.from(kept, 'base64').toString('utf8');
}

/** @param {import('./measure.js').Bench} bench */
export async function startFleet(bench) {
  const { server: ours } = await startOurs(bench.stubs);
  const fixed = await Promise.all([
    recordAnswer(ours, { method: 'POST', path: BRIEF.path, body: BRIEF.body }),
    recordAnswer(ours, { method: 'GET', path: '/openapi.json' }),
  ]);
  const folder = runFolder('recorded');
  const fixedFile = join(folder, 'fixed.json');
  const answerFile = join(folder, 'brief.json');
  writeFileSync(fixedFile, JSON.stringify(fixed));
  writeFileSync(answerFile, await recordBrief(bench, ours));
  const { server: bare } = await startFixed('bare', fixedFile);
  const { server: fastify } = await startFixed('fastify', fixedFile);
  const { server: express } = await startPeer('express', bench.stubs, { answerFile });
  const { server: hono } = await startPeer('hono', bench.stubs, { answerFile });
  await introduce(bench, ours, BRIEF);
  const all = [ours, bare, fastify, express, hono];
  const selling = [ours, express, hono];
  const stop = () => Promise.all(all.map(server => server.stop()));
  return { ours, bare, fastify, express, hono, all, selling, answerFile, stop };
}

/** A sample answer for peers to sell where its content does not matter. @returns {string} the file */
export function sampleBriefFile() {
  const file = join(runFolder('recorded'), 'brief.json');
  const brief = { mint: 'as any', brief: 'of a token', sources: [], asOf: '2026-01-01T00:00:00Z' };
  writeFileSync(file, JSON.stringify(brief));
  return file;
}

/** Starts our server and the peers, with the same handler behind them. @param {import('./measure.js').Bench} bench */
export async function startSellers({ stubs }, { work, ...how }) {
  const [ours, express, hono] = [
    await startOurs(stubs, how),
    await startPeer('express', stubs, { ...how, work }),
    await startPeer('hono', stubs, { ...how, work }),
  ].map(({ server }) => server);
  const all = [ours, express, hono];
  return { ours, express, hono, all, stop: () => Promise.all(all.map(server => server.stop())) };
}
