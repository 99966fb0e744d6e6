import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import type { Json } from '../../src/contract/json.js';
import { callTool, paid, payloadOf } from '../support/mcp-call.js';
import { TestUpstream, type UpstreamCall } from '../support/upstream-shop.js';
import { call, openWorld, receiptOf, signFor, type Answer, type World } from '../support/world.js';

type Sent = { method: string; path: string; headers?: Record<string, string>; body?: RequestInit['body'] };

const text = { type: 'string', maxLength: 200 };
const note = { type: 'object', required: ['text'], properties: { text } };
const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } };
const json = (schema: object): object => ({ required: true, content: { 'application/json': { schema } } });

/** An API's own document, with a price and an upstream added to each operation. */
function contractOf(api: string): string {
  const sold = (path: string, operation: object): object => ({
    'x-price': { mode: 'fixed', currency: 'USD', amount: '0.01', flow: 'authorization' },
    'x-upstream': { url: api + path },
    responses: {
      200: { content: { 'application/json': { schema: { type: 'object', required: ['value'] } } } },
    },
    ...operation,
  });
  const paths = {
    '/notes/{id}': {
      parameters: [id],
      put: sold('/notes/{id}', { operationId: 'replaceNote', requestBody: json(note) }),
      patch: sold('/notes/{id}', { operationId: 'changeNote', requestBody: json(note) }),
      delete: sold('/notes/{id}', { operationId: 'removeNote' }),
    },
    '/found': {
      get: sold('/found', {
        operationId: 'find',
        parameters: [
          { name: 'ids', in: 'query', explode: false, schema: { type: 'array', items: { type: 'integer' } } },
          {
            name: 'made',
            in: 'query',
            style: 'deepObject',
            schema: { type: 'object', properties: { gte: { type: 'integer' } } },
          },
        ],
      }),
    },
    '/orders': {
      post: sold('/orders', {
        operationId: 'order',
        requestBody: {
          required: true,
          content: {
            'application/x-www-form-urlencoded': {
              schema: {
                type: 'object',
                required: ['text'],
                properties: { text, count: { type: 'integer' }, tags: { type: 'array', items: text } },
              },
            },
          },
        },
      }),
    },
    '/regions': {
      get: sold('/regions', {
        operationId: 'regions',
        parameters: [
          { name: 'X-Region', in: 'header', required: true, schema: text },
          { name: 'X-Sizes', in: 'header', schema: { type: 'array', items: { type: 'integer' } } },
        ],
      }),
    },
    '/notes': { delete: sold('/notes', { operationId: 'removeNotes', requestBody: json(note) }) },
  };
  return stringify({ info: { title: 'All requests' }, paths });
}

