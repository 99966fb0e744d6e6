import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ratio, record, table } from './figures.js';
import { BRIEF, recordAnswer } from './fleet.js';
import { withOperations } from './growth.js';
import { interleave, unpaid } from './measure.js';
import { PACE, rounds, seconds } from './pace.js';
import { runFolder, startFixed, startOurs } from './processes.js';

/** @typedef {import('./measure.js').Bench} Bench */

/** How many operations each shop has. At least two operations have a path parameter. */
const SHORT = 20;
const LONG = 1_000;
const KINDS = [
  { name: 'exact path', path: BRIEF.path, status: 402 },
  { name: 'a new parameter value each time', path: '/v1/sol-token-brief-1/{new}', status: 402 },
  { name: 'a new unknown path each time', path: '/v1/nothing/{new}', status: 404 },
];

/** Measures unpaid calls by kind of path, compared with bare node:http, which sends the same bytes for every path. @param {Bench} bench */
export async function paths(bench) {
  const ours = [];
  const others = [];
  try {
    for (const count of [SHORT, LONG]) {
      const { server } = await startOurs(bench.stubs, { shop: withOperations(count) });
      server.name = `${count} operations`;
      ours.push(server);
    }
    // The validators of a thousand operations are compiled after the server has started, one per turn of the event loop.
    if (PACE !== 'smoke') for (const server of ours) await untilIdle(server);
    const exact = await recordAnswer(ours[0], { method: 'POST', ...BRIEF });
    for (const { name, path, status } of KINDS) {
      const same = await recordAnswer(ours[0], {
        method: 'POST',
        ...BRIEF,
        path: path.replace('{new}', 'n1'),
      });
      const file = join(runFolder('recorded'), 'fixed.json');
      writeFileSync(file, JSON.stringify([exact, { ...same, path: '*' }]));
      const { server: bare } = await startFixed('bare', file);
      others.push(bare);
      const servers = [...ours, bare];
      const of = table(`Unpaid calls, ${name} (${status}), 100 connections`, 'calls/s');
      const spent = table(`Processor time of the server per unpaid call, ${name} (${status})`, 'µs', 'less');
      const job = { ...BRIEF, path, status, connections: 100 };
      for (const server of servers) await unpaid(bench, server, { ...job, seconds: seconds(8, 5) });
      await interleave(of, servers, rounds(7, 5), async server => {
        const before = server.cpuSeconds();
        const { answers, seconds: took } = await unpaid(bench, server, { ...job, seconds: seconds(5, 2) });
        const after = server.cpuSeconds();
        if (before !== undefined && after !== undefined)
          record(spent, server.name, ((after - before) * 1e6) / answers);
        return answers / took;
      });
      bench.report.add(of);
      bench.report.add(spent);
      for (const { name: row } of ours) {
        const value = ratio(of, row, 'node:http');
        // 404s have no bound: a path that is not in the contract may be a page, so the request goes through Koa.
        if (status === 402) bench.report.gate(`402, ${name}, ${row} / bare node:http`, value, 'least', 0.9);
      }
    }
  } finally {
    await Promise.all([...ours, ...others].map(server => server.stop()));
  }
}

/** Resolves once a server without calls uses less than a tenth of a processor core, or after a minute. */
export async function untilIdle(server) {
  for (let second = 0; second < 60; second++) {
    const before = server.cpuSeconds();
    await new Promise(resolve => setTimeout(resolve, 1_000));
    const after = server.cpuSeconds();
    if (before === undefined || after === undefined || after - before < 0.1) return;
  }
}
