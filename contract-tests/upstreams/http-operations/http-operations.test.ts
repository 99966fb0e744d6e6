import { expect } from 'chai';
import { lookup } from 'node:dns/promises';
import { request as httpRequest, type ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { ContractFault } from '../../../src/contract/contract.js';
import { createHttpOperations } from '../../../src/upstreams/http-operations/http-operations.js';
import type { UpstreamSettings } from '../../../src/upstreams/http-operations/upstream-request.js';
import { until } from '../../support/faults.js';
import {
  contractOf,
  TestUpstream,
  UpstreamShop,
  VALUE,
  type OperationForSale,
} from '../../support/upstream-shop.js';

const ITEM = { id: 'getItem', path: '/items/{id}', parameters: [{ name: 'id', in: 'path' as const }] };
const NOTHING_SET: UpstreamSettings = { variable: () => undefined, allowPrivate: false };

describe('Operations that an HTTP API serves', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop | undefined;
  beforeEach(async () => {
    upstream = await TestUpstream.open();
  });
  afterEach(async () => {
    await shop?.close();
    upstream.close();
    shop = undefined;
  });

  async function open(
    operation: Partial<OperationForSale> & { url?: string; timeoutMs?: number },
    env: Record<string, string> = {},
    breaker = {},
  ): Promise<UpstreamShop> {
    const { url = `${upstream.url}/things/{id}`, timeoutMs = 2_000, ...rest } = operation;
    const whole = { ...ITEM, upstream: { url, timeoutMs }, ...rest };
    return (shop = await UpstreamShop.open([whole], env, { breaker }));
  }

  /** The path and query as they arrive, without a URL parser's changes. */
  async function statusOf(path: string): Promise<number | undefined> {
    const headers = (shop as UpstreamShop).pay('getItem');
    return new Promise((resolve, reject) => {
      const { hostname: host, port } = new URL((shop as UpstreamShop).url);
      const request = httpRequest({ host, port, path, headers }, response => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on('error', reject).end();
    });
  }

  describe('send what the contract declares', () => {
    it('path, query and headers, and nothing about the caller or the payment', async () => {
      const env = { BASE: `${upstream.url}/v2/`, KEY: 'a&b=c d', TOKEN: 'secret-token' };
      await open(
        {
          upstream: {
            url: '${BASE}/things/{id}/of/{id}?format=json&key=${KEY}',
            headers: { Authorization: 'Bearer ${TOKEN}', Accept: 'application/json; q=0.9' },
          },
          parameters: [
            { name: 'id', in: 'path' },
            { name: 'lang', in: 'query' },
            { name: 'tag', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
            { name: 'max', in: 'query', schema: { type: 'integer', default: 5 } },
          ],
        },
        env,
      );
      const answer = await shop?.buy(
        'getItem',
        '/items/a%20b%2Fc%3F?lang=%C3%A4%26x%3D1&tag=1&tag=2&other=3&x402Version=2',
        undefined,
        {
          Cookie: 'session=1',
          Authorization: 'Bearer buyer',
          'X-Forwarded-For': '1.2.3.4',
          Prefer: 'wait=5',
        },
      );
      expect(answer?.status, answer?.body.toString()).to.equal(200);
      const [{ method, url, headers, body } = { headers: {} }] = upstream.calls;
      const path = '/v2/things/a%20b%2Fc%3F/of/a%20b%2Fc%3F';
      expect([method, url, body]).to.deep.equal([
        'GET',
        `${path}?format=json&key=a%26b%3Dc%20d&lang=%C3%A4%26x%3D1&tag=1&tag=2&max=5`,
        '',
      ]);
      expect(headers).to.deep.equal({
        host: new URL(upstream.url).host,
        connection: 'keep-alive',
        accept: 'application/json; q=0.9',
        'accept-encoding': 'gzip',
        'user-agent': 'coinslot',
        authorization: 'Bearer secret-token',
      });
    });

    it('the validated body with its defaults, by the method of the upstream', async () => {
      await open({
        path: '/items',
        parameters: [],
        method: 'post',
        body: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer', default: 7 } } },
        upstream: { url: upstream.url, method: 'PUT' },
      });
      const answer = await shop?.buy('getItem', '/items', { a: 'ä' });
      expect(answer?.status).to.equal(200);
      const [{ method, url, headers, body } = { headers: {} }] = upstream.calls;
      expect([method, url, body]).to.deep.equal(['PUT', '/', '{"a":"ä","b":7}']);
      expect(headers).to.include({ 'content-type': 'application/json', accept: 'application/json' });
      expect(Object.keys(headers)).not.to.include.oneOf(['payment-signature', 'x-payment', 'origin']);
    });

    for (const id of [
      '..',
      '.',
      '%2e%2e',
      '%2E',
      '..%2F..%2Fadmin',
      'a%2F..%2Fb',
      'a%5c..%5cb',
      '%2e%2e%5cb',
      'a%00b',
      'a%0d%0ab',
    ]) {
      it(`no request if a parameter would change the path: ${id}`, async () => {
        await open({});
        expect(await statusOf(`/items/${id}`)).to.equal(400);
        expect(upstream.calls).to.deep.equal([]);
        expect(shop?.facilitator.settles).to.equal(0);
      });
    }

    for (const id of ['...', '.a', 'a..b', '%252e%252e', 'a%2Fb', ';a=1', '%23top', '%3Fa=b', '*', "it's"]) {
      it(`a parameter as a single segment of the path: ${id}`, async () => {
        await open({});
        expect(await statusOf(`/items/${id}`)).to.equal(200);
        const [{ url } = { url: '' }] = upstream.calls;
        expect(url.split('/')).to.have.length(3);
        expect(url).not.to.match(/[?#]/);
        expect(decodeURIComponent(url.slice('/things/'.length))).to.equal(decodeURIComponent(id));
      });
    }

    it('nothing for an unpaid call', async () => {
      await open({});
      expect((await shop?.call('/items/7', {}))?.status).to.equal(402);
      expect(upstream.connections).to.equal(0);
    });

    it('a GET again if its connection had just ended, but never a POST', async () => {
      for (const method of ['GET', 'POST']) {
        let calls = 0;
        upstream.answer = (_request, response) => {
          calls += 1;
          if (calls === 2) response.socket?.destroy();
          else response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":1}');
        };
        await open({ upstream: { url: `${upstream.url}/{id}`, method } });
        expect((await shop?.buy('getItem', '/items/1'))?.status).to.equal(200);
        expect((await shop?.buy('getItem', '/items/2'))?.status).to.equal(method === 'GET' ? 200 : 502);
        expect(calls).to.equal(method === 'GET' ? 3 : 2);
        await shop?.close();
        shop = undefined;
      }
    });
  });

  describe('sell what conforms to the contract', () => {
    it('JSON exactly as the API wrote it, even if it was compressed', async () => {
      const text = '{ "value": 1.50, "id": 12345678901234567890, "value": 2 }';
      await open({});
      for (const gzip of [false, true]) {
        upstream.says(201, gzip ? gzipSync(text) : text, gzip ? { 'Content-Encoding': 'gzip' } : {});
        const answer = await shop?.buy('getItem', '/items/1');
        expect([answer?.status, answer?.body.toString()]).to.deep.equal([200, text]);
        expect(answer?.headers.get('content-type')).to.match(/^application\/json/);
        expect(answer?.headers.get('content-encoding')).to.equal(null);
        expect(answer?.headers.get('payment-response')).to.be.a('string');
      }
      expect(await shop?.states()).to.deep.equal(['delivered', 'delivered']);
    });

    it('text in UTF-8, whatever charset the API used', async () => {
      await open({ content: { 'text/csv': { type: 'string', maxLength: 10 } } });
      const type = 'text/csv; charset=iso-8859-1';
      upstream.says(200, Buffer.from('é;ü', 'latin1'), { 'Content-Type': type });
      const answer = await shop?.buy('getItem', '/items/1');
      expect([answer?.status, answer?.body.toString()]).to.deep.equal([200, 'é;ü']);
      expect(answer?.headers.get('content-type')).to.equal('text/csv; charset=utf-8');
      for (const [body, charset] of [
        ['x'.repeat(11), 'utf-8'],
        ['x', 'klingon'],
        ['', 'utf-8'],
      ] as const) {
        upstream.says(200, body, { 'Content-Type': `text/csv; charset=${charset}` });
        expect((await shop?.buy('getItem', '/items/1'))?.status, body + charset).to.equal(502);
      }
    });

    it('files up to the size in the contract, with the headers that it declares', async () => {
      const content = { 'image/png': { type: 'string', format: 'binary', maxLength: 5 * 1024 * 1024 } };
      await open({ content, headers: ['X-Width', 'Set-Cookie', 'PAYMENT-RESPONSE'] });
      const headers = {
        'Content-Type': 'image/PNG',
        'x-width': '7',
        'X-Height': '8',
        'Set-Cookie': 'a=b',
        'Payment-Response': 'forged',
      };
      upstream.says(200, Buffer.alloc(5 * 1024 * 1024, 1), headers);
      const answer = await shop?.buy('getItem', '/items/1');
      expect([answer?.status, answer?.body.length]).to.deep.equal([200, 5 * 1024 * 1024]);
      expect(answer?.headers.get('content-type')).to.equal('image/png');
      expect(answer?.headers.get('x-width')).to.equal('7');
      expect(answer?.headers.get('x-height')).to.equal(null);
      expect(answer?.headers.get('set-cookie')).to.equal(null);
      expect(answer?.headers.get('payment-response')).not.to.contain('forged');
      upstream.says(200, Buffer.alloc(5 * 1024 * 1024 + 1, 1), headers);
      expect((await shop?.buy('getItem', '/items/1'))?.status).to.equal(502);
      upstream.says(200, '', headers);
      expect((await shop?.buy('getItem', '/items/1'))?.status).to.equal(502);
    });

    it('answers in any of several content types', async () => {
      await open({ content: { 'application/json': VALUE, 'text/plain': { type: 'string' } } });
      upstream.says(200, 'one', { 'Content-Type': 'text/plain' });
      const answer = await shop?.buy('getItem', '/items/1');
      expect([answer?.status, answer?.body.toString()]).to.deep.equal([200, 'one']);
      expect(answer?.headers.get('content-type')).to.match(/^text\/plain/);
      expect(upstream.calls[0]?.headers.accept).to.equal('application/json, text/plain');
      upstream.says(200, 'one');
      expect((await shop?.buy('getItem', '/items/1'))?.status).to.equal(502);
    });
  });

  describe('do not start', () => {
    const faultsOf = (operations: OperationForSale[], settings = NOTHING_SET): string[] => {
      try {
        createHttpOperations(contractOf(operations), settings);
      } catch (error) {
        expect(error).to.be.instanceOf(ContractFault);
        return (error as Error).message.split('\n').slice(1);
      }
      return [];
    };
    const sold = (upstreamKey: object, id = 'getItem'): OperationForSale => ({
      ...ITEM,
      id,
      path: `/${id}/{id}`,
      upstream: upstreamKey,
    });

    it('without the environment variables that they refer to, and the error names all of them', () => {
      const headers = { authorization: 'Bearer ${KEY_A}', 'x-b': '${KEY_B}${KEY_A}' };
      expect(
        faultsOf([
          sold({ url: 'https://api.example.com/{id}?k=${KEY_C}', headers }),
          sold({ url: '${BASE}/{id}' }, 'other'),
        ]),
      ).to.deep.equal([
        '  openapi.yaml paths./getItem/{id}.get.x-upstream.headers.authorization: the environment variable KEY_A must be set',
        '  openapi.yaml paths./getItem/{id}.get.x-upstream.headers.x-b: the environment variable KEY_B must be set',
        '  openapi.yaml paths./getItem/{id}.get.x-upstream.headers.x-b: the environment variable KEY_A must be set',
        '  openapi.yaml paths./getItem/{id}.get.x-upstream.url: the environment variable KEY_C must be set',
        '  openapi.yaml paths./other/{id}.get.x-upstream.url: the environment variable BASE must be set',
      ]);
    });

    it("with a value that can't be sent in a header, and the error does not repeat it", () => {
      const settings = { ...NOTHING_SET, variable: () => 'sk-secret\r\nx: y' };
      const faults = faultsOf([sold({ url: 'https://a.example/{id}', headers: { a: '${KEY}' } })], settings);
      expect(faults.join()).to.contain('the value of KEY has line ends').and.not.to.contain('sk-secret');
    });

    for (const base of [
      'api.example.com',
      'ftp://a.example',
      'https://u:p@a.example',
      'https://a.example?x=1',
      'https://a.example/#x',
      'https://',
    ]) {
      it(`with an invalid address: ${base}`, () => {
        const faults = faultsOf([sold({ url: '${BASE}/{id}' })], { ...NOTHING_SET, variable: () => base });
        expect(faults).to.have.length(1);
        expect(faults[0]).to.contain('x-upstream.url: its variable must hold an http(s) URL');
      });
    }

    for (const host of [
      '127.0.0.1',
      'localhost',
      'api.localhost',
      '[::1]',
      '10.0.0.1:8080',
      '169.254.169.254',
      '0x7f000001',
      '[::ffff:10.0.0.1]',
      'localhost.',
    ]) {
      it(`with a private address, unless that is allowed: ${host}`, async () => {
        for (const url of [`http://${host}/{id}`, '${BASE}/{id}']) {
          const variable = (): string => `http://${host}`;
          const faults = faultsOf([sold({ url })], { ...NOTHING_SET, variable });
          expect(faults.join()).to.contain('has a private address: set ALLOW_PRIVATE_UPSTREAMS=true');
          await createHttpOperations(contractOf([sold({ url })]), { variable, allowPrivate: true }).close();
        }
      });
    }
  });

  it('warn when keys are sent unencrypted', async () => {
    const variable = (): string => 'a-key-of-an-api';
    const warningsOf = async (url: string, headers: object): Promise<string[]> => {
      const contract = contractOf([{ ...ITEM, upstream: { url, headers } }]);
      const operations = createHttpOperations(contract, { variable, allowPrivate: true });
      await operations.close();
      return operations.warnings;
    };
    const headers = { 'X-Key': '${KEY}' };
    expect(await warningsOf('http://api.example.com/{id}', headers)).to.deep.equal([
      'getItem sends values from environment variables unencrypted: use https in its x-upstream',
    ]);
    for (const url of ['https://api.example.com/{id}', 'http://10.0.0.1/{id}', 'http://localhost:80/{id}'])
      expect(await warningsOf(url, headers), url).to.deep.equal([]);
    expect(await warningsOf('http://api.example.com/{id}', {})).to.deep.equal([]);
  });

  it('never connect to a host name that resolves to a private address', async function () {
    const { address } = await lookup(hostname()).catch(() => ({ address: '' }));
    if (!/^(127|10|172|192\.168)\./.test(address)) return this.skip();
    const { port } = new URL(upstream.url);
    const operation = { ...ITEM, upstream: { url: `http://${hostname()}:${port}/{id}` } };
    shop = await UpstreamShop.open([operation], {}, { allowPrivate: false });
    const answer = await shop.buy('getItem', '/items/1');
    expect(answer.status, answer.body.toString()).to.equal(502);
    expect(answer.json().error).to.match(
      /has an address that is not allowed; the seller must fix this\. You were not charged/,
    );
    expect(upstream.connections).to.equal(0);
    await shop.probe();
    expect(shop.health().upstreams.getItem?.status).not.to.equal('ok');
    expect(upstream.connections).to.equal(0);
  });

  describe('share one circuit per host', () => {
    const two = (): OperationForSale[] => [
      { ...ITEM, upstream: { url: `${upstream.url}/a/{id}`, timeoutMs: 15_000 } },
      {
        ...ITEM,
        id: 'order',
        path: '/orders/{id}',
        flow: 'upfront',
        upstream: { url: `${upstream.url}/b/{id}`, timeoutMs: 15_000 },
      },
    ];

    it('that opens after several failures in a row, so that no buyer pays up front for nothing, and closes again', async () => {
      shop = await UpstreamShop.open(two(), {}, { breaker: { failures: 3, restMs: 1_000, quietMs: 0 } });
      upstream.says(503, '');
      for (let call = 0; call < 3; call++)
        expect((await shop.buy('getItem', '/items/1')).status).to.equal(503);
      const asked = upstream.calls.length;
      const answer = await shop.buy('getItem', '/items/1');
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1']);
      expect(answer.json().error).to.match(/keeps failing; try again later\. You were not charged/);
      const order = await shop.buy('order', '/orders/1');
      expect([order.status, order.headers.get('retry-after')]).to.deep.equal([503, '1']);
      expect(order.json().error).to.match(/keeps failing; try again later\. You were not charged/);
      expect([upstream.calls.length, shop.facilitator.settles]).to.deep.equal([asked, 0]);
      upstream.says(200, '{"value":1}');
      await pause(1_100);
      expect((await shop.buy('order', '/orders/1')).status).to.equal(200);
      expect((await shop.buy('getItem', '/items/1')).status).to.equal(200);
    });

    it('that does not open because of answers that concern only one caller’s calls', async () => {
      shop = await UpstreamShop.open(two(), {}, { breaker: { failures: 2, restMs: 60_000, quietMs: 0 } });
      for (const status of [500, 400, 404, 401, 302]) {
        upstream.says(status, '');
        for (let call = 0; call < 3; call++) await shop.buy('getItem', '/items/1');
      }
      upstream.says(200, ' '.repeat(5_000_000));
      for (let call = 0; call < 3; call++) await shop.buy('getItem', '/items/1');
      upstream.says(200, '{"value":1}');
      expect((await shop.buy('order', '/orders/1')).status).to.equal(200);
    });

    it('that opens immediately when the host limits its callers', async () => {
      shop = await UpstreamShop.open(two());
      upstream.says(429, '', { 'Retry-After': '30' });
      expect((await shop.buy('getItem', '/items/1')).headers.get('retry-after')).to.equal('30');
      expect((await shop.buy('order', '/orders/1')).headers.get('retry-after')).to.equal('30');
      expect(upstream.calls).to.have.length(1);
    });

    it('and at most 32 connections', async () => {
      shop = await UpstreamShop.open(two());
      const held: ServerResponse[] = [];
      let open = false;
      const end = (response: ServerResponse): void =>
        void response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":1}');
      upstream.answer = (_request, response) => {
        if (open) end(response);
        else held.push(response);
      };
      const calls = Array.from({ length: 50 }, () => shop?.buy('getItem', '/items/1'));
      await until('all connections are busy', () => held.length === 32);
      await pause(100);
      expect(held).to.have.length(32);
      open = true;
      for (const response of held) end(response);
      for (const call of calls) expect((await call)?.status).to.equal(200);
      expect(upstream.connections).to.equal(32);
    });
  });

  describe('are in /health by their operationId', () => {
    it('as reachable, without a request', async () => {
      await open({});
      expect(shop?.health().upstreams).to.deep.equal({ getItem: { status: 'unknown' } });
      await shop?.probe();
      expect(shop?.health().upstreams.getItem?.status).to.equal('ok');
      expect([upstream.connections, upstream.calls.length]).to.deep.equal([1, 0]);
    });

    it('as down when nothing listens', async () => {
      await open({});
      upstream.close();
      await shop?.probe();
      expect(shop?.health()).to.deep.include({ status: 'degraded' });
      expect(shop?.health().upstreams.getItem?.status).to.equal('down');
    });

    for (const [name, status, body, why] of [
      [
        'fail',
        500,
        '{"error":"db-7 is down"}',
        'The service behind this operation failed (500); try again later',
      ],
      ['do not conform to the contract', 200, '{"value":"x"}', 'the answer does not conform to the contract'],
    ] as const) {
      it(`as degraded when calls ${name}, without the upstream's text`, async () => {
        await open({});
        upstream.says(status, body);
        await shop?.buy('getItem', '/items/1');
        const { status: health, detail } = shop?.health().upstreams.getItem ?? {};
        expect(health).to.equal('degraded');
        expect(detail).to.contain(why).and.not.to.contain('db-7');
        upstream.says(200, '{"value":1}');
        await shop?.buy('getItem', '/items/1');
        expect(shop?.health().upstreams.getItem?.status).to.equal('unknown');
      });
    }

    it('unchanged when a caller asked for something that does not exist', async () => {
      await open({});
      upstream.says(404, '');
      await shop?.buy('getItem', '/items/1');
      expect(shop?.health().status).to.equal('ok');
    });
  });
});
