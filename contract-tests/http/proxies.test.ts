import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import {
  createServer,
  get,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { portOf } from '../../src/http/listen.js';
import { hangUpIsTold } from '../../src/net/hang-up.js';
import { until } from '../support/faults.js';
import { SIGNATURE } from '../support/charge-world.js';
import { callTool, paid } from '../support/mcp-call.js';
import {
  noProxy,
  openCaddyOver,
  openFlushingCaddy,
  openHaproxy,
  openHaproxyOver,
  openWithOps,
  type Proxy,
  type ProxyName,
} from '../support/proxies.js';
import { ANSWERS_URL, TestUpstream, UpstreamShop } from '../support/upstream-shop.js';
import { call } from '../support/world.js';

/** Longer than a test may take: the work ends because its buyer is gone, or not at all. */
const API_MS = 19_000;
/** The length of the longest valid payment. */
const LONG_HEADER = 'a'.repeat(7_500);

/** More than the files in ops/ allow. */
const LARGE_BODY = Buffer.alloc(11 << 20, ' ');
const SPEECH = Buffer.from(Array.from({ length: 1 << 19 }, (_, index) => index % 256));
const FILES = { nginx: 'nginx.conf', haproxy: 'haproxy.cfg', caddy: 'Caddyfile' };
/** Paths of the admin listener. */
const FOR_OPERATORS = ['/ready', '/metrics', '/login', '/payments'];

/** The next call to the API behind the shop, which the test answers later. */
function held(upstream: TestUpstream): Promise<ServerResponse> {
  return new Promise(resolve => {
    upstream.answer = (_request, response) => resolve(response);
  });
}

/** A buyer who pays through a proxy, and hangs up while the API works. @returns the API's pending response */
async function hangUp(proxy: Proxy, shop: UpstreamShop, upstream: TestUpstream): Promise<ServerResponse> {
  const working = held(upstream);
  const buyer = new AbortController();
  const headers = shop.pay('one');
  const gone = fetch(`${proxy.url}/one`, { headers, signal: buyer.signal }).catch(() => undefined);
  const response = await working;
  buyer.abort();
  await gone;
  return response;
}

/**
 * Posts a body over the maximum size: either announces its length and sends only the beginning, or sends all of it
 * in chunks. @returns the status; undefined if the connection is closed while the buyer is still sending
 */
function postLarge(
  url: string,
  headers: Record<string, string>,
  chunked: boolean,
): Promise<number | undefined> {
  return new Promise(resolve => {
    const length = chunked ? {} : { 'Content-Length': String(LARGE_BODY.length) };
    const sent = request(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers, ...length },
    });
    sent.once('response', response => {
      resolve(response.statusCode);
      sent.destroy();
    });
    sent.once('error', () => resolve(undefined));
    if (chunked) sent.end(LARGE_BODY);
    else sent.write(' ');
  });
}

/** Calls a tool and requests progress. @returns the response, which is an event stream */
async function openTool(
  url: string,
  name: string,
  payment: Record<string, string>,
): Promise<IncomingMessage> {
  const carried = JSON.parse(Buffer.from(payment['PAYMENT-SIGNATURE'] ?? '', 'base64').toString()) as unknown;
  const params = { name, arguments: {}, _meta: { ...paid(carried), progressToken: 'here' } };
  const sent = request(`${url}/mcp`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
  });
  sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

async function open(): Promise<{ shop: UpstreamShop; upstream: TestUpstream }> {
  const upstream = await TestUpstream.open();
  const at = { upstream: { url: upstream.url, timeoutMs: API_MS } };
  const shop = await UpstreamShop.open([
    { id: 'one', path: '/one', ...at },
    { id: 'order', path: '/order', ...at, flow: 'upfront' },
    { id: 'posted', path: '/posted', ...at, method: 'post', body: { type: 'object' } },
    {
      id: 'speech',
      path: '/speech',
      ...at,
      content: { 'audio/wav': { type: 'string', format: 'binary' } },
    },
  ]);
  return { shop, upstream };
}

