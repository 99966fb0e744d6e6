import { record } from './figures.js';
import { amount } from './pace.js';
import { PAYERS, PRICE } from './terms.js';

/** How many payments are signed in advance for each price. */
export const PREPARED = amount(160_000, 160_000);
/** More than any server here sells in a second. */
const MOST_SALES_PER_SECOND = 9_000;

/**
 * @typedef {import('./processes.js').Server} Server
 * @typedef {{
 *   stubs: import('./processes.js').Stubs, load: import('./processes.js').Partner, report: import('./report.js').Report, asked: () => Promise<number>,
 * }} Bench `asked`: the number of verify and settle requests to the facilitators
 */

/** Checks that every answer had one of the expected statuses. @param {Server} server @param {import('./load.js').Result} result */
export function checked(server, result, ...expected) {
  const wrong = expected.reduce((rest, status) => rest - (result.statuses[status] ?? 0), result.answers);
  if (result.answers === 0 || wrong > 0) {
    const counted = JSON.stringify(result.statuses);
    throw new Error(
      `${server.name} answered ${counted}; ${expected.join(' or ')} was expected:\n${result.unexpected}`,
    );
  }
  return result;
}

/** How many calls each connection makes if the job limits neither their time nor their number. */
const CALLS_OF_A_CONNECTION = 2;

/** @param {{ connections: number, seconds?: number, requests?: number }} job */
function bounded(job) {
  const { connections, seconds, requests } = job;
  return seconds === undefined && requests === undefined
    ? { ...job, requests: CALLS_OF_A_CONNECTION * connections }
    : job;
}

/** Makes unpaid calls. @param {Bench} bench @param {Server} server @param {object} job */
export async function unpaid({ load }, server, job) {
  return checked(server, await load.ask({ port: server.port, ...bounded(job) }), job.status ?? 402);
}

/**
 * Makes paid calls, each with a payment that this server has not seen before.
 * @param {Bench} bench @param {Server} server
 * @param {{ path: string, body: string, connections: number, seconds?: number, requests?: number, amount?: bigint, prepared?: number,
 *   mostPerSecond?: number, payer?: number, isShared?: boolean }} how
 *   `isShared`: another server may be at work on the same payments, so that some answers are 503;
 *   `payer`: the number of the payer who makes all payments; `nextPayment` then counts that payer's payments
 */
export async function paid({ load }, server, how) {
  const {
    amount = PRICE,
    prepared = PREPARED,
    mostPerSecond = MOST_SALES_PER_SECOND,
    payer,
    isShared = false,
    ...job
  } = bounded(how);
  const count = job.requests ?? Math.ceil(job.seconds * mostPerSecond);
  const step = payer === undefined ? 1 : PAYERS;
  const from = payer === undefined ? server.nextPayment : payer + PAYERS * server.nextPayment;
  const challenge = await server.challenge(job.path);
  const payments = {
    challenge,
    amount: String(amount),
    prepared,
    from,
    step,
    count: Math.min(count, Math.ceil((prepared - from) / step)),
  };
  const answered = await load.ask({ port: server.port, ...job, paid: payments });
  const result = checked(server, answered, 200, ...(isShared ? [503] : []));
  server.nextPayment += Math.min(result.used, payments.count);
  return result;
}

/** Buys one call with every payer, so that the server knows them all, like returning customers. */
export function introduce(bench, server, job) {
  return paid(bench, server, { connections: 16, ...job, requests: amount(PAYERS, PAYERS) });
}

/**
 * Measures all servers in several rounds, and adds one figure per server and round to the table.
 * @param {import('./figures.js').Table} table @param {Server[]} servers @param {number} rounds
 * @param {(server: Server, round: number) => Promise<number>} figure
 */
export async function interleave(table, servers, rounds, figure) {
  for (let round = 0; round < rounds; round++) {
    // The order rotates with every round, so that no server is always measured first.
    const order = servers.map((_, index) => servers[(index + round) % servers.length]);
    for (const server of order) record(table, server.name, await figure(server, round));
  }
}
