import { ratio, record, table } from './figures.js';
import { BRIEF } from './fleet.js';
import { introduce, paid } from './measure.js';
import { amount, rounds, seconds } from './pace.js';
import { startOurs } from './processes.js';

/** The same operation, as a resource and as a tool. */
const WAYS = [
  ['HTTP', BRIEF],
  ['MCP', { ...BRIEF, tool: 'solTokenBrief' }],
];

/** Compares a paid call over MCP with one over HTTP: the same server, operation, backend and payers. @param {import('./measure.js').Bench} bench */
export async function mcp(bench) {
  const { server } = await startOurs(bench.stubs);
  try {
    const sales = table('Paid call over HTTP and over MCP, instant backend, 64 connections', 'calls/s');
    const spent = table('Processor time of the server per paid call, over HTTP and over MCP', 'µs', 'less');
    const latency = table('Latency of one paid call at a time, over HTTP and over MCP', 'ms', 'less');
    await introduce(bench, server, BRIEF);
    // The first tool call loads the MCP library.
    for (const [, call] of WAYS) await paid(bench, server, { ...call, connections: 8, requests: 200 });
    for (let round = 0; round < rounds(5, 3); round++)
      for (const [name, call] of round % 2 ? WAYS.toReversed() : WAYS) {
        const job = { ...call, connections: 64, seconds: seconds(4, 1.5) };
        const before = server.cpuSeconds();
        const { answers, seconds: took } = await paid(bench, server, job);
        const after = server.cpuSeconds();
        record(sales, name, answers / took);
        if (before !== undefined && after !== undefined)
          record(spent, name, ((after - before) * 1e6) / answers);
        const one = { ...call, connections: 1, requests: amount(200, 50) };
        record(latency, name, (await paid(bench, server, one)).p50);
      }
    sales.notes.push(
      'Each call over MCP is one JSON-RPC message without a session, answered by the official library.',
    );
    for (const of of [sales, spent, latency]) bench.report.add(of);
    bench.report.gate('paid call, MCP / HTTP', ratio(sales, 'MCP', 'HTTP'), 'least', 0.4);
  } finally {
    await server.stop();
  }
}
