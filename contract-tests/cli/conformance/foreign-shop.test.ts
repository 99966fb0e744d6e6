import { encodePaymentRequiredHeader } from '@x402/core/http';
import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readCatalogue } from '../../../src/cli/conformance/catalogue.js';
import { checkShop } from '../../../src/cli/conformance/check-shop.js';
import type { Finding } from '../../../src/cli/conformance/findings.js';

type Reply = { status: number; headers?: Record<string, string>; body?: unknown };
type Answers = (method: string, path: string, base: string) => Reply | undefined;

const JSON_TYPE = { 'content-type': 'application/json' };
const BASE_SEPOLIA = {
  scheme: 'exact',
  network: 'eip155:84532',
  amount: '20000',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
  maxTimeoutSeconds: 60,
  extra: { name: 'USDC', version: '2' },
};

/** Shops by other authors: x402 over plain HTTP, without any of our documents. */
describe('The conformance report on a shop that does not run Coinslot', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  async function open(answers: Answers): Promise<string> {
    server = createServer((request, response) => {
      const { url = '/', method = 'GET' } = request;
      const base = `http://127.0.0.1:${(server?.address() as AddressInfo).port}`;
      request.resume().on('end', () => {
        const reply = answers(method, url.split('?')[0] ?? '/', base) ?? { status: 404 };
        const body = reply.body === undefined ? '' : JSON.stringify(reply.body);
        response.writeHead(reply.status, { ...(body ? JSON_TYPE : {}), ...reply.headers }).end(body);
      });
    });
    await new Promise<void>(resolve => server?.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server?.address() as AddressInfo).port}`;
  }

  /** A v2 challenge as the official middlewares send it: only in the header. */
  function challenge(url: string, option: object = BASE_SEPOLIA): Reply {
    const required = { x402Version: 2, error: 'Payment required', resource: { url }, accepts: [option] };
    return {
      status: 402,
      headers: { 'PAYMENT-REQUIRED': encodePaymentRequiredHeader(required as never) },
      body: {},
    };
  }

  const broken = (findings: Finding[], advice = false): string[] =>
    findings
      .filter(finding => finding.fault !== undefined && finding.advice === advice)
      .map(({ promise, fault }) => `${promise}: ${fault}`);

  it("finds no error if its clients can pay, and gives advice if some of them can't", async () => {
    const url = await open((method, path, base) => {
      if (path === '/.well-known/x402')
        return { status: 200, body: { version: 1, resources: [`${base}/weather`] } };
      if (path === '/weather' && method === 'GET') return challenge(`${base}/weather`);
      return undefined;
    });
    const findings = await checkShop(url);
    expect(broken(findings)).to.deep.equal([]);
    expect(findings.map(({ promise }) => promise)).to.include(
      'GET /weather without payment is a challenge at its price',
    );
    expect(broken(findings, true).join('\n'))
      .to.contain('a browser can read its challenge')
      .and.to.contain('never cached');
  });

  it('finds the one operation at an address, also with x402 v1', async () => {
    const { amount, ...option } = BASE_SEPOLIA;
    const url = await open((method, path, base) => {
      if (path !== '/paid/joke' || method !== 'POST') return undefined;
      const accepts = [
        {
          ...option,
          network: 'base-sepolia',
          maxAmountRequired: amount,
          resource: `${base}/paid/joke`,
          description: 'A joke',
          mimeType: 'application/json',
        },
      ];
      return { status: 402, body: { x402Version: 1, error: 'X-PAYMENT header is required', accepts } };
    });
    const findings = await checkShop(`${url}/paid/joke`);
    expect(broken(findings)).to.deep.equal([]);
    expect(broken(findings, true).join('\n')).to.contain('it has a v1 challenge only');
  });

  it('stops reading at a limit, however many addresses the shop lists', async () => {
    const time = new AbortController();
    let tried = 0;
    const url = await open((_method, path, base) => {
      if (path === '/.well-known/x402')
        return {
          status: 200,
          body: { resources: Array.from({ length: 5_000 }, (_, at) => `${base}/${at}`) },
        };
      if (/^\/\d+$/.test(path) && ++tried === 3) time.abort(new Error('over'));
      return undefined;
    });
    const read = await readCatalogue(url, time.signal).catch((error: unknown) => String(error));
    expect(read).to.equal('Error: over');
    expect(tried).to.equal(3);
  });

  const described = (amount: string): object => ({
    openapi: '3.1.0',
    info: { title: 'Somebody’s shop', version: '1' },
    servers: [{ url: '/api' }],
    paths: {
      '/cities/{city}/weather': {
        parameters: [
          { name: 'city', in: 'path', required: true, schema: { type: 'string', enum: ['Bergen'] } },
        ],
        get: {
          parameters: [{ $ref: '#/components/parameters/days' }],
          'x-payment-info': { protocols: ['x402'], pricingMode: 'fixed', price: amount },
          responses: { 200: { description: 'ok' }, 402: { description: 'pay' } },
        },
      },
    },
    components: {
      parameters: {
        days: { name: 'days', in: 'query', required: true, schema: { type: 'integer', minimum: 3 } },
      },
    },
  });

  for (const [amount, faults] of [
    ['0.02', 0],
    ['0.03', 1],
  ] as const) {
    it(`calls a described operation with its own examples, and compares the price: ${amount}`, async () => {
      const called: string[] = [];
      const url = await open((_method, path, base) => {
        called.push(path);
        if (path === '/openapi.json') return { status: 200, body: described(amount) };
        if (path === '/api/cities/Bergen/weather') return challenge(base + path);
        return undefined;
      });
      const found = broken(await checkShop(url));
      expect(called).to.include('/api/cities/Bergen/weather');
      expect(found).to.have.length(faults);
      if (faults) expect(found[0]).to.contain('amount is 20000, but the price of 0.03 USD is 30000');
    });
  }

  const harms: [string, string, (base: string) => Reply][] = [
    [
      'an option that no client can sign',
      'no extra.name',
      base => challenge(base, { ...BASE_SEPOLIA, extra: {} }),
    ],
    [
      'a receiver of another chain',
      'is not an address of',
      base => challenge(base, { ...BASE_SEPOLIA, payTo: 'x' }),
    ],
    ['a resource at another address', 'set PUBLIC_URL', () => challenge('http://localhost:3000/paid')],
    [
      'a redirect',
      'status 302 instead of 402',
      base => ({ status: 302, headers: { location: `${base}/other` } }),
    ],
    ['work for nothing', 'status 200 instead of 402', () => ({ status: 200, body: { joke: 'free' } })],
  ];
  for (const [name, fault, reply] of harms) {
    it(`finds ${name}`, async () => {
      const url = await open((_method, path, base) => {
        if (path === '/openapi.json')
          return { status: 200, body: { ...described('0.02'), servers: [{ url: '/' }] } };
        return path === '/cities/Bergen/weather' ? reply(base + path) : undefined;
      });
      expect(broken(await checkShop(url)).join('\n')).to.contain(fault);
    });
  }

  it('says that nothing is sold at an address that is not a shop', async () => {
    const url = await open(() => ({ status: 200, body: { hello: 'world' } }));
    const found = broken(await checkShop(url));
    expect(found.join('\n'))
      .to.contain('something is sold here')
      .and.to.contain('does not answer 402 itself');
  });
});
