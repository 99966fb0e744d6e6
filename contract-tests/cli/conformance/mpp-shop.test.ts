import { expect } from 'chai';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkShop } from '../../../src/cli/conformance/check-shop.js';
import { base64url } from '../../support/mpp-payment.js';

const REQUEST = {
  amount: '10000',
  currency: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  recipient: '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU',
  externalId: 'order-1',
  methodDetails: {
    network: 'mainnet',
    decimals: 6,
    feePayer: true,
    feePayerKey: 'GVJJ7rdGiXr5xaYbRwRbjfaJL7fmwRygFi1H6aGqDveb',
  },
};
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'A shop', version: '1' },
  paths: {
    '/work': {
      get: {
        'x-payment-info': { price: { mode: 'fixed', currency: 'USD', amount: '0.01' } },
        responses: { 200: { description: 'Sold.' }, 402: { description: 'To pay.' } },
      },
    },
  },
};

type Bend = { request?: object; parameters?: Record<string, string>; header?: string; status?: number };

describe('The conformance report on a shop that takes MPP only', () => {
  let server: Server;
  let url = '';
  let bend: Bend = {};

  before(async () => {
    server = createServer((request, response) => {
      if (request.url === '/openapi.json') {
        response.writeHead(200, { 'Content-Type': 'application/json' });
        return void response.end(JSON.stringify(DOCUMENT));
      }
      if (request.url !== '/work') return void response.writeHead(404).end();
      const parameters = {
        ...{ id: 'abc', realm: 'shop.example', method: 'solana', intent: 'charge' },
        expires: new Date(Date.now() + 60_000).toISOString(),
        request: base64url(bend.request ?? REQUEST),
        ...bend.parameters,
      };
      const all = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`);
      const refused = request.headers.authorization !== undefined;
      response.writeHead(refused ? (bend.status ?? 402) : 402, {
        'WWW-Authenticate': bend.header ?? `Bearer realm="x", Payment ${all.join(', ')}`,
        'Content-Type': 'application/problem+json',
        'Cache-Control': 'no-store',
        'Access-Control-Allow-Origin': '*',
        'Access-Control-Expose-Headers': 'WWW-Authenticate, Payment-Receipt',
      });
      response.end('{"type":"https://paymentauth.org/problems/payment-required","status":402}');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => void server.close());

  /** The errors of the challenge, without the advice for x402 shops. */
  async function faultsWith(bent: Bend): Promise<string[]> {
    bend = bent;
    const findings = await checkShop(url);
    const about = findings.filter(({ promise }) => /MPP|credential|without payment/.test(promise));
    expect(about).to.have.length.above(3);
    return about.flatMap(({ promise, fault }) => (fault === undefined ? [] : [`${promise}: ${fault}`]));
  }

  it('finds no error if the shop follows the drafts', async () => {
    expect(await faultsWith({})).to.deep.equal([]);
  });

  const details = (change: object): object => ({
    ...REQUEST,
    methodDetails: { ...REQUEST.methodDetails, ...change },
  });
  const BROKEN: Record<string, [Bend, RegExp]> = {
    'another price': [
      { request: { ...REQUEST, amount: '20000' } },
      /amount is 20000, but the price of 0\.01 USD is 10000/,
    ],
    'a price in dollars': [{ request: { ...REQUEST, amount: '0.01' } }, /not a positive whole number/],
    'a fee payer without its key': [
      { request: details({ feePayerKey: undefined }) },
      /feePayerKey must be present/,
    ],
    'a token without decimals': [{ request: details({ decimals: undefined }) }, /no decimals/],
    'no address to pay to': [{ request: { ...REQUEST, recipient: 'me' } }, /not a Solana address/],
    'a request that is not JSON': [{ parameters: { request: '!!!' } }, /not JSON in base64url/],
    'an expired challenge': [{ parameters: { expires: '2020-01-01T00:00:00Z' } }, /it expired at/],
    'a challenge without an id': [{ parameters: { id: '' } }, /it has no id/],
    'nothing that makes each payment unique': [
      { request: { ...REQUEST, externalId: undefined } },
      /no externalId/,
    ],
    'a 500 for an unreadable credential': [{ status: 500 }, /status 500 instead of 402/],
  };
  for (const [name, [bent, fault]] of Object.entries(BROKEN)) {
    it(`finds ${name}`, async () => {
      const faults = await faultsWith(bent);
      expect(faults.join('\n')).to.match(fault);
    });
  }
});
