import { expect } from 'chai';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Secrets } from '../../../src/net/secrets.js';
import { TestUpstream, UpstreamShop, VALUE, type OperationForSale } from '../../support/upstream-shop.js';
import type { Answer } from '../../support/world.js';

const KEY = 'sk-live/7f3a9b2c+4d5e6f71=';
const ENV = { SHOP_KEY: KEY, SHOP_BASIC: Buffer.from('shop:tr0ub4dor&3xyz').toString('base64') };
const HEADERS = { Authorization: 'Basic ${SHOP_BASIC}', 'X-Key': 'v1 ${SHOP_KEY}' };
const TIMEOUT_MS = 500;
const MEGABYTE = 1024 * 1024;

type Play = (response: ServerResponse, request: IncomingMessage) => void;
type Expected = { status: number; error: RegExp; retryAfter?: number; logs?: RegExp };
type Case = Expected & { name: string; play: Play };

const says =
  (status: number, body: string | Buffer, headers: Record<string, string> = {}): Play =>
  response =>
    void response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(body);

const UNUSABLE =
  /^The service behind this operation gave an unusable answer; try again later\. You were not charged\.$/;
const LATE = /did not answer in time/;
const BUSY = /is busy or unavailable; try again later/;

/** The JSON text of `count` members, to be added to an object. */
const members = (count: number): string =>
  Array.from({ length: count }, (_, index) => `,"m${index}":0`).join('');

