import { request } from 'node:http';
import type { Transport } from '../../src/observe/observer.js';
import type { Sale } from '../../src/sale/outcome.js';
import type { Receipt } from '../../src/methods/method.js';
import { within } from './faults.js';
import { carrierOf, isMpp } from './mpp-payment.js';
import { CUT, type Sent } from './test-server.js';

type Json = Record<string, unknown>;
type Arrived = { status: number; headers: Record<string, string>; body: Buffer };
/** What a buyer sees of a call, including the link to its answer. */
export type Seen = { sent: Sent; link: string | undefined };

const ASKED = { operation: 'summarize', requestHash: '' };
/** A sale whose answer was read to the end, so that nothing is left to report. */
const READ: Sale = { written: () => {}, linked: async () => undefined, lost: async () => {} };
/** A running server answers sooner than this, even on a slow machine. */
const PATIENCE_MS = 30_000;

/** Sends a paid call to a server. The payment is the base64 of a PAYMENT-SIGNATURE header. */
export async function callThrough(
  door: Transport,
  url: string,
  { path, tool, body, header }: { path: string; tool: string; body: Json; header: string },
  gone: AbortSignal,
): Promise<Seen> {
  const asked =
    door === 'http'
      ? post(url + path, body, carrierOf(header), gone)
      : post(
          `${url}/mcp`,
          toolCall(tool, body, header),
          { accept: 'application/json, text/event-stream' },
          gone,
        );
  const arrived = await asked;
  if (!arrived) return { sent: CUT, link: undefined };
  return door === 'http' ? seenOverHttp(arrived) : seenOverMcp(arrived);
}

/** Fetches an answer by its link. @returns undefined if the connection breaks */
export async function pickUpThrough(
  door: Transport,
  url: string,
  link: string,
): Promise<{ status: number; body: Buffer } | undefined> {
  const { signal } = new AbortController();
  if (door === 'http') return exchange('GET', url + new URL(link).pathname, undefined, {}, signal);
  const asked = toolCall('pick_up', { key: link.slice(link.lastIndexOf('/') + 1) });
  const arrived = await post(`${url}/mcp`, asked, { accept: 'application/json, text/event-stream' }, signal);
  if (!arrived) return undefined;
  const { status, body } = resultIn(arrived);
  return { status, body };
}

function toolCall(name: string, args: Json, header?: string): Json {
  const meta = header === undefined ? {} : { _meta: metaOf(header) };
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, ...meta } };
}

function metaOf(header: string): Json {
  if (!isMpp(header)) return { 'x402/payment': decoded(header) };
  return { 'org.paymentauth/credential': decoded(header.replace('Payment ', '')) };
}

function post(
  url: string,
  body: Json,
  headers: Record<string, string>,
  gone: AbortSignal,
): Promise<Arrived | undefined> {
  return exchange(
    'POST',
    url,
    JSON.stringify(body),
    { 'content-type': 'application/json', ...headers },
    gone,
  );
}

/**
 * Sends one request on a connection of its own. @returns undefined if the connection breaks or the client hangs up.
 * Rejects if no answer comes.
 */
function exchange(
  method: string,
  url: string,
  body: string | undefined,
  headers: Record<string, string>,
  gone: AbortSignal,
): Promise<Arrived | undefined> {
  return within(PATIENCE_MS, `an answer to ${method} ${url}`, exchanged(method, url, body, headers, gone));
}

function exchanged(
  method: string,
  url: string,
  body: string | undefined,
  headers: Record<string, string>,
  gone: AbortSignal,
): Promise<Arrived | undefined> {
  return new Promise(resolve => {
    const sending = request(url, { method, headers, agent: false }, response => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('close', () =>
        resolve(
          response.complete
            ? {
                status: response.statusCode ?? 0,
                headers: response.headers as Record<string, string>,
                body: Buffer.concat(chunks),
              }
            : undefined,
        ),
      );
    });
    sending.on('error', () => resolve(undefined));
    gone.addEventListener('abort', () => sending.destroy(), { once: true });
    if (gone.aborted) sending.destroy();
    sending.end(body);
  });
}

function seenOverHttp({ status, headers, body }: Arrived): Seen {
  const { 'payment-response': v2, 'x-payment-response': told = v2, 'payment-receipt': toldByMpp } = headers;
  const receipt = told ? (decoded(told) as Receipt) : toldByMpp ? receiptOf(decoded(toldByMpp)) : undefined;
  return { sent: sentAs(status, body, receipt), link: headers['location'] };
}

function seenOverMcp(arrived: Arrived): Seen {
  const { status, body, meta } = resultIn(arrived);
  const link = meta['coinslot/pick-up'] as { url?: string } | undefined;
  return {
    sent: sentAs(
      status,
      body,
      (meta['x402/payment-response'] as Receipt | undefined) ?? receiptOf(meta['org.paymentauth/receipt']),
    ),
    link: link?.url,
  };
}

type ToolCall = {
  isError?: boolean;
  content: { text?: string }[];
  structuredContent?: { status?: number; error?: string };
  _meta?: Json;
};

/** Converts a tool's result to the outcome that the same call has over HTTP. */
function resultIn({ body, status }: Arrived): { status: number; body: Buffer; meta: Json } {
  const text = body.toString();
  const lines = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => data ?? '');
  const message = JSON.parse(lines.at(-1) ?? text) as { result?: ToolCall; error?: Json };
  const { result } = message;
  if (!result) return { status: status === 200 ? 500 : status, body, meta: {} };
  const { content, structuredContent: told, isError, _meta: meta = {} } = result;
  if (!isError) return { status: 200, body: Buffer.from(content[0]?.text ?? ''), meta };
  return { status: told?.status ?? 402, body: Buffer.from(JSON.stringify(told)), meta };
}

function sentAs(status: number, body: Buffer, receipt: Receipt | undefined): Sent {
  const given = receipt ? { receipt } : {};
  if (status === 200) {
    if (!receipt) throw new Error(`an answer was sold without a receipt: ${body.toString()}`);
    return { kind: 'sold', answer: { status, headers: {}, body }, receipt, sale: READ, call: ASKED };
  }
  const { error } = JSON.parse(body.toString()) as { error: string };
  if (status === 402) return { kind: 'refused', error, because: 'used', ...given };
  if (status === 400) return { kind: 'invalid', error };
  if (status === 503) return { kind: 'unavailable', error, retryAfterSeconds: 1, ...given };
  if (status === 502) return { kind: 'failed', answer: { status, headers: {}, body }, ...given };
  throw new Error(`unexpected kind of answer: ${status} ${body.toString()}`);
}

/** The receipt of an MPP payment, which names no payer. */
function receiptOf(told: unknown): Receipt | undefined {
  const { reference } = (told ?? {}) as { reference?: string };
  return reference === undefined ? undefined : { success: true, payer: '', transaction: reference };
}

function decoded(header: string): unknown {
  return JSON.parse(Buffer.from(header, 'base64').toString()) as unknown;
}
