import { execFileSync } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { FIRST, fastapiShop } from './fastapi.js';
import { ratio, record, table } from './figures.js';
import { interleave, unpaid } from './measure.js';
import { amount, PACE, rounds, seconds } from './pace.js';
import { untilIdle } from './paths.js';
import { startOurs } from './processes.js';

/** @typedef {import('./measure.js').Bench} Bench */

const COMMAND = fileURLToPath(new URL('../src/cli/coinslot.js', import.meta.url));
const SHORT = 15;
const LONG = amount(1_000, 1_000);
const BUILD_DEADLINE_MS = 300_000;

/** Compares shops with few and with many operations: build and start times, memory, and rate of 402s. @param {Bench} bench */
export async function contracts(bench) {
  const builds = table('Build of an imported contract', 's', 'less');
  const starts = table('Start with an imported contract', 'ms', 'less');
  const idle = table('Resident memory with an imported contract, before the first call', 'MB', 'less');
  const refused = table('402 with an imported contract, 100 connections', 'calls/s');
  const work = table('Processor time to start with an imported contract', 's', 'less');
  const spent = table('Processor time of the server per 402 with an imported contract', 'µs', 'less');
  const servers = [];
  try {
    for (const count of [SHORT, LONG]) {
      const name = `${count} operations`;
      const shop = fastapiShop(count);
      const began = performance.now();
      execFileSync(process.execPath, [COMMAND, 'build'], {
        cwd: shop,
        stdio: 'ignore',
        timeout: BUILD_DEADLINE_MS,
      });
      record(builds, name, (performance.now() - began) / 1_000);
      for (let round = 0; round < rounds(3, 2); round++) {
        const { server, startMs, startCpu } = await startOurs(bench.stubs, { shop, probe: FIRST.path });
        record(starts, name, startMs);
        if (startCpu !== undefined) record(work, name, startCpu);
        const resident = server.memory();
        if (resident !== undefined) record(idle, name, resident);
        server.name = name;
        if (round === rounds(3, 2) - 1) servers.push(server);
        else await server.stop();
      }
    }
    // The validators of a thousand operations are compiled after the server has started.
    if (PACE !== 'smoke') for (const server of servers) await untilIdle(server);
    for (const server of servers)
      await unpaid(bench, server, { ...FIRST, connections: 100, seconds: seconds(3, 2) });
    await interleave(refused, servers, rounds(7, 4), async server => {
      const job = { ...FIRST, connections: 100, seconds: seconds(3, 0.8) };
      const before = server.cpuSeconds();
      const { answers, seconds: took } = await unpaid(bench, server, job);
      const after = server.cpuSeconds();
      if (before !== undefined && after !== undefined)
        record(spent, server.name, ((after - before) * 1e6) / answers);
      return answers / took;
    });
    for (const each of [builds, starts, work, idle, refused, spent]) bench.report.add(each);
    const value = ratio(refused, `${LONG} operations`, `${SHORT} operations`);
    bench.report.gate(`402 of an imported contract, ${LONG} operations / ${SHORT}`, value, 'least', 0.9);
  } finally {
    await Promise.all(servers.map(server => server.stop()));
  }
}