const CASES: Case[] = [
  {
    name: 'an answer off the contract',
    play: says(200, '{"value":"high"}'),
    status: 502,
    error: /^The backend gave an unusable answer\. You were not charged/,
    logs: /violates the contract/,
  },
  {
    name: 'a value beyond what the contract allows',
    play: says(200, '{"value":101}'),
    status: 502,
    error: /unusable answer/,
    logs: /must be at most 100/,
  },
  { name: 'no answer', play: () => {}, status: 502, error: LATE },
  {
    name: 'an answer that trickles in',
    play: response => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const drip = setInterval(() => response.write(' '), 50);
      response.on('close', () => clearInterval(drip));
    },
    status: 502,
    error: LATE,
  },
  {
    name: 'a stream of events',
    play: response => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const drip = setInterval(() => response.write('data: {"value":1}\n\n'), 50);
      response.on('close', () => clearInterval(drip));
    },
    status: 502,
    error: LATE,
  },
  {
    name: 'a stream of events that ends',
    play: says(200, 'data: {"value":1}\n\n', { 'Content-Type': 'text/event-stream' }),
    status: 502,
    error: UNUSABLE,
    logs: /its content type is text\/event-stream, which the contract does not declare/,
  },
  {
    name: 'headers that trickle in',
    play: response => {
      const drip = setInterval(() => response.socket?.write('HTTP/1.1 102 Processing\r\n\r\n'), 50);
      response.on('close', () => clearInterval(drip));
    },
    status: 502,
    error: LATE,
  },
  {
    name: '10 MB',
    play: says(200, Buffer.alloc(10 * MEGABYTE, ' ')),
    status: 502,
    error: /gave too large an answer/,
    logs: /larger than 4194304 bytes/,
  },
  {
    name: '100 MB in 100 KB of gzip',
    play: says(200, gzipSync(Buffer.alloc(100 * MEGABYTE, ' ')), { 'Content-Encoding': 'gzip' }),
    status: 502,
    error: /gave too large an answer/,
  },
  {
    name: 'JSON of 230 000 members',
    play: says(200, `{"value":1${members(230_000)}}`),
    status: 502,
    error: /gave too large an answer/,
    logs: /more than 20000 members: set maxMembers in its x-upstream if that is intended/,
  },
  {
    name: 'JSON of 30 000 brackets',
    play: says(200, `{"value":1,"deep":${'['.repeat(30_000)}${']'.repeat(30_000)}}`),
    status: 502,
    error: /gave too large an answer/,
  },
  {
    name: 'an error of 230 000 members',
    play: says(400, `{"error":"bad"${members(230_000)}}`),
    status: 400,
    error: /rejected the call \(400\)\. You were not charged\.$/,
  },
  {
    name: 'a secret in a member that another of its name hides',
    play: says(200, `{"value":1,"key":"${KEY}","key":""}`),
    status: 502,
    error: UNUSABLE,
    logs: /repeats the value of an environment variable/,
  },
  {
    name: 'gzip that ends early',
    play: says(200, gzipSync('{"value":1}').subarray(0, 20), { 'Content-Encoding': 'gzip' }),
    status: 502,
    error: UNUSABLE,
    logs: /not valid gzip/,
  },
  {
    name: 'an encoding that was not asked for',
    play: says(200, 'x', { 'Content-Encoding': 'br' }),
    status: 502,
    error: UNUSABLE,
    logs: /the encoding br/,
  },
  {
    name: 'a page instead of JSON',
    play: says(200, '<html>Welcome', { 'Content-Type': 'text/html' }),
    status: 502,
    error: UNUSABLE,
    logs: /its content type is text\/html, which the contract does not declare/,
  },
  {
    name: 'no content type',
    play: response => void response.writeHead(200).end('{"value":1}'),
    status: 502,
    error: UNUSABLE,
    logs: /its content type is missing/,
  },
  {
    name: 'JSON that is none',
    play: says(200, '{"value":1'),
    status: 502,
    error: UNUSABLE,
    logs: /not JSON/,
  },
  {
    name: 'JSON that is not UTF-8',
    play: says(200, Buffer.from('{"value":1,"name":"é"}', 'latin1')),
    status: 502,
    error: UNUSABLE,
    logs: /not JSON in UTF-8/,
  },
  {
    name: '202, not done yet',
    play: says(202, '{"value":1}'),
    status: 502,
    error: /no usable answer \(202\)/,
  },
  {
    name: '204, no content',
    play: response => void response.writeHead(204).end(),
    status: 502,
    error: /\(204\)/,
  },
  {
    name: 'a connection that is reset',
    play: response => response.socket?.resetAndDestroy(),
    status: 502,
    error: /closed the connection without an answer/,
  },
  {
    name: 'a connection that ends within the answer',
    play: response => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '11' });
      response.write('{"value"', () => response.socket?.destroy());
    },
    status: 502,
    error: /gave an incomplete answer/,
  },
  {
    name: 'no HTTP, but a secret',
    play: response => void response.socket?.end(`HTTP/1.1 200 OK\r\n${KEY} no header\r\n\r\n`),
    status: 502,
    error: /incomplete answer/,
  },
  {
    name: '400 with a message',
    play: says(400, '{"error":{"code":7,"message":"symbol must have\\n3 letters"}}'),
    status: 400,
    error:
      /^The service behind this operation rejected the call \(400\): “symbol must have 3 letters”\. You were not charged\.$/,
  },
  {
    name: '404 with a plain text',
    play: says(404, 'no such item', { 'Content-Type': 'text/plain' }),
    status: 400,
    error: /rejected the call \(404\): “no such item”\. You were not charged\.$/,
  },
  {
    name: 'its own address in its error',
    play: (response, { headers }) =>
      says(404, JSON.stringify({ error: `no http://${headers.host}/items/7` }))(response, undefined as never),
    status: 400,
    error: /: “no http:\/\/…\/items\/7”/,
  },
  {
    name: '404 with a page',
    play: says(404, '<html><h1>nginx</h1>', { 'Content-Type': 'text/html' }),
    status: 400,
    error: /rejected the call \(404\)\. You were not charged\.$/,
  },
  { name: '409', play: says(409, '{"detail":"taken"}'), status: 400, error: /\(409\): “taken”/ },
  { name: '422', play: says(422, '{"errors":[{"title":"bad"}]}'), status: 400, error: /\(422\): “bad”/ },
  {
    name: 'an error of many lines, with characters that hide others',
    play: says(400, JSON.stringify({ message: `a\u202Eb\u0000c\r\n\r\n${'long '.repeat(2_000)}` })),
    status: 400,
    error: /: “a b c (long ){58,59}l?o?n?g?…”/,
  },
  {
    name: '401',
    play: says(401, '{"message":"Invalid token"}'),
    status: 502,
    error: /refused its seller \(401\); the seller must fix this\. You were not charged\.$/,
    logs: /\(\w+ \/\S*\): the upstream answered 401: “Invalid token”/,
  },
  {
    name: '403',
    play: says(403, ''),
    status: 502,
    error: /refused its seller \(403\)/,
    logs: /answered 403/,
  },
  { name: '402, its own price', play: says(402, '{}'), status: 502, error: /refused its seller \(402\)/ },
  { name: '418', play: says(418, '{}'), status: 502, error: /refused its seller \(418\)/ },
  {
    name: '500',
    play: says(500, '{"message":"stack trace at db-7.internal"}'),
    status: 502,
    error: /failed \(500\); try again later\. You were not charged\.$/,
    logs: /answered 500: “stack trace/,
  },
  { name: '502', play: says(502, ''), status: 502, error: /failed \(502\)/ },
  { name: '504', play: says(504, ''), status: 502, error: /failed \(504\)/ },
  { name: '408', play: says(408, ''), status: 502, error: /failed \(408\)/ },
  { name: '429', play: says(429, ''), status: 503, error: BUSY, retryAfter: 5 },
  {
    name: '429 for a week',
    play: says(429, '', { 'Retry-After': '604800' }),
    status: 503,
    error: BUSY,
    retryAfter: 120,
  },
  { name: '503', play: says(503, ''), status: 503, error: BUSY, retryAfter: 5 },
  {
    name: '503 for a while',
    play: says(503, '', { 'Retry-After': '17' }),
    status: 503,
    error: BUSY,
    retryAfter: 17,
  },
  {
    name: 'a secret in its error',
    play: says(400, JSON.stringify({ error: `key ${KEY} (shop:tr0ub4dor&3xyz) is not for this` })),
    status: 400,
    error: /: “key … \(…\) is not for this”\. You/,
  },
  {
    name: 'an encoded secret in its error',
    play: says(400, JSON.stringify({ error: `bad: ${Buffer.from(`v1 ${KEY}`).toString('base64')}` })),
    status: 400,
    error: /: “bad: djEg…0=”/,
  },
  {
    name: 'a secret in its refusal of the seller',
    play: says(401, JSON.stringify({ error: `key ${KEY} is wrong` })),
    status: 502,
    error: /refused its seller \(401\)/,
    logs: /answered 401: “key ….* is wrong”/,
  },
  {
    name: 'a secret in what is sold',
    play: says(200, JSON.stringify({ value: 1, echo: { 'x-key': `v1 ${KEY}` } })),
    status: 502,
    error: UNUSABLE,
    logs: /repeats the value of an environment variable/,
  },
  {
    name: 'a secret in what is sold, with escapes',
    play: says(200, `{"value":1,"key":"${KEY.replaceAll('+', '\\u002B').replaceAll('/', '\\/')}"}`),
    status: 502,
    error: UNUSABLE,
    logs: /repeats the value of an environment variable/,
  },
  {
    name: 'a secret in a header of what is sold',
    play: says(200, '{"value":1}', { 'X-Request': encodeURIComponent(KEY) }),
    status: 502,
    error: UNUSABLE,
    logs: /repeats the value of an environment variable/,
  },
];

