import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { BRIEF, SUMMARIZE } from './fleet.js';
import { introduce, paid, PREPARED, unpaid } from './measure.js';
import { prepareSignatures } from './payments.js';
import { Partner, startOurs } from './processes.js';
import { PRICE } from './terms.js';

/**
 * Profiles our server: `node bench/profile.js paid` (or `unpaid`, `summarize`, `start`; SECONDS=8). Prints self times by function and by part of
 * the program, without idle time.
 */

const [kind = 'paid'] = process.argv.slice(2);
const seconds = Number(process.env.SECONDS ?? 6);
const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** @param {string} url @returns {string} the package or folder that a frame belongs to */
function partOf(url) {
  const packaged = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  if (packaged) return packaged;
  if (url.startsWith('node:')) return url.replace(/^(node:(?:internal\/)?[^/]+).*/, '$1');
  return url.replace('file://', '').replace(`${ROOT}dist/`, '') || '(native)';
}

/** @param {string} file a .cpuprofile @param {number} lastMs how much of the profile's end counts, to leave out the server's start */
function shares(file, lastMs) {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8'));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parts = new Map();
  const functions = new Map();
  let total = 0;
  let left = timeDeltas.reduce((sum, delta) => sum + delta, 0);
  samples.forEach((id, index) => {
    left -= timeDeltas[index];
    if (left > lastMs * 1_000) return;
    const { functionName, url, lineNumber } = frames.get(id);
    if (/^\((idle|root)\)$/.test(functionName)) return;
    total += timeDeltas[index];
    const part =
      functionName === '(garbage collector)' || functionName === '(program)' ? functionName : partOf(url);
    const name = `${functionName || '(anonymous)'} ${part}:${lineNumber + 1}`;
    parts.set(part, (parts.get(part) ?? 0) + timeDeltas[index]);
    functions.set(name, (functions.get(name) ?? 0) + timeDeltas[index]);
  });
  return { total, parts, functions };
}

/** @param {Map<string, number>} times in µs @param {number} total @param {number} calls */
function print(times, total, calls) {
  const top = [...times].sort((a, b) => b[1] - a[1]).slice(0, 45);
  for (const [name, time] of top) {
    const share = ((100 * time) / total).toFixed(1).padStart(5);
    process.stdout.write(`${share} %  ${(time / calls).toFixed(1).padStart(8)} µs  ${name}\n`);
  }
}

await prepareSignatures(PRICE, PREPARED);
const stubs = new Partner('stubs.js');
const load = new Partner('load.js');
const bench = { stubs: await stubs.hears(), load };
const nodeArgs = ['--cpu-prof', '--cpu-prof-interval=200'];
const { server } = await startOurs(bench.stubs, { nodeArgs, model: kind === 'summarize' });
let calls = 1;
if (kind === 'paid') {
  await introduce(bench, server, BRIEF);
  calls = (await paid(bench, server, { ...BRIEF, connections: 64, seconds })).answers;
} else if (kind === 'summarize') {
  await introduce(bench, server, { ...SUMMARIZE, connections: 2 });
  calls = (await paid(bench, server, { ...SUMMARIZE, connections: 16, seconds, mostPerSecond: 2_000 }))
    .answers;
} else if (kind === 'unpaid') {
  calls = (await unpaid(bench, server, { ...BRIEF, connections: 100, seconds })).answers;
}
const cpu = server.cpuSeconds();
await server.stop();
stubs.end();
load.end();
const [file] = readdirSync(server.folder).filter(name => name.endsWith('.cpuprofile'));
const { total, parts, functions } = shares(
  join(server.folder, file),
  kind === 'start' ? Infinity : seconds * 1_000,
);
process.stdout.write(
  `${kind}: ${calls} calls, ${cpu} s of processor time, ${Math.round(calls / seconds)} calls/s\n\n`,
);
print(parts, total, calls);
process.stdout.write('\n');
print(functions, total, calls);
process.stdout.write(`\nprofile: ${join(server.folder, file)}\n`);
