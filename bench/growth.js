import { performance } from 'node:perf_hooks';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { ratio, record, table } from './figures.js';
import { BRIEF } from './fleet.js';
import { interleave, introduce, paid, unpaid } from './measure.js';
import { amount, rounds, seconds } from './pace.js';
import { Partner, runFolder, SERVER_CORE, startOurs } from './processes.js';

/** @typedef {import('./measure.js').Bench} Bench */

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const ID = { name: 'id', in: 'path', required: true, schema: { type: 'string' }, example: 'a' };
const MANY_ROWS = amount(1_000_000, 1_000_000);

/**
 * Writes a shop with a longer contract: copies of the paid operations under other paths and names, every second one with a path parameter.
 * @param {number} wanted operations in all @returns {string} the folder
 */
export function withOperations(wanted) {
  const folder = runFolder(`operations-${wanted}`);
  mkdirSync(join(folder, 'dist'));
  cpSync(join(ROOT, 'dist/handlers'), join(folder, 'dist/handlers'), { recursive: true });
  // Imported by the handlers.
  symlinkSync(join(ROOT, 'dist/src'), join(folder, 'dist/src'));
  // Sent to browsers by the handlers' pages.
  symlinkSync(join(ROOT, 'handlers'), join(folder, 'handlers'));
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  const contract = parse(readFileSync(join(ROOT, 'openapi.yaml'), 'utf8'));
  const models = Object.entries(contract.paths).filter(
    ([, { post }]) => post?.['x-price']?.flow === 'authorization',
  );
  for (let number = 0; Object.keys(contract.paths).length < wanted; number++) {
    const [path, { post }] = models[number % models.length];
    const operationId = `${post.operationId}${number}`;
    if (number % 2 === 0) contract.paths[`${path}-${number}`] = { post: { ...post, operationId } };
    else contract.paths[`${path}-${number}/{id}`] = { post: { ...post, operationId, parameters: [ID] } };
  }
  const text = stringify(contract, { aliasDuplicateObjects: false });
  writeFileSync(join(folder, 'openapi.yaml'), text);
  const sha256 = createHash('sha256').update(text).digest('hex');
  writeFileSync(join(folder, 'dist/openapi.json'), JSON.stringify({ sha256, document: contract }));
  serveCopies(join(folder, 'dist/handlers/index.js'), contract);
  return folder;
}

/**
 * Each copy of an operation is served by the original's handler.
 * @param {string} file the compiled handlers @param {{ paths: Record<string, { post?: { operationId: string } }> }} contract
 */
function serveCopies(file, { paths }) {
  const copies = Object.values(paths).flatMap(
    ({ post }) => /^\D+\d+$/.exec(post?.operationId ?? '')?.[0] ?? [],
  );
  const lines = copies.map(id => `handlers.${id} = handlers.${id.replace(/\d+$/, '')};`);
  writeFileSync(file, `${readFileSync(file, 'utf8')}\n${lines.join('\n')}\n`);
}

/** @param {Bench} bench */
export async function operations(bench) {
  const servers = [];
  const starts = table('Start time by contract length', 'ms', 'less');
  const idle = table('Resident memory before the first call by contract length', 'MB', 'less');
  for (const count of [15, 60, 200]) {
    const began = performance.now();
    const { server } = await startOurs(bench.stubs, { shop: withOperations(count) });
    record(starts, `${count} operations`, performance.now() - began);
    server.name = `${count} operations`;
    const resident = server.memory();
    if (resident !== undefined) record(idle, server.name, resident);
    servers.push(server);
    await introduce(bench, server, BRIEF);
  }
  try {
    const refused = table('402 by contract length, 100 connections', 'calls/s');
    const sold = table('Paid calls by contract length, 64 connections', 'calls/s');
    for (const server of servers) {
      await unpaid(bench, server, { ...BRIEF, connections: 100, seconds: seconds(0.5, 0.5) });
      await paid(bench, server, { ...BRIEF, connections: 64, seconds: seconds(0.5, 0.5) });
    }
    await interleave(refused, servers, rounds(7, 4), async server => {
      const { answers, seconds: took } = await unpaid(bench, server, {
        ...BRIEF,
        connections: 100,
        seconds: seconds(3, 0.8),
      });
      return answers / took;
    });
    await interleave(sold, servers, rounds(5, 2), async server => {
      const { answers, seconds: took } = await paid(bench, server, {
        ...BRIEF,
        connections: 64,
        seconds: seconds(3, 0.8),
      });
      return answers / took;
    });
    bench.report.add(refused);
    bench.report.add(sold);
    bench.report.add(starts);
    bench.report.add(idle);
    const value = ratio(refused, '60 operations', '15 operations');
    bench.report.gate('402 with 60 operations / with 15', value, 'least', 0.95);
    const longest = ratio(refused, '200 operations', '15 operations');
    bench.report.gate('402 with 200 operations / with 15', longest, 'least', 0.9);
  } finally {
    await Promise.all(servers.map(server => server.stop()));
  }
}

/** Measures claims in an empty ledger and in one with a million payments. @param {Bench} bench */
export async function ledger(bench) {
  const claimer = new Partner('claims.js', SERVER_CORE);
  const files = new Map([
    ['0 payments', join(runFolder('ledger-empty'), 'ledger.db')],
    [`${MANY_ROWS.toLocaleString('en')} payments`, join(runFolder('ledger-full'), 'ledger.db')],
  ]);
  const [none, many] = files.keys();
  const alone = table('Claim, one at a time', 'µs', 'less');
  const together = table('Claim, 64 at a time', 'µs', 'less');
  const { seconds: took } = await claimer.ask({ fill: files.get(many), rows: MANY_ROWS });
  alone.notes.push(
    `The ledger was filled in ${Math.round(took)} s. A single claim waits for the disk; 64 share one wait.`,
  );
  const count = amount(1_024, 256);
  for (const file of files.values()) await claimer.ask({ claim: file, count: 128 });
  for (let round = 0; round < rounds(11, 5); round++) {
    for (const [name, file] of files) {
      const taken = await claimer.ask({ claim: file, count });
      record(alone, name, taken.alone);
      record(together, name, taken.together);
    }
  }
  claimer.end();
  bench.report.add(alone);
  bench.report.add(together);
  bench.report.gate('claim at 1 000 000 payments / at 0, alone', ratio(alone, many, none), 'most', 1.3);
  bench.report.gate(
    'claim at 1 000 000 payments / at 0, 64 at a time',
    ratio(together, many, none),
    'most',
    1.3,
  );
}