describe('An upstream that goes wrong', () => {
  let upstream: TestUpstream;
  let secondary: TestUpstream;
  let shop: UpstreamShop;

  const operations = (url: string): OperationForSale[] =>
    (['authorization', 'upfront'] as const).map(flow => ({
      id: flow,
      path: `/${flow}/{id}`,
      flow,
      upstream: { url: `${url}/items/{id}`, headers: HEADERS, timeoutMs: TIMEOUT_MS },
      parameters: [{ name: 'id', in: 'path' }],
      content: { 'application/json': VALUE },
      headers: ['X-Request'],
    }));

  beforeEach(async () => {
    upstream = await TestUpstream.open();
    secondary = await TestUpstream.open();
    shop = await UpstreamShop.open(operations(upstream.url), ENV);
  });
  afterEach(async () => {
    await shop.close();
    upstream.close();
    secondary.close();
  });

  /** Checks that nothing the buyer or the operator can read repeats a secret, or names the host to the buyer. */
  async function expectNothingLeaked(answer: Answer): Promise<void> {
    const seen = `${JSON.stringify([...answer.headers])} ${answer.body.toString()}`;
    const secrets = new Secrets([KEY, ENV.SHOP_BASIC]);
    for (const [what, text] of Object.entries({
      answer: seen,
      log: shop.logged,
      'openapi.json': shop.openapi,
      health: JSON.stringify(shop.health()),
    })) {
      expect(await secrets.foundIn(Buffer.from(text)), `a secret in the ${what}: ${text}`).to.equal(false);
      expect(text, what).not.to.match(/sk-live|7f3a9b|tr0ub4/);
    }
    for (const text of [seen, shop.openapi]) expect(text).not.to.contain(new URL(upstream.url).host);
    expect(shop.openapi).not.to.match(/x-upstream|SHOP_KEY|SHOP_BASIC/);
  }

  async function expectUncharged(answer: Answer, { status, error, retryAfter }: Expected): Promise<void> {
    expect(answer.status, answer.body.toString()).to.equal(status);
    expect(answer.json().error).to.match(error).and.to.contain('You were not charged');
    expect(answer.headers.get('retry-after')).to.equal(retryAfter === undefined ? null : String(retryAfter));
    expect(shop.facilitator.settles, 'settlements').to.equal(0);
    expect(await shop.states()).not.to.include.oneOf(['settling', 'owed', 'delivered']);
    expect([...answer.headers.keys()]).not.to.include('payment-response');
  }

  /** `final`: another attempt would fail in the same way, so none is made. */
  async function expectOwed(answer: Answer, final = false): Promise<void> {
    expect(answer.status, answer.body.toString()).to.equal(final ? 502 : 503);
    expect(answer.headers.has('retry-after')).to.equal(!final);
    expect(answer.json().error).to.match(
      final
        ? /^[^.].*[^.]\. Another attempt would fail in the same way\. The order is paid and due for a refund: only the operator/
        : /^[^.].*[^.]\. The order stays owed: send the same payment again (in \d+ s|to start)/,
    );
    expect(answer.json().error).not.to.contain('not charged');
    expect(answer.headers.get('payment-response')).to.be.a('string');
    expect(shop.facilitator.settles, 'settlements').to.equal(1);
    expect((await shop.states()).filter(state => state !== 'claimed')).to.deep.equal(['owed']);
  }

  for (const { name, play, ...expected } of CASES) {
    it(`costs the buyer nothing: ${name}`, async () => {
      upstream.answer = (request, response) => play(response, request);
      const answer = await shop.buy('authorization', '/authorization/7');
      await expectUncharged(answer, expected);
      expect(upstream.calls.length).to.be.within(1, 2);
      if (expected.logs) expect(shop.logged).to.match(expected.logs).and.to.contain('authorization');
      await expectNothingLeaked(answer);
    });

    it(`leaves an order owed, because it was paid before its work: ${name}`, async () => {
      upstream.answer = (request, response) => play(response, request);
      const answer = await shop.buy('upfront', '/upfront/7');
      await expectOwed(answer, expected.status === 400);
      await expectNothingLeaked(answer);
    });
  }

  for (const status of [300, 301, 302, 303, 304, 307, 308]) {
    it(`a redirect (${status}) to a private address is not followed`, async () => {
      upstream.answer = (_request, response) =>
        void response.writeHead(status, { Location: `${secondary.url}/latest/meta-data` }).end();
      const answer = await shop.buy('authorization', '/authorization/7');
      await expectUncharged(answer, { status: 502, error: new RegExp(`no usable answer \\(${status}\\)`) });
      expect(secondary.connections).to.equal(0);
      await expectOwed(await shop.buy('upfront', '/upfront/7'));
      expect(secondary.connections).to.equal(0);
    });
  }

  it('costs the buyer nothing if nothing is listening, even for an order, which would be paid for before its work', async () => {
    upstream.close();
    const answer = await shop.buy('authorization', '/authorization/7');
    await expectUncharged(answer, {
      status: 503,
      error: /cannot be reached; try again later/,
      retryAfter: 5,
    });
    await expectNothingLeaked(answer);
    const order = await shop.buy('upfront', '/upfront/7');
    await expectUncharged(order, {
      status: 503,
      error: /cannot be reached; try again later/,
      retryAfter: 10,
    });
  });

  it('costs the buyer of an order nothing if it answered a moment ago, but has refused a connection since then', async () => {
    upstream.says(200, '{"value":7}');
    expect((await shop.buy('authorization', '/authorization/7')).status).to.equal(200);
    upstream.close();
    const settles = shop.facilitator.settles;
    expect((await shop.buy('authorization', '/authorization/8')).status).to.equal(503);
    const order = await shop.buy('upfront', '/upfront/7');
    expect([order.status, order.json().error]).to.deep.equal([
      503,
      'The service behind this operation cannot be reached; try again later. You were not charged.',
    ]);
    expect(shop.facilitator.settles - settles, 'settlements').to.equal(0);
  });

  it('has its answers parsed only once, and not at all if they have too many members', async () => {
    const parse = JSON.parse;
    const parsed = new Map<string, number>();
    JSON.parse = (text: string, ...more: []) => {
      parsed.set(text, (parsed.get(text) ?? 0) + 1);
      return parse(text, ...more) as unknown;
    };
    try {
      const [sold, refused] = [`{"value":7${members(15_000)}}`, `{"value":7${members(20_000)}}`];
      upstream.says(200, sold);
      expect((await shop.buy('authorization', '/authorization/7')).body.toString()).to.equal(sold);
      upstream.says(200, refused);
      expect((await shop.buy('authorization', '/authorization/8')).status).to.equal(502);
      expect([parsed.get(sold), parsed.get(refused)]).to.deep.equal([1, undefined]);
    } finally {
      JSON.parse = parse;
    }
  });

  it('is called again for the same payment once it works, and the payment is charged once', async () => {
    upstream.says(500, '');
    const headers = shop.pay('authorization');
    expect((await shop.call('/authorization/7', headers)).status).to.equal(502);
    upstream.says(200, '{"value":7}');
    for (let copy = 0; copy < 2; copy++) {
      const answer = await shop.call('/authorization/7', headers);
      expect([answer.status, answer.body.toString()]).to.deep.equal([200, '{"value":7}']);
    }
    expect(shop.facilitator.settles).to.equal(1);
    expect(upstream.calls).to.have.length(2);
  });

  /** Sends a payment forty times within half a second. */
  const resendOften = (headers: Record<string, string>): Promise<Answer[]> =>
    Promise.all(
      Array.from({ length: 40 }, async (_, copy) => {
        await pause(copy * 12);
        return shop.call('/upfront/7', headers);
      }),
    );
  const linesOf = (level: number): string[] =>
    shop.logged.split('\n').filter(line => line.includes(`"level":${level},`));

  for (const status of [404, 409, 422])
    it(`an order that the upstream rejects (${status}) is final: it makes one upstream request, although the payment is sent 41 times`, async () => {
      upstream.says(status, '{"error":"no such item"}');
      const headers = shop.pay('upfront');
      const answers = [await shop.call('/upfront/7', headers), ...(await resendOften(headers))];
      for (const answer of answers) await expectOwed(answer, true);
      expect(answers[0]?.json().error).to.contain(`rejected the call (${status}): “no such item”`);
      expect(upstream.calls).to.have.length(1);
      expect(await shop.ledger.order((await shop.ledger.list({ state: 'owed' }))[0]?.id ?? '')).to.include({
        tries: 1,
        nextAttemptAt: null,
      });
      expect([...linesOf(40), ...linesOf(50)], 'lines of the log').to.have.length(1);
    });

  it('an order whose upstream fails (500) is attempted again only when an attempt is due, however often its payment is sent', async () => {
    await shop.close();
    shop = await UpstreamShop.open(operations(upstream.url), ENV, { orders: { firstPauseMs: 3_000 } });
    upstream.says(500, '');
    const headers = shop.pay('upfront');
    await expectOwed(await shop.call('/upfront/7', headers));
    for (const answer of await resendOften(headers)) {
      await expectOwed(answer);
      expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 3);
    }
    expect(upstream.calls, 'before the next attempt is due').to.have.length(1);
    await pause(3_000);
    for (const answer of await resendOften(headers)) expect(answer.status).to.equal(503);
    expect(upstream.calls, 'once it is due').to.have.length(2);
  });

  it('an order with no attempts left gets a 502 and is due for a refund until the operator retries it', async () => {
    await shop.close();
    shop = await UpstreamShop.open(operations(upstream.url), ENV, {
      orders: { maxAttempts: 2, firstPauseMs: 0 },
    });
    upstream.says(500, '');
    const headers = shop.pay('upfront');
    await expectOwed(await shop.call('/upfront/7', headers));
    for (const answer of [await shop.call('/upfront/7', headers), ...(await resendOften(headers))]) {
      expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([502, null]);
      expect(answer.json().error).to.match(
        /All 2 attempts are used up\. The order is paid and due for a refund/,
      );
      expect(answer.headers.get('payment-response')).to.be.a('string');
    }
    expect(upstream.calls).to.have.length(2);
    const [row] = await shop.ledger.list({ state: 'owed' });
    expect(shop.logged).to.contain(`ledger -- retry ${row?.id ?? ''}`);
    upstream.says(200, '{"value":7}');
    expect(await shop.ledger.retryOrder(row?.id ?? '', Date.now())).to.include({ tries: 3 });
    const answer = await shop.call('/upfront/7', headers);
    expect([answer.status, answer.body.toString()]).to.deep.equal([200, '{"value":7}']);
    expect(upstream.calls).to.have.length(3);
    expect(shop.facilitator.settles).to.equal(1);
  });

  it('an owed order is delivered to the same payment once the upstream works again', async () => {
    await shop.close();
    shop = await UpstreamShop.open(operations(upstream.url), ENV, { orders: { firstPauseMs: 0 } });
    upstream.says(500, '{"error":"not yet"}');
    const headers = shop.pay('upfront');
    await expectOwed(await shop.call('/upfront/7', headers));
    upstream.says(200, '{"value":7}');
    const answer = await shop.call('/upfront/7', headers);
    expect([answer.status, answer.body.toString()]).to.deep.equal([200, '{"value":7}']);
    expect(shop.facilitator.settles).to.equal(1);
  });
});