describe('Whatever an API accepts, its buyers can send', function () {
  this.timeout(120_000);
  let folder: string;
  let upstream: TestUpstream;
  let world: World;

  before(async () => {
    upstream = await TestUpstream.open();
    folder = await mkdtemp(join(tmpdir(), 'coinslot-sent-'));
    await writeFile(join(folder, 'openapi.yaml'), contractOf(upstream.url));
    world = await openWorld({ SHOP_DIR: folder, ALLOW_PRIVATE_UPSTREAMS: 'true' });
  });
  after(async () => {
    await world?.close();
    upstream.close();
    await rm(folder, { recursive: true, force: true });
  });

  const JSON_TYPE = { 'content-type': 'application/json' };
  const send = ({ path, ...init }: Sent, payment = {}): Promise<Answer> =>
    call(world.url + path, { ...init, headers: { ...init.headers, ...payment } });

  /** Buys over HTTP, and sends the same call again with the same payment. @returns the only request that the API received */
  async function bought(sent: Sent): Promise<UpstreamCall> {
    upstream.calls.length = 0;
    const unpaid = await send(sent);
    expect(unpaid.status, unpaid.body.toString()).to.equal(402);
    const payment = await signFor(world, sent.path, 2, unpaid);
    const answer = await send(sent, payment);
    expect([answer.status, receiptOf(answer).success], answer.body.toString()).to.deep.equal([200, true]);
    expect((await send(sent, payment)).body).to.deep.equal(answer.body);
    expect(upstream.calls).to.have.length(1);
    return upstream.calls[0] as UpstreamCall;
  }

  /**
   * Buys over MCP; the same call over HTTP, with the same payment, gets the same answer.
   * @returns the only request that the API received
   */
  async function boughtAsTool(tool: string, args: Json, same: Sent): Promise<UpstreamCall> {
    upstream.calls.length = 0;
    const payment = await signFor(world, same.path, 2, await send(same));
    const result = await callTool(world.url, tool, args, paid(payloadOf(payment)));
    expect(result._meta, JSON.stringify(result)).to.have.nested.property(
      'x402/payment-response.success',
      true,
    );
    const answer = await send(same, payment);
    expect([answer.status, answer.body.toString()]).to.deep.equal([200, result.content[0]?.text]);
    expect(upstream.calls, 'the same call').to.have.length(1);
    return upstream.calls[0] as UpstreamCall;
  }

  it('headers that the contract declares, and no others', async () => {
    const sent = (region: string): Sent => {
      const headers = {
        'x-region': region,
        'X-Sizes': '1,2',
        'X-Other': 'mine',
        Authorization: 'Bearer mine',
      };
      return { method: 'GET', path: '/regions', headers };
    };
    const overHttp = await bought(sent('eu'));
    const overMcp = await boughtAsTool('regions', { 'X-Region': 'us', 'X-Sizes': [1, 2] }, sent('us'));
    for (const [{ headers }, region] of [
      [overHttp, 'eu'],
      [overMcp, 'us'],
    ] as const) {
      expect(headers).to.include({ 'x-region': region, 'x-sizes': '1, 2', 'user-agent': 'coinslot' });
      expect(headers).not.to.have.any.keys('x-other', 'authorization', 'payment-signature');
    }
  });

  it("lists and objects of a query, in the contract's notation", async () => {
    const sent = (n: number): Sent => ({ method: 'GET', path: `/found?made[gte]=${n}&ids=1%2C2` });
    const overMcp = { ids: [1, 2], made: { gte: 2 } };
    const calls = [await bought(sent(1)), await boughtAsTool('find', overMcp, sent(2))];
    expect(calls.map(({ url }) => url)).to.deep.equal([
      '/found?ids=1,2&made%5Bgte%5D=1',
      '/found?ids=1,2&made%5Bgte%5D=2',
    ]);
  });

  it('forms', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const sent = (n: number): Sent => ({
      method: 'POST',
      path: '/orders',
      headers,
      body: `tags=a&text=a+b&count=${n}&tags=c`,
    });
    const args = { text: 'a b', count: 2, tags: ['a', 'c'] };
    for (const [each, count] of [
      [await bought(sent(1)), 1],
      [await boughtAsTool('order', args, sent(2)), 2],
    ] as const) {
      expect(Object.fromEntries(new URLSearchParams(each.body))).to.deep.equal({
        text: 'a b',
        count: String(count),
        tags: 'c',
      });
      expect(new URLSearchParams(each.body).getAll('tags')).to.deep.equal(['a', 'c']);
      expect(each.headers['content-type']).to.equal(headers['content-type']);
    }
  });

  it('PUT, PATCH and DELETE, with and without a body', async () => {
    const rows: [method: string, tool: string, path: string | undefined, hasBody: boolean][] = [
      ['PUT', 'replaceNote', '/notes/', true],
      ['PATCH', 'changeNote', '/notes/', true],
      ['DELETE', 'removeNote', '/notes/', false],
      ['DELETE', 'removeNotes', undefined, true],
    ];
    for (const [method, tool, prefix, hasBody] of rows) {
      const sent = (n: number): Sent & { body?: string } => ({
        method,
        path: prefix === undefined ? '/notes' : `${prefix}${n}`,
        ...(hasBody ? { headers: JSON_TYPE, body: `{"text":"${n}"}` } : {}),
      });
      const args = hasBody ? { text: '2' } : {};
      const asTool = prefix === undefined ? args : { id: 2, ...(hasBody ? { body: args } : {}) };
      const calls = [await bought(sent(1)), await boughtAsTool(tool, asTool, sent(2))];
      expect(calls.map(each => [each.method, each.url, each.body])).to.deep.equal(
        [sent(1), sent(2)].map(each => [method, each.path, each.body ?? '']),
      );
    }
  });
});
