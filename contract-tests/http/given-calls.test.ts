import { expect } from 'chai';
import { checkHandlers } from '../../src/contract/check-handlers.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { CallsInHand } from '../../src/http/calls-in-hand.js';
import { TestUpstream, UpstreamShop, VALUE } from '../support/upstream-shop.js';
import { call, type Answer } from '../support/world.js';

const KEY = 'sk-live/7f3a9b2c+4d5e6f71=';

describe('Calls of an API that are given away (x-free-proxy)', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;
  beforeEach(async () => {
    upstream = await TestUpstream.open();
    const key = { headers: { 'X-Key': '${SHOP_KEY}' }, timeoutMs: 500 };
    const answer = { description: 'It.', content: { 'application/json': { schema: VALUE } } };
    const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' }, example: 1 };
    const body = { type: 'object', required: ['a'], properties: { a: { type: 'string' } } };
    const paths = {
      '/things/{id}': {
        get: {
          operationId: 'seeThing',
          'x-free-proxy': true,
          'x-upstream': { url: `${upstream.url}/t/{id}`, ...key },
          parameters: [id, { name: 'full', in: 'query', schema: { type: 'boolean' } }],
          responses: { 200: answer },
        },
        put: {
          operationId: 'setThing',
          description: 'Sets a thing.',
          'x-free-proxy': true,
          'x-upstream': { url: `${upstream.url}/t/{id}`, ...key, check: 'type' },
          parameters: [id],
          requestBody: { required: true, content: { 'application/json': { schema: body } } },
          responses: { 201: answer },
        },
        delete: {
          operationId: 'dropThing',
          'x-free-proxy': true,
          'x-upstream': { url: `${upstream.url}/t/{id}`, ...key },
          parameters: [id],
          responses: { 204: { description: 'Gone.' } },
        },
        post: {
          operationId: 'startThing',
          'x-free-proxy': true,
          'x-upstream': { url: `${upstream.url}/t/{id}`, ...key },
          parameters: [id],
          responses: { 202: { description: 'Begun.' } },
        },
      },
      '/list': {
        get: {
          operationId: 'listThings',
          'x-free-proxy': true,
          'x-upstream': { url: `${upstream.url}/l`, ...key },
          responses: {
            200: { description: 'All.', content: { 'text/csv': { schema: { type: 'string' } } } },
          },
        },
      },
    };
    shop = await UpstreamShop.open(
      [{ id: 'sold', path: '/sold', upstream: { url: upstream.url } }],
      { SHOP_KEY: KEY },
      { paths, trustedProxies: 1 },
    );
  });
  afterEach(async () => {
    await shop.close();
    upstream.close();
  });

  const ask = (
    path: string,
    { method = 'GET', body, from = '8.8.8.8' }: { method?: string; body?: unknown; from?: string } = {},
  ): Promise<Answer> =>
    call(shop.url + path, {
      method,
      headers: {
        'X-Forwarded-For': from,
        Cookie: 'a=b',
        ...(body ? { 'Content-Type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });

  it('are checked and answered like sold ones, whatever their method, but without a payment and without a 402', async () => {
    const seen = await ask('/things/7?full=true&other=1');
    expect([seen.status, String(seen.body)]).to.deep.equal([200, '{"value":1}']);
    expect(seen.headers.get('cache-control')).to.equal('no-store');
    expect(seen.headers.get('content-security-policy')).to.contain('sandbox');
    expect(seen.headers.get('payment-response')).to.equal(null);
    upstream.says(201, '{"any":"thing"}');
    const set = await ask('/things/7', { method: 'PUT', body: { a: 'b' } });
    expect([set.status, String(set.body)]).to.deep.equal([201, '{"any":"thing"}']);
    upstream.says(204, '');
    expect((await ask('/things/7', { method: 'DELETE' })).status).to.equal(204);
    expect(upstream.calls.map(({ method, url, body }) => [method, url, body])).to.deep.equal([
      ['GET', '/t/7?full=true', ''],
      ['PUT', '/t/7', '{"a":"b"}'],
      ['DELETE', '/t/7', ''],
    ]);
    for (const { headers } of upstream.calls) {
      expect(headers['x-key']).to.equal(KEY);
      expect(headers).not.to.have.any.keys('cookie', 'x-forwarded-for');
    }
    expect(await shop.states()).to.deep.equal([]);
  });

  it('get a text or an empty answer from the API unchanged, and not as JSON', async () => {
    upstream.says(200, 'a;"b"', { 'Content-Type': 'text/csv' });
    const list = await ask('/list');
    expect([list.status, String(list.body)]).to.deep.equal([200, 'a;"b"']);
    expect(list.headers.get('content-type')).to.equal('text/csv; charset=utf-8');
    for (const [status, method] of [
      [202, 'POST'],
      [204, 'DELETE'],
    ] as const) {
      upstream.says(status, '');
      const answer = await ask('/things/7', { method });
      expect([answer.status, String(answer.body)]).to.deep.equal([status, '']);
      expect(answer.headers.get('content-type')).to.equal(null);
    }
  });

  it('have no body if they are made with HEAD', async () => {
    const head = await ask('/things/7', { method: 'HEAD' });
    expect([head.status, String(head.body)]).to.deep.equal([200, '']);
  });

  it('are rejected for a wrong parameter or body before the API is called', async () => {
    for (const [path, method, body] of [
      ['/things/x', 'GET', undefined],
      ['/things/7', 'PUT', { a: 1 }],
      ['/things/7', 'PUT', undefined],
    ] as const) {
      const answer = await ask(path, { method, body });
      expect(answer.status, `${method} ${path}`).to.equal(400);
      expect(answer.json().error).to.be.a('string');
    }
    expect((await ask('/things/7', { method: 'PATCH' })).headers.get('allow')).to.equal(
      'GET, HEAD, POST, PUT, DELETE, OPTIONS',
    );
    expect(upstream.calls).to.have.length(0);
  });

  it('do not pass on what could not be sold: contract violations, late answers, errors and secrets', async () => {
    const rows: [number, string, number][] = [
      [200, '{"value":"high"}', 502],
      [202, '{"value":1}', 502],
      [200, `{"value":1,"key":"${KEY}"}`, 502],
      [404, '{"error":"no such thing"}', 400],
      [503, '{}', 503],
    ];
    for (const [status, body, answered] of rows) {
      upstream.says(status, body);
      expect((await ask('/things/7')).status, body).to.equal(answered);
    }
    upstream.answer = () => {};
    expect((await ask('/things/7')).status).to.equal(502);
  });

  it('are limited per address, and paid calls are not', async () => {
    const first = await ask('/things/7');
    let last = first;
    // On a slow machine, the server restores some of the allowance in the meantime.
    for (let count = 0; count < 1_000 && last.status === 200; count++) last = await ask('/things/7');
    expect([first.status, last.status]).to.deep.equal([200, 503]);
    expect(Number(last.headers.get('retry-after'))).to.be.greaterThan(0);
    expect(last.json().error).to.contain('Too many calls from your address');
    expect((await ask('/things/7', { from: '9.9.9.9' })).status).to.equal(200);
    const paid = await shop.buy('sold', '/sold', undefined, { 'X-Forwarded-For': '7.7.7.7' });
    expect(paid.status).to.equal(200);
  });

  it('do not pause the API for paying buyers, whatever it answers; a pause caused by paid calls applies to both', async () => {
    upstream.says(429, '{}', { 'Retry-After': '60' });
    expect((await ask('/things/7')).status).to.equal(503);
    upstream.says(200, '{"value":1}');
    expect((await ask('/things/7')).status).to.equal(503);
    expect((await shop.buy('sold', '/sold')).status).to.equal(200);
    upstream.says(429, '{}', { 'Retry-After': '60' });
    expect((await shop.buy('sold', '/sold')).status).to.equal(503);
  });

  it('are counted by operation and status', async () => {
    await ask('/things/7');
    await ask('/things/x');
    upstream.says(500, '{}');
    await ask('/list');
    const counted = shop.events.flatMap(event =>
      event.kind === 'given' ? [[event.operation, event.status]] : [],
    );
    expect(counted).to.deep.equal([
      ['seeThing', 200],
      ['seeThing', 400],
      ['listThings', 502],
    ]);
  });

  it('are limited in how many run at once, in total and per address', async () => {
    const open: (() => void)[] = [];
    upstream.answer = (_request, response) => {
      open.push(
        () => void response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"value":1}'),
      );
      if (open.length === 4) setTimeout(() => open.forEach(end => end()), 50);
      if (open.length > 4) open.at(-1)?.();
    };
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask('/things/7')));
    expect(answers.filter(({ status }) => status === 200)).to.have.length.of.at.least(4);
    expect(answers.filter(({ status }) => status === 503)).to.have.length.of.at.most(6);
    expect((await ask('/things/7')).status).to.equal(200);
    const calls = new CallsInHand({ all: 3, ofSource: 2 });
    const leave = [calls.enter('a'), calls.enter('a'), calls.enter('a'), calls.enter('b'), calls.enter('c')];
    expect(leave.map(each => typeof each)).to.deep.equal([
      'function',
      'function',
      'undefined',
      'function',
      'undefined',
    ]);
    leave[0]?.();
    expect(calls.enter('c')).to.be.a('function');
  });

  it('are described in /openapi.json without the API behind them, and with their possible errors', () => {
    expect(shop.openapi).not.to.contain('x-upstream');
    type Described = { description: string; tags: string[]; responses: object };
    const { paths } = JSON.parse(shop.openapi) as { paths: Record<string, Record<string, Described>> };
    const { get, put } = paths['/things/{id}'] ?? {};
    expect(get?.description).to.equal('Free of charge, for a limited number of calls from one address.');
    expect(put?.description).to.match(/^Sets a thing\. Free of charge.* Only the content type/);
    expect(get?.responses).to.have.keys('200', '400', '502', '503');
    expect(get).to.include({ 'x-free-proxy': true, summary: 'See thing' });
  });
});

describe('A contract that gives calls away', () => {
  const faultOf = (operation: string): string => {
    try {
      const contract = parseContract(`paths: { /a: { get: { operationId: a, ${operation} } } }`, 'shop.yaml');
      checkHandlers(contract, {});
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  const UPSTREAM = "x-upstream: { url: 'https://api.example.com/a' }";
  const ANSWER = 'responses: { 200: { content: { application/json: { schema: { type: object } } } } }';
  const price = (amount: string): string =>
    `x-price: { mode: fixed, currency: USD, amount: ${amount}, flow: authorization }`;

  it('must declare that explicitly: an API without a price is not public by default', () => {
    expect(faultOf(`${UPSTREAM}, ${ANSWER}`)).to.contain(
      "has an x-upstream but neither a price nor x-free-proxy. If it is sold: x-price: { mode: fixed, currency: USD, amount: '0.01', " +
        'flow: authorization }; if it is free: x-free-proxy: true',
    );
    expect(faultOf(`x-free-proxy: true, ${UPSTREAM}, ${ANSWER}`)).to.equal('');
  });

  for (const [what, operation, fault] of [
    [
      'a price of 0',
      `${price("'0'")}, ${UPSTREAM}, ${ANSWER}`,
      'for a free operation, replace x-price with x-free-proxy',
    ],
    [
      'a price of 0.00',
      `${price("'0.00'")}, ${ANSWER}`,
      'for a free operation, replace x-price with x-free-proxy',
    ],
    ['a number 0', `${price('0')}, ${ANSWER}`, 'for a free operation, replace x-price with x-free-proxy'],
    ['both', `${price("'1'")}, x-free-proxy: true, ${UPSTREAM}, ${ANSWER}`, 'remove one of the two'],
    ['false', `x-free-proxy: false, ${UPSTREAM}, ${ANSWER}`, 'x-free-proxy: must be true, or absent'],
    ['nothing to give', `x-free-proxy: true, ${ANSWER}`, 'has no x-upstream, which names the API'],
    ['no answer', `x-free-proxy: true, ${UPSTREAM}, responses: {}`, 'must declare 200'],
  ] as const)
    it(`refuses ${what}`, () => {
      const lines = faultOf(operation).split('\n').slice(1);
      expect(lines).to.have.length(1);
      expect(lines[0]).to.contain(fault);
    });
});
