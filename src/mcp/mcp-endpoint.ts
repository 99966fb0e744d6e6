import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpHttpHandler } from '@modelcontextprotocol/server';
import type { RequestBody } from '../contract/contract.js';
import { objectOf } from '../contract/references.js';
import { BodiesFull, BodyFault, type BodyReader } from '../http/body.js';
import { OVER_LIMIT } from '../http/source-limits.js';
import { MCP_PATH } from '../contract/reserved-names.js';
import { foreignHost, type OwnHosts } from './allowed-hosts.js';
import type { CallToolParts } from './call-tool.js';
import { Exchange } from './mcp-exchange.js';

export type McpParts = CallToolParts & OwnHosts & { bodies: BodyReader };

/** The bytes that a message takes in addition to a tool's arguments: its frame and a payment. */
const FRAME_BYTES = 64 * 1024;
const DAY_SECONDS = 86_400;
/** The headers that the MCP library reads. */
const PASSED_ON = /^(accept|content-type|mcp-[a-z0-9-]+)$/;

/**
 * The maximum size, in bytes, of a body that is sent as an argument. Raw bytes are sent as base64, and line ends and
 * quotes in text take two characters each.
 */
function argumentBytes({ kind, maxBytes }: RequestBody): number {
  return kind === 'json' || kind === 'form' ? maxBytes : 2 * maxBytes;
}

/**
 * The tools of the contract over MCP (Streamable HTTP), without sessions: each request carries one message and is served on its own.
 * Operations, prices and payment are the same as over HTTP.
 */
export class McpEndpoint {
  readonly #parts: McpParts;
  readonly #exchanges = new WeakMap<Request, Exchange>();
  #handler: Promise<McpHttpHandler> | undefined;
  readonly #maxBytes: number;
  #requests = 0;

  constructor(parts: McpParts) {
    this.#parts = parts;
    const { contract } = parts;
    const largest = Math.max(
      0,
      ...contract.paid.map(({ request }) => (request ? argumentBytes(request) : 0)),
    );
    this.#maxBytes = largest + FRAME_BYTES;
  }

  /** Whether a request is for this endpoint. */
  serves({ url = '' }: IncomingMessage): boolean {
    return url === MCP_PATH || url.startsWith(`${MCP_PATH}?`);
  }

  /** Answers a request. Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { limits, log } = this.#parts;
    const refused = foreignHost(request.headers, this.#parts);
    if (refused !== undefined) return sendFault(response, 403, -32_000, refused);
    const headers = corsFor(request);
    if (request.method === 'OPTIONS') return preflight(response, headers);
    if (request.method !== 'POST')
      return sendFault(
        response,
        405,
        -32_000,
        'Use POST: this server opens no streams of its own and has no sessions.',
        {
          ...headers,
          Allow: METHODS,
        },
      );
    const source = limits.of(request);
    const wait = limits.takeUnpaid(source);
    if (wait > 0)
      return sendFault(response, 503, -32_000, UNREAD, { ...headers, 'Retry-After': String(wait) });
    const exchange = new Exchange(request, response, source);
    try {
      exchange.message = await this.#message(request, exchange);
      await exchange.send(await this.#answer(request, exchange), {
        ...headers,
        'X-Request-Id': exchange.requestId,
      });
    } catch (error) {
      if (exchange.gone.aborted) return;
      if (response.headersSent) return void response.destroy();
      if (error instanceof BodyFault) {
        limits.failed(source);
        return sendFault(response, 400, -32_700, `${error.message}. Send one JSON-RPC message.`, headers);
      }
      if (error instanceof BodiesFull)
        return sendFault(response, 503, -32_000, BUSY, {
          ...headers,
          'Retry-After': '1',
          Connection: 'close',
        });
      log.error({ error }, 'MCP request failed');
      sendFault(response, 500, -32_603, 'Internal server error. Send the same request again.', headers);
    }
  }

  async close(): Promise<void> {
    await (await this.#handler)?.close();
  }

  /** Loaded with the first request: the library takes 30 MB and a quarter of a second, and most servers get only HTTP calls. */
  #protocol(): Promise<McpHttpHandler> {
    const exchangeOf = (request: Request): Exchange | undefined => this.#exchanges.get(request);
    return (this.#handler ??= import('./protocol.js').then(({ createProtocol }) =>
      createProtocol(this.#parts, exchangeOf),
    ));
  }

  async #message(request: IncomingMessage, { source }: Exchange): Promise<Exchange['message']> {
    this.#requests += 1;
    // The payment and its payer are part of the message, so they are not known yet.
    const owner = { payment: `mcp ${this.#requests}`, payer: `mcp ${source}`, source };
    const body = await this.#parts.bodies.readJsonObject(request, this.#maxBytes, owner);
    return objectOf(body);
  }

  async #answer({ headers }: IncomingMessage, exchange: Exchange): Promise<Response> {
    const passed = Object.entries(headers).filter(([name]) => PASSED_ON.test(name));
    const request = new Request(`http://localhost${MCP_PATH}`, {
      method: 'POST',
      headers: passed.map(([name, value]): [string, string] => [name, String(value)]),
      signal: exchange.gone,
    });
    this.#exchanges.set(request, exchange);
    const protocol = await this.#protocol();
    return protocol.fetch(request, { parsedBody: exchange.message });
  }
}

const METHODS = 'POST, OPTIONS';
/** The error for a message that was not read. Whether it carries a payment is unknown. */
const UNREAD = `${OVER_LIMIT}. This message was not read and costs nothing: send the same message again later, with the same payment.`;
const BUSY =
  'The server is busy and this request arrived too slowly. You were not charged for it: send it again.';

function corsFor({ headers: { origin } }: IncomingMessage): Record<string, string> {
  return origin === undefined ? {} : { 'Access-Control-Allow-Origin': origin, Vary: 'Origin' };
}

function preflight(response: ServerResponse, headers: Record<string, string>): void {
  response.writeHead(204, {
    ...headers,
    Allow: METHODS,
    'Access-Control-Allow-Methods': METHODS,
    'Access-Control-Allow-Headers':
      'content-type, accept, payment-signature, x-payment, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id',
    'Access-Control-Max-Age': String(DAY_SECONDS),
  });
  response.end();
}

/** An answer to a request whose message was not read: a JSON-RPC error without an id. */
function sendFault(
  response: ServerResponse,
  status: number,
  code: number,
  message: string,
  headers: Record<string, string> = {},
): void {
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null });
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}
