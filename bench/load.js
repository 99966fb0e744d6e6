import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setTimeout } from 'node:timers';
import { paymentHeader, Payments } from './payments.js';
import { bodyStart, contentLength } from './wire.js';

/**
 * The load generator, a process of its own. It uses bare sockets with one request in flight on each, reads every answer to its end, and counts
 * the statuses. Paid requests are built before the measurement starts.
 *
 * @typedef {{
 *   port: number, path: string, method?: string, tool?: string, connections: number, seconds?: number, requests?: number, perSecond?: number,
 *   body?: string, keep?: boolean, paid?: { challenge: object, amount: string, prepared: number, from: number, step: number, count: number },
 * }} Job `tool`: the name of the tool, if calls are bought over MCP; `perSecond`: a steady rate; without it, each connection asks again at
 *   once
 * @typedef {{
 *   answers: number, seconds: number, statuses: Record<string, number>, unexpected?: string, bytes: number, cpu: number,
 *   p50: number, p99: number, used: number, kept?: string,
 * }} Result latencies in ms; `cpu`: share of one core that the generator itself used; `kept`: the first body in base64
 */

/** The part of a path that is replaced by a different number in each request. */
const NEW = '{new}';

/** @type {Map<string, Payments>} */
const pools = new Map();

/** @param {string} amount @param {number} prepared */
function poolOf(amount, prepared) {
  const key = `${amount} ${prepared}`;
  const known = pools.get(key) ?? new Payments(BigInt(amount), prepared);
  pools.set(key, known);
  return known;
}

/** @param {Job} job @returns {() => Buffer | undefined} the next request, undefined when there is none left */
function requestsOf(job) {
  if (job.tool) return toolCallsOf(job);
  const { path, method = 'POST', port, body = '', paid } = job;
  const head =
    `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n` +
    (method === 'GET'
      ? ''
      : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`);
  if (path.includes(NEW)) {
    let sent = 0;
    return () => Buffer.from(`${head.replace(NEW, `n${++sent}`)}\r\n${body}`);
  }
  if (!paid) {
    const request = Buffer.from(`${head}\r\n${body}`);
    return () => request;
  }
  const payments = poolOf(paid.amount, paid.prepared);
  const ready = Array.from({ length: paid.count }, (_, index) => {
    const header = paymentHeader(paid.challenge, payments.transaction(paid.from + paid.step * index));
    return Buffer.from(`${head}PAYMENT-SIGNATURE: ${header}\r\n\r\n${body}`);
  });
  let next = 0;
  return () => ready[next++];
}

/** Paid tool calls. @param {Job} job @returns {() => Buffer | undefined} */
function toolCallsOf({ port, tool, body, paid }) {
  const payments = poolOf(paid.amount, paid.prepared);
  const head =
    `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n` +
    'Accept: application/json, text/event-stream\r\n';
  const call = { name: tool, arguments: JSON.parse(body) };
  const ready = Array.from({ length: paid.count }, (_, id) => {
    const header = paymentHeader(paid.challenge, payments.transaction(paid.from + paid.step * id));
    const payment = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
    const params = { ...call, _meta: { 'x402/payment': payment } };
    const message = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
    return Buffer.from(`${head}Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`);
  });
  let next = 0;
  return () => ready[next++];
}

/** An MCP tool's error also has status 200. */
const TOOL_ERROR = Buffer.from('"isError":true');

/** Counts the answers. */
class Tally {
  answers = 0;
  bytes = 0;
  statuses = {};
  latencies = [];
  unexpected;
  first;

  /** @param {Buffer} answer @param {number} ms @param {boolean} paid */
  add(answer, ms, paid) {
    const status = answer.includes(TOOL_ERROR) ? 'error' : answer.latin1Slice(9, 12);
    this.answers += 1;
    this.first ??= answer;
    this.bytes += answer.length;
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    this.latencies.push(ms);
    if (this.unexpected === undefined && (paid ? status !== '200' : status !== '402' && status !== '200'))
      this.unexpected = answer.toString('latin1').slice(0, 1_000);
  }
}

/** Whether the bytes are a complete answer. For a chunked body, only the end is checked. @param {Buffer} bytes */
function isComplete(bytes) {
  const start = bodyStart(bytes);
  if (start < 0) return false;
  const length = contentLength(bytes, start);
  if (length >= 0) return bytes.length >= start + length;
  return bytes.subarray(-5).equals(Buffer.from('0\r\n\r\n'));
}

/**
 * One connection: sends a request, reads the answer, and repeats until time or requests run out. `wait`: the ms to wait before a request.
 */
function converse(port, { next, isOver, wait, tally, paid }) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let pending;
    let began = 0;
    const ask = () => {
      const ms = wait();
      if (ms > 0) setTimeout(send, ms);
      else send();
    };
    const send = () => {
      const request = isOver() ? undefined : next();
      if (!request) {
        socket.destroy();
        return resolve();
      }
      began = performance.now();
      socket.write(request);
    };
    socket.setNoDelay(true);
    socket.once('connect', ask);
    socket.once('error', reject);
    socket.once('end', () => reject(new Error('the server closed a connection')));
    socket.on('data', chunk => {
      pending = pending ? Buffer.concat([pending, chunk]) : chunk;
      if (!isComplete(pending)) return;
      tally.add(pending, performance.now() - began, paid);
      pending = undefined;
      ask();
    });
  });
}

/** @param {Job} job @returns {Promise<Result>} */
async function run(job) {
  const next = requestsOf(job);
  const tally = new Tally();
  let used = 0;
  const cpu = process.cpuUsage();
  const began = performance.now();
  const end = job.seconds === undefined ? Infinity : began + job.seconds * 1_000;
  const limit = job.requests ?? Infinity;
  const isOver = () => used >= limit || performance.now() >= end;
  const take = () => {
    used += 1;
    return next();
  };
  let turns = 0;
  const turn = () => Math.min(began + (turns++ * 1_000) / job.perSecond, end);
  const wait = () => (job.perSecond === undefined ? 0 : turn() - performance.now());
  const talk = { next: take, isOver, wait, tally, paid: job.paid !== undefined };
  await Promise.all(Array.from({ length: job.connections }, () => converse(job.port, talk)));
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const sorted = Float64Array.from(tally.latencies).sort();
  const at = share => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const { answers, bytes, statuses, unexpected } = tally;
  const kept = job.keep ? tally.first?.subarray(bodyStart(tally.first)).toString('base64') : undefined;
  const ran = { kept, answers, bytes, statuses, unexpected, seconds, used };
  return { ...ran, cpu: (user + system) / 1e6 / seconds, p50: at(0.5), p99: at(0.99) };
}

process.on('disconnect', () => process.exit(0));
process.on('message', job => {
  run(job).then(
    result => process.send({ result }),
    error => process.send({ error: String(error.stack ?? error) }),
  );
});
