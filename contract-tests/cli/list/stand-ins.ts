import { encodePaymentRequiredHeader } from '@x402/core/http';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Json } from '../../../src/contract/json.js';

export type Answer = { status?: number; headers?: Record<string, string>; body?: unknown };
export type Call = { method: string; path: string; url: URL; headers: IncomingHttpHeaders; body: string };
export type StandIn = { url: string; calls: Call[]; close(): void };

/** A server with given answers: JSON, or a string sent unchanged; a call whose answer is `undefined` stays open. */
export async function standIn(
  answer: (call: Call, base: string) => Answer | undefined | Promise<Answer | undefined>,
): Promise<StandIn> {
  const calls: Call[] = [];
  const server: Server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const url = new URL(request.url ?? '/', base);
      const { method = 'GET', headers } = request;
      const call = { method, path: url.pathname, url, headers, body: Buffer.concat(chunks).toString() };
      calls.push(call);
      const answered = await answer(call, base);
      if (!answered) return;
      const { status = 200, body } = answered;
      const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
      response.writeHead(status, { 'content-type': 'application/json', ...answered.headers }).end(text);
    })().catch(() => response.destroy());
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A shop, whether or not it runs Coinslot, with all that directories want: its description, its 402 and its entry for the MCP registry. */
export type Shop = { document: Json; challenge: Json; entry: Json; headers: Record<string, string> };

/** Sets the value at a path in an object, or removes it if no value is given. @param path keys, separated by spaces */
export function put(target: Json, path: string, value?: unknown): void {
  const keys = path.split(' ');
  const last = keys.pop() ?? '';
  const at = keys.reduce((node, key) => node[key] as Json, target);
  if (value === undefined) delete at[last];
  else at[last] = value;
}

export const PAY_TO = '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU';

function goodShop(base: string): Shop {
  const input = { type: 'http', method: 'GET', queryParams: { city: 'Bergen' } };
  return {
    document: {
      openapi: '3.1.0',
      info: {
        title: 'Weather',
        version: '1.0.0',
        description: 'The weather of a city.',
        'x-guidance': 'Call GET /weather with a city.',
        contact: { email: 'seller@shop.example' },
      },
      servers: [{ url: base }],
      paths: {
        '/weather': {
          get: {
            summary: 'The weather of a city',
            parameters: [
              { name: 'city', in: 'query', required: true, schema: { type: 'string' }, example: 'Bergen' },
            ],
            'x-payment-info': {
              price: { mode: 'fixed', currency: 'USD', amount: '0.02' },
              protocols: [{ x402: {} }],
            },
            responses: {
              200: {
                description: 'The weather.',
                content: { 'application/json': { schema: { type: 'object' } } },
              },
              402: { description: 'Pay.' },
            },
          },
        },
      },
    },
    challenge: {
      x402Version: 2,
      error: 'Payment required',
      resource: {
        url: `${base}/weather`,
        description: 'The weather of a city',
        mimeType: 'application/json',
        serviceName: 'Weather',
        tags: ['weather'],
        iconUrl: 'https://shop.example/icon.png',
      },
      accepts: [
        {
          scheme: 'exact',
          network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
          amount: '20000',
          asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
          payTo: PAY_TO,
          maxTimeoutSeconds: 60,
          extra: { feePayer: PAY_TO },
        },
      ],
      extensions: {
        bazaar: {
          info: { input, output: { type: 'json' } },
          schema: {
            type: 'object',
            properties: {
              input: {
                type: 'object',
                properties: {
                  type: { const: 'http' },
                  method: { enum: ['GET'] },
                  queryParams: { type: 'object', properties: { city: { type: 'string' } } },
                },
                required: ['type', 'method'],
              },
              output: { type: 'object', properties: { example: { type: 'object' } } },
            },
            required: ['input'],
          },
        },
      },
    },
    entry: {
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: 'example.shop/weather',
      description: 'The weather of a city.',
      version: '1.0.0',
      remotes: [{ type: 'streamable-http', url: 'https://shop.example/mcp' }],
    },
    headers: {},
  };
}

/** The same shop with a change. */
export function fakeShop(change: (shop: Shop) => void = () => {}): Promise<StandIn> {
  return standIn(({ path }, base) => {
    const shop = goodShop(base);
    change(shop);
    if (path === '/openapi.json') return 'paths' in shop.document ? { body: shop.document } : { status: 404 };
    if (path === '/.well-known/mcp/server.json') return { body: shop.entry };
    if (path !== '/weather') return { status: 404 };
    const required = encodePaymentRequiredHeader(shop.challenge as never);
    return { status: 402, headers: { 'PAYMENT-REQUIRED': required, ...shop.headers }, body: shop.challenge };
  });
}