for (const name of ['nginx', 'haproxy', 'caddy'] as const)
  describe(`${name} with its file in ops/`, function () {
    this.timeout(12_000);
    let upstream: TestUpstream;
    let shop: UpstreamShop;
    let proxy: Proxy;

    before(async function () {
      if (noProxy(name)) return this.skip();
      ({ shop, upstream } = await open());
      proxy = await openWithOps(name, shop.url);
    });
    beforeEach(() => upstream.says(200, '{"value":7}'));
    after(async () => {
      await proxy?.close();
      await shop?.close();
      upstream?.close();
    });

    it('passes the price, a sale and its receipt, over HTTP and MCP', async () => {
      const price = await call(`${proxy.url}/one`);
      expect([price.status, price.headers.has('payment-required')]).to.deep.equal([402, true]);
      const headers = shop.pay('one');
      const bought = await call(`${proxy.url}/one`, { headers });
      expect([bought.status, bought.json()]).to.deep.equal([200, { value: 7 }]);
      expect(bought.headers.has('payment-response')).to.equal(true);
      const { 'PAYMENT-SIGNATURE': payment = '' } = shop.pay('one');
      const tool = await callTool(
        proxy.url,
        'one',
        {},
        paid(JSON.parse(Buffer.from(payment, 'base64').toString())),
      );
      expect(tool.structuredContent).to.deep.equal({ value: 7 });
    });

    it('passes a payment of the maximum length', async () => {
      const answer = await call(`${proxy.url}/one`, { headers: { 'payment-signature': LONG_HEADER } });
      expect([answer.status, answer.headers.has('payment-required')]).to.deep.equal([402, true]);
    });

    it('passes speech audio unchanged', async () => {
      upstream.says(200, SPEECH, { 'Content-Type': 'audio/wav' });
      const bought = await call(`${proxy.url}/speech`, { headers: shop.pay('speech') });
      expect([bought.status, bought.headers.get('content-type')]).to.deep.equal([200, 'audio/wav']);
      expect(bought.body.equals(SPEECH)).to.equal(true);
      expect(bought.headers.has('payment-response')).to.equal(true);
    });

    it('passes an order that takes longer than its buyer waits, and the answer that is fetched later', async () => {
      const working = held(upstream);
      const payment = shop.pay('order');
      const begun = await call(`${proxy.url}/order`, { headers: { ...payment, Prefer: 'wait=0' } });
      expect([begun.status, begun.headers.has('retry-after')]).to.deep.equal([503, true]);
      const link = begun.headers.get('location') ?? '';
      expect(link).to.contain(ANSWERS_URL);
      const api = await working;
      api.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":8}');
      const again = await call(`${proxy.url}/order`, { headers: payment });
      const fetched = await call(link.replace(new URL(link).origin, proxy.url));
      for (const answer of [again, fetched])
        expect([answer.status, answer.json()]).to.deep.equal([200, { value: 8 }]);
    });

    it('passes the progress of an MCP tool while its work continues, and then its answer', async () => {
      const working = held(upstream);
      const stream = await openTool(proxy.url, 'order', shop.pay('order'));
      const [first] = (await once(stream, 'data')) as [Buffer];
      expect(first.toString()).to.match(/^data: .*"notifications\/progress".*"progressToken":"here"/m);
      const api = await working;
      api.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":9}');
      let rest = '';
      for await (const chunk of stream) rest += String(chunk);
      expect(rest).to.match(/^data: .*"structuredContent":\{"value":9\}/m);
    });

    it('has no route to the admin listener', async () => {
      const file = readFileSync(new URL(`../../../ops/${FILES[name]}`, import.meta.url), 'utf8');
      const used = file.split('\n').filter(line => line.includes('8404') && !/^\s*#/.test(line));
      // HAProxy uses the listener's port only to ask whether the server is ready.
      expect(used.filter(line => !line.endsWith(' check port 8404'))).to.deep.equal([]);
      for (const path of FOR_OPERATORS) expect((await call(proxy.url + path)).status, path).to.equal(404);
    });

    // Caddy waits for the announced bytes.
    for (const chunked of name === 'caddy' ? [true] : [false, true])
      it(`rejects a body over the maximum size, ${chunked ? 'sent in chunks' : 'with its length'}: no work, no charge`, async () => {
        const [settled, asked] = [shop.facilitator.settles, upstream.calls.length];
        const status = await postLarge(`${proxy.url}/posted`, shop.pay('posted'), chunked);
        // Sent in chunks, the body exceeds the shop's limit first: the proxy passes on the refusal, or hangs up while the client sends.
        expect(chunked ? [400, 413, undefined] : [413]).to.include(status);
        expect([shop.facilitator.settles, upstream.calls.length]).to.deep.equal([settled, asked]);
        expect((await call(`${proxy.url}/one`)).status).to.equal(402);
      });

    it('tells the server that a buyer hung up: the work ends, and nothing is charged', async () => {
      const settled = shop.facilitator.settles;
      const response = await hangUp(proxy, shop, upstream);
      if (!response.destroyed) await once(response, 'close');
      expect([response.writableFinished, shop.facilitator.settles - settled]).to.deep.equal([false, 0]);
    });

    it('forwards hang-ups, which a check through it detects without a purchase', async () => {
      const settled = shop.facilitator.settles;
      expect(await hangUpIsTold(proxy.url)).to.equal(true);
      expect(shop.facilitator.settles - settled).to.equal(0);
    });
  });

describe('HAProxy with its defaults', function () {
  this.timeout(20_000);

  it('hides that a buyer hung up, so that the buyer is charged: hence the option in ops/haproxy.cfg', async function () {
    if (noProxy('haproxy')) return this.skip();
    const { shop, upstream } = await open();
    const proxy = await openHaproxy(shop.url);
    const charged = new Promise<void>(resolve => {
      shop.facilitator.onSettle = async () => {
        resolve();
        return { kind: 'settled', signature: SIGNATURE };
      };
    });
    const response = await hangUp(proxy, shop, upstream);
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":7}');
    await charged;
    expect(await hangUpIsTold(proxy.url)).to.equal(false);
    await proxy.close();
    await shop.close();
    upstream.close();
  });
});

describe('Caddy with flush_interval -1', function () {
  this.timeout(20_000);

  it('hides hang-ups, which a check through it detects', async function () {
    if (noProxy('caddy')) return this.skip();
    const { shop, upstream } = await open();
    const proxy = await openFlushingCaddy(shop.url);
    expect(await hangUpIsTold(proxy.url)).to.equal(false);
    await proxy.close();
    await shop.close();
    upstream.close();
  });
});

for (const [name, open] of Object.entries({ haproxy: openHaproxyOver, caddy: openCaddyOver }))
  describe(`A server that is not ready, behind ${name}`, function () {
    this.timeout(20_000);

    it('still gets requests for free documents and paid answers, and answers with its own reason why nothing is sold', async function () {
      if (noProxy(name as ProxyName)) return this.skip();
      let refused = 0;
      const ready = createServer((_request, response) => {
        refused += 1;
        response.writeHead(503).end();
      }).listen(0, '127.0.0.1');
      const shop = createServer((_request, response) =>
        response.writeHead(503, { 'Retry-After': '7' }).end('itself'),
      ).listen(0, '127.0.0.1');
      await Promise.all([once(ready, 'listening'), once(shop, 'listening')]);
      const proxy = await open({ hosts: ['127.0.0.1'], port: portOf(shop), ready: portOf(ready) });
      await until('it was refused', () => refused >= 3);
      for (const method of ['GET', 'POST']) {
        const answer = await call(proxy.url, { method, ...(method === 'POST' ? { body: '{}' } : {}) });
        expect([answer.status, answer.headers.get('retry-after'), answer.body.toString()]).to.deep.equal([
          503,
          '7',
          'itself',
        ]);
      }
      await proxy.close();
      for (const each of [ready, shop]) {
        each.closeAllConnections();
        each.close();
      }
    });
  });

describe('A check through a URL', function () {
  this.timeout(20_000);

  it("can't judge hang-ups if nothing answers, or another server does", async () => {
    const other = createServer((_request, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    expect(await hangUpIsTold(`http://127.0.0.1:${port}`)).to.equal(undefined);
    other.closeAllConnections();
    other.close();
    expect(await hangUpIsTold(`http://127.0.0.1:${port}`)).to.equal(undefined);
  });
});

for (const name of ['nginx', 'haproxy', 'caddy'] as const)
  describe(`The request that a server behind ${name} gets`, function () {
    this.timeout(12_000);
    let server: Server;
    let proxy: Proxy;
    let serve: (request: IncomingMessage, response: ServerResponse) => void;

    before(async function () {
      if (noProxy(name)) return this.skip();
      server = createServer((request, response) => serve(request, response)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      proxy = await openWithOps(name, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
    after(async () => {
      await proxy?.close();
      server?.closeAllConnections();
      server?.close();
    });

    it("has the caller's real address, not a claimed one, and the original host", async () => {
      serve = ({ headers }, response) =>
        response.end(JSON.stringify({ from: headers['x-forwarded-for'], host: headers.host }));
      const answer = await call(proxy.url, { headers: { 'x-forwarded-for': '6.6.6.6' } });
      const { from, host } = answer.json() as { from: string; host: string };
      expect(from.split(',').at(-1)?.trim()).to.equal('127.0.0.1');
      expect(host).to.match(/^127\.0\.0\.1/);
    });

    it('is answered without buffering: progress is not held back', async () => {
      let finish = (): void => undefined;
      serve = (_request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
        finish = () => response.end('data: 2\n\n');
      };
      const [response] = (await once(get(proxy.url), 'response')) as [IncomingMessage];
      const [first] = (await once(response, 'data')) as [Buffer];
      expect(first.toString()).to.equal('data: 1\n\n');
      finish();
      const [second] = (await once(response, 'data')) as [Buffer];
      expect(second.toString()).to.equal('data: 2\n\n');
    });
  });
