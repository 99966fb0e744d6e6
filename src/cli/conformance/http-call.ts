import type { Json } from '../../contract/json.js';
import { withAbortAfter } from '../../net/deadline.js';
import { Broken, must } from './findings.js';

/** One answer, read whole. */
export type Reply = { status: number; statusText: string; headers: Headers; body: Buffer };

const NEVER = new AbortController().signal;
const TIMEOUT_MS = 20_000;
/** The time limit for a paid call. It is long, because the shop may work before it answers. */
export const PAID_TIMEOUT_MS = 90_000;
const MAX_BODY_BYTES = 16 << 20;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value of a document as text, to show and compare it. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'missing');
}

export function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '');
}

/** One HTTP call, limited in size and time, and by `init.signal`. Does not follow redirects, because x402 clients lose their payment in them. */
export async function call(
  url: string,
  init: RequestInit = {},
  timeoutMs = TIMEOUT_MS,
  maxBytes = MAX_BODY_BYTES,
): Promise<Reply> {
  return withAbortAfter(timeoutMs, init.signal ?? NEVER, async signal => {
    const response = await fetch(url, { redirect: 'manual', ...init, signal });
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      must(size <= maxBytes, `the answer from ${url} is longer than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    const { status, statusText, headers } = response;
    return { status, statusText, headers, body: Buffer.concat(chunks) };
  });
}

/** The size in bytes of the part of an answer that a proxy must buffer: from the status line to the empty line after the last header. */
export function headBytes({ status, statusText, headers }: Reply): number {
  const lines = [...headers].map(([name, value]) => Buffer.byteLength(`${name}: ${value}\r\n`));
  return lines.reduce((sum, line) => sum + line, `HTTP/1.1 ${status} ${statusText}\r\n\r\n`.length);
}

/** The JSON object in the body. @throws Broken */
export function jsonOf(reply: Reply): Json {
  const type = reply.headers.get('content-type');
  must(/^application\/([\w.-]+\+)?json\b/.test(type ?? ''), `Content-Type is ${type}, not JSON`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(reply.body.toString('utf8'));
  } catch {
    throw new Broken(`the body is not JSON: ${startOf(reply)}`);
  }
  must(isObject(parsed), 'the body is not a JSON object');
  return parsed;
}

export function expectStatus(reply: Reply, ...statuses: number[]): void {
  must(
    statuses.includes(reply.status),
    `status ${reply.status} instead of ${statuses.join(' or ')}: ${startOf(reply)}`,
  );
}

export function expectHeader(reply: Reply, name: string, pattern: RegExp): void {
  const value = reply.headers.get(name);
  must(value !== null, `no ${name} header: a proxy may have dropped it`);
  must(pattern.test(value), `${name} is ${value.slice(0, 100)}`);
}

/** Checks that an error is JSON with a message. */
export function expectError(reply: Reply, ...statuses: number[]): void {
  expectStatus(reply, ...statuses);
  const { error, message } = jsonOf(reply);
  must(
    [error, message].some(text => typeof text === 'string' && text),
    'the body has no `error` text',
  );
}

function startOf(reply: Reply): string {
  return reply.body.subarray(0, 120).toString('utf8').replace(/\s+/g, ' ');
}
