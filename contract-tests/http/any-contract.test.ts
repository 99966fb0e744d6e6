import { expect } from 'chai';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { compileContract } from '../../src/contract/compile-contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { fingerprint } from '../../src/contract/fingerprint.js';
import type { AnyAsked, AnyCall, AnyReply } from '../../src/contract/operation.js';
import { encodedQuery } from '../../src/contract/query-styles.js';
import { createApp, type AppParts } from '../../src/http/app.js';
import { BodyReader } from '../../src/http/body.js';
import { exposedHeaders } from '../../src/http/exposed-headers.js';
import { Routes, type Routed } from '../../src/contract/routes.js';
import { SourceLimits } from '../../src/http/source-limits.js';
import { createHttpServer } from '../../src/http/server.js';
import { orderWork } from '../../src/http/run-handler.js';
import { Offers } from '../../src/offers/offers.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { Deliveries } from '../../src/http/deliveries.js';
import type { Answer as Made } from '../../src/sale/outcome.js';
import type { PaidCall } from '../../src/sale/paid-call.js';
import { outcomeOf } from '../support/outcome-of.js';
import { ANY_SHOP } from '../support/any-shop.js';
import { call, challengeOf, type Answer } from '../support/world.js';
import { sellingOf } from '../support/selling.js';
import { sentTo } from '../support/sent-to.js';

const contract = parseContract(ANY_SHOP);
const NEVER = new AbortController().signal;
const log = { info: () => {}, warn: () => {}, error: () => {} };
const TERMS = {
  network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  v1Network: 'solana-devnet',
  asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
  publicUrl: 'https://shop.example',
};

