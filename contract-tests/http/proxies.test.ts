import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { SIGNATURE } from '../support/charge-world.js';
import { callTool, paid } from '../support/mcp-call.js';
import { noProxy, openHaproxy, openWithOps, type Proxy } from '../support/proxies.js';
import { TestUpstream, UpstreamShop } from '../support/upstream-shop.js';
import { call } from '../support/world.js';

/** Longer than a test may take: work ends because its buyer is gone, or not at all. */
const API_MS = 19_000;
/** As long as a payment may be. */
const LONG_HEADER = 'a'.repeat(7_500);

/** The next call of the API behind the shop, which is not answered until the test says so. */
function held(upstream: TestUpstream): Promise<ServerResponse> {
  return new Promise(resolve => {
    upstream.answer = (_request, response) => resolve(response);
  });
}

/** A buyer who pays through a proxy, and hangs up while the API works. @returns the response that the API owes */
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

async function open(): Promise<{ shop: UpstreamShop; upstream: TestUpstream }> {
  const upstream = await TestUpstream.open();
  const shop = await UpstreamShop.open([
    { id: 'one', path: '/one', upstream: { url: `${upstream.url}/one`, timeoutMs: API_MS } },
  ]);
  return { shop, upstream };
}

for (const name of ['nginx', 'haproxy', 'caddy'] as const)
  describe(`${name} with its file of ops/`, function () {
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

    it('passes a payment as long as one may be', async () => {
      const answer = await call(`${proxy.url}/one`, { headers: { 'payment-signature': LONG_HEADER } });
      expect([answer.status, answer.headers.has('payment-required')]).to.deep.equal([402, true]);
    });

    it('tells the server that a buyer hung up: the work ends, and nothing is charged', async () => {
      const settled = shop.facilitator.settles;
      const response = await hangUp(proxy, shop, upstream);
      if (!response.destroyed) await once(response, 'close');
      expect([response.writableFinished, shop.facilitator.settles - settled]).to.deep.equal([false, 0]);
    });
  });

describe('HAProxy with its defaults', function () {
  this.timeout(12_000);

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
    await proxy.close();
    await shop.close();
    upstream.close();
  });
});

for (const name of ['nginx', 'haproxy', 'caddy'] as const)
  describe(`What a server behind ${name} sees`, function () {
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

    it('is the address of the caller, not what the caller says that it is, and the host that was asked', async () => {
      serve = ({ headers }, response) =>
        response.end(JSON.stringify({ from: headers['x-forwarded-for'], host: headers.host }));
      const answer = await call(proxy.url, { headers: { 'x-forwarded-for': '6.6.6.6' } });
      const { from, host } = answer.json() as { from: string; host: string };
      expect(from.split(',').at(-1)?.trim()).to.equal('127.0.0.1');
      expect(host).to.match(/^127\.0\.0\.1/);
    });

    it('reaches the caller as it is written: progress is not held back', async () => {
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