describe('The router of any contract', () => {
  let routes: Routes;
  before(async () => {
    routes = await Routes.create(contract);
    await routes.warm();
  });

  const at = (method: string, path: string): Routed => {
    const route = routes.match(method, path);
    if (route.kind !== 'operation') throw new Error(`${method} ${path}: ${route.kind}`);
    return route;
  };
  const asked = (method: string, path: string, query = '', body?: unknown) =>
    routes.checkAsked(at(method, path), query, sentTo(at(method, path), body));

  it('can be built', async () => {
    expect(await compileContract(ANY_SHOP)).to.be.a('string');
  });

  it('finds path templates by method, fixed text first', () => {
    const found = ['/quotes/SOL', '/quotes/latest', '/quotes/Latest', '/quotes/a%2Fb', '/markets/health'];
    expect(found.map(path => at('GET', path).id)).to.deep.equal([
      'quote',
      'latest',
      'quote',
      'quote',
      'marketsHealth',
    ]);
    expect(at('HEAD', '/quotes/SOL').id).to.equal('quote');
    expect(at('POST', '/trees/12.json'))
      .to.include({ id: 'growTree' })
      .and.to.have.property('path', '/trees/12.json');
    for (const path of [
      '/quotes',
      '/quotes/',
      '/quotes/SOL/',
      '/quotes/a/b',
      '/trees/.json',
      '/trees/12',
      '//quotes/SOL',
      '/quotes/SOL\u00a0',
      '\ufeff/quotes/SOL',
    ])
      expect(routes.match('GET', path), path).to.deep.equal({ kind: 'notFound' });
    expect(routes.match('POST', '/quotes/SOL')).to.deep.equal({
      kind: 'methodNotAllowed',
      allow: 'GET, HEAD, OPTIONS',
      priced: at('GET', '/quotes/SOL').priced,
    });
    expect(routes.match('GET', `/quotes${'/a'.repeat(5_000)}`)).to.deep.equal({ kind: 'notFound' });
  });

  it('reads path and query as declared, and ignores the rest', () => {
    const query = 'days=3&kind=future&tag=a&tag=b&exact=true&limit=all&x402Version=1&utm=1&kind2=3';
    expect(asked('GET', '/quotes/A%2FB%20C', query)).to.deep.equal({
      ok: true,
      asked: {
        params: { symbol: 'A/B C' },
        query: { days: 3, kind: 'future', tag: ['a', 'b'], exact: true, limit: 'all' },
        body: undefined,
      },
    });
    expect(asked('GET', '/quotes/SOL')).to.have.nested.property('asked.query.days', 7);
    expect(asked('GET', '/quotes/SOL', 'limit=12&tag=7')).to.have.deep.nested.property('asked.query', {
      days: 7,
      tag: ['7'],
      limit: 12,
    });
    expect(asked('POST', '/trees/7.json', '', { name: 'a' })).to.have.deep.nested.property('asked.params', {
      id: 7,
    });
  });

  const wrong: [string, string, RegExp][] = [
    ['/quotes/SOL', 'days=0', /^days must be at least 1$/],
    ['/quotes/SOL', 'days=x', /^days must be a whole number$/],
    ['/quotes/SOL', 'days=1.5', /^days must be a whole number$/],
    ['/quotes/SOL', 'days=0x7', /^days /],
    ['/quotes/SOL', 'days=%207', /^days /],
    ['/quotes/SOL', 'days=', /^days /],
    ['/quotes/SOL', 'days=7%20', /^days /],
    ['/quotes/SOL', 'days=Infinity', /^days /],
    ['/quotes/SOL', 'limit=1e999', /^limit /],
    ['/quotes/SOL', 'limit=9007199254740993', /^limit must be written as in JSON/],
    ['/quotes/SOL', 'limit=0x10', /^limit must be written as in JSON/],
    ['/quotes/SOL', 'days=3&days=3', /^days must be sent only once$/],
    ['/quotes/SOL', 'kind=', /^kind must be one of \["spot","future"\]$/],
    ['/quotes/SOL', 'exact=1', /^exact must be true or false$/],
    ['/quotes/SOL', 'tag=abcdef', /^tag.0 must have at most 5 characters, and has 6$/],
    ['/quotes/SOL', 'tag=a&tag=b&tag=c&tag=d', /^tag /],
    ['/quotes/SOL', 'limit=some', /^limit /],
    ['/quotes/sol', '', /^symbol must match/],
    ['/quotes/..', '', /^symbol .*not \. or \.\.$/],
    ['/quotes/%2e%2E', '', /^symbol .*not \. or \.\.$/],
    ['/quotes/SOL', 'tag=%ff', /^%ff is not UTF-8: percent-encode the UTF-8 bytes of the text$/],
    ['/quotes/SOL', 'tag=%E0%A4z', /^%E0%A4 is not UTF-8/],
    ['/quotes/%E0%A4', '', /^symbol must be percent-encoded UTF-8/],
  ];
  for (const [path, query, message] of wrong)
    it(`refuses ${path}?${query}`, () => {
      const checked = asked('GET', path, query);
      expect(checked).to.have.property('ok', false);
      expect(checked).to.have.property('error').that.matches(message);
    });

  const felling = (query: string) => asked('DELETE', '/woods/1', query);
  const written: [spellings: string[], name: string, value: unknown][] = [
    [['comma=1,2,3', 'comma=1%2C2%2C3', 'comma=1,2,3&x=1'], 'comma', [1, 2, 3]],
    [['comma='], 'comma', []],
    [['space=a%20b', 'space=a+b'], 'space', ['a', 'b']],
    [['pipe=true|false', 'pipe=true%7Cfalse'], 'pipe', [true, false]],
    [['pairs=w,1,h,2', 'pairs=h,2,w,1'], 'pairs', { w: 1, h: 2 }],
    [
      ['width=1&colours=a&colours=b', 'colours=a&width=1&colours=b'],
      'size',
      { width: 1, colours: ['a', 'b'] },
    ],
    [
      ['deep[gte]=7&deep[in]=1&deep[in]=2', 'deep%5Bin%5D=1&deep[gte]=7&deep[in]=2'],
      'deep',
      { gte: 7, in: [1, 2] },
    ],
    [['deep=7'], 'deep', 7],
    [['free[a]=x&free[b]=y', 'free[b]=y&free[a]=x'], 'free', { a: 'x', b: 'y' }],
    [['expand[]=a&expand[]=b', 'expand[0]=a&expand[1]=b'], 'expand', ['a', 'b']],
  ];
  for (const [spellings, name, value] of written)
    it(`reads ${spellings.join(' and ')} as the same call`, () => {
      const calls = spellings.map(felling).map(each => (each.ok ? each.asked : { error: each.error }));
      for (const call of calls)
        expect(call).to.have.deep.nested.property('query', { roots: false, [name]: value });
      const hashes = calls.map(call => fingerprint('fellTree', call as AnyAsked));
      expect(new Set(hashes).size).to.equal(1);
      const parameter = contract.paid
        .find(({ id }) => id === 'fellTree')!
        .parameters.find(each => each.name === name)!;
      expect(felling(encodedQuery(parameter, value).join('&')), 'the request to the upstream').to.deep.equal(
        value instanceof Array && value.length === 0 ? felling('') : felling(spellings[0] ?? ''),
      );
    });

  it('rejects lists and objects that are not encoded as declared, or contain invalid values', () => {
    for (const [query, message] of [
      ['comma=1,x', /^comma.1 must be a whole number$/],
      ['comma=1,0x2', /^comma must be written as in JSON/],
      ['comma=1,2,3,4', /^comma must have at most 3 items$/],
      ['comma=1&comma=2', /^comma must be sent only once$/],
      ['pairs=w,1,h', /^pairs must be alternating names and values, separated by ','$/],
      ['pairs=w,1,d,2', /^unknown field 'd' in pairs; it takes only w, h$/],
      ['colours=a', /^size.width is missing$/],
      ['width=1&width=2', /^width must be sent only once$/],
      ['deep[gte]=x', /^deep/],
      ['deep[gte]=1&deep[gte]=2', /^deep\[gte\] must be sent only once$/],
      ['deep[gte]=0x7', /^deep must be written as in JSON/],
      ['free[a]=long', /^free.a must have at most 3 characters/],
    ] as const) {
      const checked = felling(query);
      expect(checked, query).to.have.property('ok', false);
      expect(checked, query).to.have.property('error').that.matches(message);
    }
    for (const query of ['deep[a][b]=1', 'free[a][b]=1', 'comma[]=1', '__proto__[a]=1'])
      expect(felling(query), query).to.have.deep.nested.property('asked.query', { roots: false });
    const polluted = felling('free[__proto__]=x');
    expect(JSON.stringify(polluted)).to.contain('"free":{"__proto__":"x"}');
    expect(({} as Record<string, unknown>).x).to.equal(undefined);
  });

  it('reads the numbers in a list as strictly as other numbers', () => {
    const axes = (query: string) => asked('DELETE', '/woods/1', query);
    expect(axes('axe=1&axe=20')).to.have.deep.nested.property('asked.query.axe', [1, 20]);
    for (const query of ['axe=0x10', 'axe=1&axe=%207', 'axe=9007199254740993'])
      expect(axes(query), query)
        .to.have.property('error')
        .that.matches(/^axe must be written as in JSON/);
  });

  it('reads a query as names and strings, not as a structure', () => {
    for (const query of ['days[a]=1', 'tag[]=a', '__proto__[days]=1', 'days%00=1', 'toString=1'])
      expect(asked('GET', '/quotes/SOL', query), query).to.have.deep.nested.property('asked.query', {
        days: 7,
      });
  });

  it('checks bodies through references, recursion, allOf and anyOf', () => {
    const grow = (body: object) => asked('POST', '/trees/1.json', '', body);
    expect(grow({ name: 'a', kids: [{ name: 'b', kids: [{ name: 'c' }] }] })).to.have.property('ok', true);
    expect(grow({ name: 'a', kids: [{ kids: [] }] })).to.have.property('error', 'kids.0.name is missing');
    const print = (body?: object) => asked('POST', '/print', '', body);
    expect(print({ width: 1, colour: '#fff' })).to.have.property('ok', true);
    expect(print({ width: 1, colour: 'green' })).to.have.property('ok', false);
    expect(print({ colour: 'red' })).to.have.property('error', 'width is missing');
    expect(print(), 'it is optional').to.have.deep.nested.property('asked.body', undefined);
  });

  it('checks answers by their content type: text, one of several binary ones, JSON', () => {
    const check = (id: string, reply: AnyReply) => routes.checkReply(routes.routeOf(id)!, reply);
    expect(check('latest', { status: 200, body: '1 USD' })).to.equal(undefined);
    expect(check('latest', { status: 200, body: 'a'.repeat(21) })).to.match(/at most 20/);
    expect(check('latest', { status: 200, body: '' })).to.equal('the body is empty');
    expect(check('latest', { status: 200, body: { price: 1 } })).to.equal('the body must be text');
    const picture = Buffer.from('png');
    expect(check('print', { status: 200, body: picture })).to.equal(undefined);
    expect(
      check('print', { status: 200, body: picture, headers: { 'content-type': 'image/jpeg' } }),
    ).to.equal(undefined);
    expect(check('print', { status: 200, body: picture, headers: { 'content-type': 'image/gif' } })).to.equal(
      'the content type image/gif is not declared',
    );
    expect(check('growTree', { status: 200, body: { name: 'a', kids: [{}] } })).to.equal(
      'kids.0.name is missing',
    );
  });
});

describe('A server for any contract', () => {
  let server: Server;
  let url: string;
  let hints: SolanaHints;
  let offers: Offers;
  const sold: PaidCall[] = [];
  const calls: AnyCall[] = [];

  before(async () => {
    hints = new SolanaHints(TERMS.payTo);
    offers = new Offers(sellingOf(TERMS).methods, hints);
    const routes = await Routes.create(contract);
    const replies: Record<string, AnyReply> = {
      quote: { status: 200, body: { price: 2 } },
      latest: { status: 200, body: '2 USD' },
      print: { status: 200, body: Buffer.from('jpeg'), headers: { 'Content-Type': 'image/jpeg' } },
      growTree: { status: 200, body: { name: 'grown' } },
      replaceTree: { status: 200, body: { name: 'new' } },
      fellTree: { status: 200, body: { name: 'stump' } },
      pruneTree: { status: 200, body: { name: 'pruned' } },
      recall: { status: 200, body: { taken: 2 } },
      orderSaplings: { status: 200, body: { ordered: 2 } },
    };
    const handlers = Object.fromEntries(
      Object.entries(replies).map(([id, reply]) => [
        id,
        { call: async (received: AnyCall) => (calls.push(received), reply) },
      ]),
    );
    routes.register(handlers);
    const payment = { method: offers.methods.first, identifier: null, checked: { id: 'p', payer: 'q' } };
    const charge = {
      checkPayment: ({ headers }: { headers: Record<string, string> }) =>
        'x-payment' in headers ? { kind: 'payment', payment } : { kind: 'unpaid' },
      moneyNote: async () => 'Nothing was charged.',
      process: async (paid: PaidCall) => {
        sold.push(paid);
        const answer = paid.upfront
          ? await orderWork({ handlers, routes, log }).work(
              {
                id: 'o',
                payer: 'p',
                operation: paid.operation.id,
                request: paid.upfront.request,
                deadline: 1,
                attempt: 1,
                extend: async () => undefined,
              },
              NEVER,
            )
          : { answer: await paid.work(NEVER) };
        return outcomeOf((answer as { answer: Made }).answer);
      },
    };
    const exposed = exposedHeaders(contract, sellingOf(TERMS).methods);
    const parts = {
      ...{ handlers, routes, log, charge, offers, exposed },
      bodies: new BodyReader(),
      deliveries: new Deliveries(),
      pages: [],
      holdMs: 0,
      closing: NEVER,
    };
    const app = createApp({
      ...parts,
      limits: new SourceLimits({ trustedProxies: 0 }),
    } as unknown as AppParts).callback();
    const listener = (...how: Parameters<typeof app>): void => void app(...how);
    server = createHttpServer({ app: listener, routes, offers, documents: new Map(), exposed });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    hints.close();
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    sold.length = 0;
    calls.length = 0;
  });

  const PAID = { 'x-payment': 'one' };
  const get = (path: string, headers = {}, method = 'GET'): Promise<Answer> =>
    call(url + path, { method, headers });
  const post = (path: string, body?: object): Promise<Answer> =>
    call(url + path, {
      method: 'POST',
      headers: body ? { ...PAID, 'content-type': 'application/json' } : PAID,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });

  it('answers an unpaid call of a path template or a GET with its challenge, and a HEAD with only the headers of the challenge', async () => {
    for (const [path, id] of [
      ['/quotes/SOL', 'quote'],
      ['/quotes/any%20thing?days=x', 'quote'],
      ['/quotes/latest', 'latest'],
    ] as const) {
      const answer = await get(path);
      expect(answer.status, path).to.equal(402);
      const operation = contract.paid.find(each => each.id === id)!;
      expect(challengeOf(answer).accepts[0]).to.include({
        amount: '2000',
        resource: `https://shop.example${operation.examplePath}`,
      });
      const head = await get(path, {}, 'HEAD');
      expect([head.status, head.body.length]).to.deep.equal([402, 0]);
      expect(head.headers.get('payment-required')).to.equal(answer.headers.get('payment-required'));
    }
    expect((await get('/quotes/SOL?x402Version=1')).json().x402Version).to.equal(1);
    expect(challengeOf(await call(`${url}/trees/9.json`, { method: 'POST' })).accepts[0]).to.include({
      amount: '1500000',
    });
  });

  it('sells a GET, and refuses a HEAD with a payment', async () => {
    const answer = await get('/quotes/A%2FB?days=2', PAID);
    expect([answer.status, answer.json()]).to.deep.equal([200, { price: 2 }]);
    expect(calls[0]).to.deep.include({ params: { symbol: 'A/B' }, query: { days: 2 }, body: undefined });
    expect((await get('/quotes/SOL', PAID, 'HEAD')).status).to.equal(400);
    const refused = await get('/quotes/SOL?days=99', PAID);
    expect([refused.status, refused.json().error]).to.deep.equal([
      400,
      'days must be at most 30. Nothing was charged.',
    ]);
    expect(sold).to.have.length(1);
  });

  it('sells PUT, PATCH and DELETE, with and without a body, as separate operations', async () => {
    const send = (method: string, path: string, body?: object, headers = PAID): Promise<Answer> =>
      call(url + path, {
        method,
        headers: body ? { ...headers, 'content-type': 'application/json' } : headers,
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
    const rows = [
      ['PUT', '/woods/1', { name: 'a' }, { name: 'new' }],
      ['PATCH', '/woods/1', { twigs: 1 }, { name: 'pruned' }],
      ['PATCH', '/woods/1', undefined, { name: 'pruned' }],
      ['DELETE', '/woods/1', undefined, { name: 'stump' }],
      ['DELETE', '/woods', { ids: [1, 2] }, { taken: 2 }],
    ] as const;
    for (const [method, path, body, answer] of rows) {
      const unpaid = await call(url + path, { method });
      expect([unpaid.status, challengeOf(unpaid).accepts[0]?.amount], method).to.deep.equal([402, '2000']);
      const bought = await send(method, path, body);
      expect([bought.status, bought.json()], method).to.deep.equal([200, answer]);
    }
    expect(calls.map(({ params, query, body }) => ({ params, query, body }))).to.deep.equal([
      { params: { id: 1 }, query: {}, body: { name: 'a' } },
      { params: { id: 1 }, query: {}, body: { twigs: 1 } },
      { params: { id: 1 }, query: {}, body: undefined },
      { params: { id: 1 }, query: { roots: false }, body: undefined },
      { params: {}, query: {}, body: { ids: [1, 2] } },
    ]);
    expect(new Set(sold.map(({ requestHash }) => requestHash)).size).to.equal(rows.length);
    const wrong = [await send('PUT', '/woods/1'), await send('DELETE', '/woods', { ids: 1 })];
    expect(wrong.map(each => [each.status, each.json().error])).to.deep.equal([
      [400, 'the body must be JSON, sent with Content-Type: application/json. Nothing was charged.'],
      [400, 'ids must be a list. Nothing was charged.'],
    ]);
  });

  it('accepts a form and no other content type, and converts the strings of the form as its schema says', async () => {
    const order = (body: string | Buffer, type = 'application/x-www-form-urlencoded'): Promise<Answer> =>
      call(`${url}/saplings`, { method: 'POST', headers: { ...PAID, 'content-type': type }, body });
    const whole = 'kind=oak+tree&tags=a%20b&tags=c&sizes=1%2C2.5&place[row]=3';
    for (const [body, type] of [
      [whole],
      [
        'count=1&place%5Brow%5D=3&sizes=1,2.5&tags=a+b&tags=c&kind=oak%20tree',
        'application/x-www-form-urlencoded;charset=UTF-8',
      ],
      ['kind=%E4%B8%8D&count=2'],
    ] as const)
      expect((await order(body, type)).status, body).to.equal(200);
    const oak = { kind: 'oak tree', count: 1, tags: ['a b', 'c'], sizes: [1, 2.5], place: { row: 3 } };
    expect(calls.map(({ body }) => body)).to.deep.equal([oak, oak, { kind: '不', count: 2 }]);
    const [first, same, other] = sold.map(({ requestHash }) => requestHash);
    expect([first, first]).to.deep.equal([same, first]);
    expect(other).not.to.equal(first);
    const form = 'application/x-www-form-urlencoded';
    const wrong: [string | Buffer, string, RegExp][] = [
      ['', form, /^kind is missing\./],
      ['count=1', form, /^kind is missing\./],
      ['kind=a&count=x', form, /^count must be a whole number\./],
      ['kind=a&count=0x2', form, /^count must be written as in JSON/],
      ['kind=a&kind=b', form, /^kind must be sent only once\./],
      ['kind=a&place[row]=x', form, /^place.row must be a whole number\./],
      ['kind=a&more=1', form, /^unknown field 'more' in the body; it takes only kind, count/],
      ['kind=abcdefghijk', form, /^kind must have at most 10 characters/],
      ['kind=%ff', form, /^%ff is not UTF-8/],
      [Buffer.from('kind=\xff', 'latin1'), form, /^the body is not UTF-8/],
      [`kind=a${'&a=1'.repeat(2_000)}`, form, /^the form has too many fields\./],
      ['kind=a', `${form}; charset=latin1`, /^the charset in Content-Type must be utf-8/],
      [
        '{"kind":"a"}',
        'application/json',
        /^the body must be a form, sent with Content-Type: application\/x-www/,
      ],
      [`kind=${'a'.repeat(2_200_000)}`, form, /^the body is larger than 2 MB/],
    ];
    sold.length = 0;
    for (const [body, type, message] of wrong) {
      const refused = await order(body, type);
      expect([refused.status, refused.json().error], String(body).slice(0, 50)).to.satisfy(
        ([status, error]: [number, string]) =>
          status === 400 && message.test(error) && error.endsWith('Nothing was charged.'),
      );
    }
    expect(sold).to.deep.equal([]);
  });

  it('passes on the headers that the contract declares, in any case, and no others', async () => {
    const fell = (headers: object): Promise<Answer> => get('/woods/1', { ...PAID, ...headers }, 'DELETE');
    for (const headers of [
      { 'X-Region': 'eu', 'X-Axes': '1,2', 'X-Other': 'a' },
      { 'x-region': ' eu ', 'x-axes': '1 , 2', accept: 'text/plain' },
      { 'x-region': 'us' },
      {},
    ])
      expect((await fell(headers)).status).to.equal(200);
    expect(calls.map(({ headers }) => headers)).to.deep.equal([
      { 'X-Region': 'eu', 'X-Axes': [1, 2] },
      { 'X-Region': 'eu', 'X-Axes': [1, 2] },
      { 'X-Region': 'us' },
      {},
    ]);
    const [first, same, ...others] = sold.map(({ requestHash }) => requestHash);
    expect(same).to.equal(first);
    expect(new Set([first, ...others]).size).to.equal(3);
    const wrong = [
      { 'x-region': 'asia' },
      { 'x-axes': '1,x' },
      { 'x-axes': '0x1' },
      { 'x-axes': '1,2,3,4' },
      { 'x-region': 'e\u00fc' },
    ];
    for (const headers of wrong) {
      const refused = await fell(headers);
      expect(refused.status, JSON.stringify(headers)).to.equal(400);
      expect(refused.json().error).to.match(/^x-(region|axes)(\.\d)? must .*Nothing was charged\.$/i);
    }
    expect(sold).to.have.length(4);
    const preflight = await get('/woods/1', {}, 'OPTIONS');
    expect(preflight.headers.get('access-control-allow-headers')).to.match(/, x-region, x-axes$/);
  });

  it('sells text and images with their content types', async () => {
    const text = await get('/quotes/latest', PAID);
    expect([text.headers.get('content-type'), String(text.body)]).to.deep.equal([
      'text/plain; charset=utf-8',
      '2 USD',
    ]);
    const picture = await post('/print');
    expect([picture.headers.get('content-type'), String(picture.body)]).to.deep.equal(['image/jpeg', 'jpeg']);
  });

  it('takes orders for several operations, each with its own parameters', async () => {
    expect((await post('/trees/5.json', { name: 'a' })).json()).to.deep.equal({ name: 'grown' });
    expect((await post('/print', { width: 2 })).status).to.equal(200);
    expect(sold.map(({ operation, upfront }) => [operation.id, upfront?.request])).to.deep.equal([
      ['growTree', '[{"id":5},{},{"name":"a"}]'],
      ['print', '{"width":2}'],
    ]);
    expect(calls[0]).to.deep.include({ params: { id: 5 }, query: {}, body: { name: 'a' } });
    expect(calls[1]).to.deep.include({ params: {}, query: {}, body: { width: 2 } });
  });

  it('treats calls with the same path and declared query as the same call, whatever else is sent', async () => {
    const hashOf = async (path: string): Promise<string> => {
      await get(path, PAID);
      return sold.at(-1)!.requestHash;
    };
    const hash = await hashOf('/quotes/SOL');
    for (const same of [
      '/quotes/S%4FL',
      '/quotes/SOL?days=7',
      '/quotes/SOL?x402Version=1',
      '/quotes/SOL?utm=1&days=7.0',
    ])
      expect(await hashOf(same), same).to.equal(hash);
    const others = [
      '/quotes/ETH',
      '/quotes/SOL?days=8',
      '/quotes/SOL?kind=spot',
      '/quotes/SOL?tag=a',
      '/quotes/latest',
    ];
    const hashes = await Promise.all(others.map(hashOf));
    expect(new Set([hash, ...hashes]).size).to.equal(others.length + 1);
  });

  it('tells browsers which methods a path has', async () => {
    for (const [path, methods] of [
      ['/quotes/SOL', 'GET, HEAD, OPTIONS'],
      ['/trees/1.json', 'POST, OPTIONS'],
      ['/woods/1', 'PUT, PATCH, DELETE, OPTIONS'],
    ] as const) {
      const preflight = await get(path, {}, 'OPTIONS');
      expect(preflight.status).to.equal(204);
      expect(preflight.headers.get('access-control-allow-methods')).to.equal(methods);
      expect(preflight.headers.get('access-control-allow-origin')).to.equal('*');
      const refused = await get(path, {}, 'PROPFIND');
      expect([refused.status, refused.headers.get('allow')]).to.deep.equal([405, methods]);
    }
  });
});
