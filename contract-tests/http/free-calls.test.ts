import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { callTool } from '../support/mcp-call.js';
import { headerOf, signedStatement, statementInfo } from '../support/signed-statement.js';
import { sellingOf } from '../support/selling.js';
import { TERMS } from '../support/charge-world.js';
import { BROWSER } from '../support/site.js';
import { contractOf, TestUpstream, UpstreamShop, type OperationForSale } from '../support/upstream-shop.js';
import type { Answer } from '../support/world.js';
import { fileOf } from '../../src/http/documents.js';
import { llmsTexts } from '../../src/documents/llms-text.js';
import { discoveryOf } from '../../src/documents/discovery.js';
import { toolsOf } from '../../src/mcp/tools.js';

const DAY_MS = 24 * 3_600_000;
const NOON = Date.parse('2026-11-23T12:00:00Z');
const text = { type: 'string', maxLength: 50 };
const body = { type: 'object', required: ['text'], properties: { text } };

describe('Calls that are free for a while (x-free)', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;
  let second: UpstreamShop;
  let now: number;
  let blocked: Set<string>;
  beforeEach(async () => {
    now = NOON;
    blocked = new Set();
    upstream = await TestUpstream.open();
    const sold = (id: string, free?: object): OperationForSale => ({
      ...{ id, path: `/${id}`, method: 'post', body, upstream: { url: upstream.url } },
      ...(free ? { free } : {}),
    });
    const operations = [
      sold('byAddress', { calls: 2, per: 'day', by: 'address' }),
      sold('byWallet', { calls: 2, per: 'day', by: 'wallet' }),
      sold('few', { calls: 5, per: 'hour', by: 'address', all: 3 }),
      sold('plain'),
    ];
    const options = { trustedProxies: 1, now: () => now, blocked };
    shop = await UpstreamShop.open(operations, {}, options);
    second = await UpstreamShop.open(operations, {}, { ...options, ledger: shop.ledger });
  });
  afterEach(async () => {
    await second.close();
    await shop.close();
    upstream.close();
  });

  type Asked = { at?: UpstreamShop; from?: string; sent?: object; headers?: Record<string, string> };
  const ask = (
    id: string,
    { at = shop, from = '8.8.8.8', sent = { text: 'a' }, headers = {} }: Asked = {},
  ): Promise<Answer> => at.call(`/${id}`, { 'X-Forwarded-For': from, ...headers }, sent);
  const signed = (wallet: Keypair): Record<string, string> =>
    headerOf(signedStatement(wallet, statementInfo(now)));
  const errorOf = (answer: Answer): string => String(answer.json().error);

  it('cost nothing until they are used up, whichever server is called; after that, the answer asks for the price and says why', async () => {
    const first = await ask('byAddress');
    expect([first.status, String(first.body)]).to.deep.equal([200, '{"value":1}']);
    expect(first.headers.get('free-calls-left')).to.equal('1');
    expect(first.headers.get('payment-response')).to.equal(null);
    expect((await ask('byAddress', { at: second })).headers.get('free-calls-left')).to.equal('0');
    for (const at of [shop, second, shop]) {
      const spent = await ask('byAddress', { at });
      expect(spent.status).to.equal(402);
      expect(spent.headers.get('payment-required')).to.be.a('string');
      expect(errorOf(spent)).to.equal(
        'the 2 free calls per day of your address are used up until 2026-11-24T00:00:00Z: pay for this one',
      );
    }
    expect(upstream.calls).to.have.length(2);
    expect(await shop.states()).to.deep.equal([]);
    now = NOON + DAY_MS;
    expect((await ask('byAddress')).status).to.equal(200);
  });

  it('are counted per address, which is determined as for the limits', async () => {
    for (const from of ['2001:db8::1', '2001:db8::2'])
      expect((await ask('byAddress', { from })).status).to.equal(200);
    expect((await ask('byAddress', { from: '2001:db8::3' })).status).to.equal(402);
    // It makes no difference if a caller puts other addresses before the one that the proxy adds.
    expect((await ask('byAddress', { from: '1.1.1.1, 2001:db8::9' })).status).to.equal(402);
    expect((await ask('byAddress', { from: '9.9.9.9' })).status).to.equal(200);
  });

  it('from one address at the same time are limited together, however many servers and transports they use', async () => {
    const over = [shop, second];
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const at = over[n % 2]!;
        if (n % 4 < 2) return (await ask('byAddress', { at })).status;
        const result = await callTool(at.url, 'byAddress', { text: 'a' }, undefined, {
          'X-Forwarded-For': '8.8.8.8',
        });
        return result.isError ? Number(result.structuredContent?.['status'] ?? 402) : 200;
      }),
    );
    expect(answers.filter(status => status === 200)).to.have.length(2);
    expect(answers.filter(status => status !== 200 && status !== 402 && status !== 503)).to.deep.equal([]);
    expect(upstream.calls).to.have.length(2);
  });

  it('are limited for all callers together', async () => {
    for (const n of [1, 2, 3]) expect((await ask('few', { from: `9.9.9.${n}` })).status).to.equal(200);
    const refused = await ask('few', { from: '9.9.9.4' });
    expect([refused.status, errorOf(refused)]).to.deep.equal([
      402,
      'the free calls of this hour are used up until 2026-11-23T13:00:00Z: pay for this one',
    ]);
  });

  it('are used up only by complete calls: a request for the price gets the price, and uses up none', async () => {
    for (const sent of [{}, { text: 7 }]) {
      const answer = await ask('byAddress', { sent });
      expect(answer.status).to.equal(402);
      expect(errorOf(answer)).to.match(/^Payment required/);
    }
    expect((await shop.call('/byAddress', { 'X-Forwarded-For': '8.8.8.8' })).status).to.equal(405);
    expect((await ask('byAddress')).headers.get('free-calls-left')).to.equal('1');
  });

  it('are not used up by opening the URL in a browser, which shows the page', async () => {
    const operation = { id: 'it', path: '/it', upstream: { url: upstream.url } };
    const free = { calls: 1, per: 'day', by: 'address' };
    const page = fileOf('<p>the page</p>', 'text/html; charset=utf-8', '');
    const people = { paywall: () => page, fault: () => '<p>a fault</p>', headers: {} };
    const third = await UpstreamShop.open([{ ...operation, free }], {}, { trustedProxies: 1, people });
    const open = (accept: string): Promise<Answer> =>
      third.call('/it', { accept, 'X-Forwarded-For': '8.8.8.8' });
    for (let visit = 0; visit < 2; visit++) {
      const shown = await open(BROWSER);
      expect([shown.status, String(shown.body)]).to.deep.equal([402, '<p>the page</p>']);
      expect(shown.headers.get('payment-required')).to.be.a('string');
    }
    expect(upstream.calls).to.deep.equal([]);
    expect((await open('application/json')).headers.get('free-calls-left')).to.equal('0');
    await third.close();
  });

  it('are not used up if the API behind the shop fails, but are if it rejects the input', async () => {
    upstream.says(500, '{}');
    expect((await ask('byAddress')).status).to.equal(502);
    upstream.says(200, '{"value":"no number"}');
    expect((await ask('byAddress')).status).to.equal(502);
    upstream.says(400, '{"error":"no"}');
    expect((await ask('byAddress')).status).to.equal(400);
    upstream.says(200, '{"value":1}');
    expect((await ask('byAddress')).headers.get('free-calls-left')).to.equal('0');
  });

  it('are used up even if the caller hangs up during the work', async () => {
    const reached = new Promise<void>(resolve => {
      upstream.answer = () => resolve();
    });
    const gone = new AbortController();
    const call = fetch(`${shop.url}/byAddress`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': '8.8.8.8' },
      body: '{"text":"a"}',
      signal: gone.signal,
    }).catch(() => undefined);
    await reached;
    gone.abort();
    await call;
    upstream.says(200, '{"value":1}');
    expect((await ask('byAddress')).headers.get('free-calls-left')).to.equal('0');
  });

  it('are not used up by paid calls, which stay unchanged', async () => {
    const payment = shop.pay('byAddress');
    const bought = await ask('byAddress', { headers: payment });
    expect([bought.status, bought.headers.get('free-calls-left')]).to.deep.equal([200, null]);
    expect(bought.headers.get('payment-response')).to.be.a('string');
    expect(String((await ask('byAddress', { headers: payment, at: second })).body)).to.equal(
      String(bought.body),
    );
    expect(await shop.states()).to.deep.equal(['delivered']);
    expect((await ask('byAddress')).headers.get('free-calls-left')).to.equal('1');
    expect((await ask('plain')).status).to.equal(402);
  });

  it('given to a wallet need one signed statement each, from any address, at any server, over HTTP and MCP', async () => {
    const wallet = Keypair.generate();
    expect((await ask('byWallet')).status).to.equal(402);
    expect((await ask('byWallet', { headers: signed(wallet) })).headers.get('free-calls-left')).to.equal('1');
    const statement = signedStatement(wallet, statementInfo(now));
    const result = await callTool(second.url, 'byWallet', { text: 'a' }, { 'sign-in-with-x': statement });
    expect(result.structuredContent).to.deep.equal({ value: 1 });
    expect(result._meta).to.deep.equal({ 'coinslot/free-calls-left': 0 });
    const spent = await ask('byWallet', { from: '9.9.9.9', headers: signed(wallet), at: second });
    expect([spent.status, errorOf(spent)]).to.deep.equal([
      402,
      'the 2 free calls per day of this wallet are used up until 2026-11-24T00:00:00Z: pay for this one',
    ]);
    const refused = await callTool(
      shop.url,
      'byWallet',
      { text: 'a' },
      { 'sign-in-with-x': signedStatement(wallet, statementInfo(now)) },
    );
    expect(refused.structuredContent?.['error']).to.contain('used up');
    expect((await ask('byWallet', { headers: signed(Keypair.generate()) })).status).to.equal(200);
  });

  it('are not given twice for one statement, however often and wherever it is sent', async () => {
    const headers = signed(Keypair.generate());
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => ask('byWallet', { headers, at: n % 2 ? second : shop })),
    );
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    const later = await ask('byWallet', { headers });
    expect([later.status, errorOf(later)]).to.deep.equal([
      402,
      'the signed statement is refused, invalid_siwx_nonce: it was used before',
    ]);
    now += 300_000;
    expect(errorOf(await ask('byWallet', { headers }))).to.contain('invalid_siwx_issued_at_too_old');
  });

  it('of made-up wallets are limited by the address of their caller', async () => {
    const statuses: number[] = [];
    for (let n = 0; n < 22; n++)
      statuses.push((await ask('byWallet', { headers: signed(Keypair.generate()) })).status);
    expect(statuses.filter(status => status === 200)).to.have.length(20);
    const refused = await ask('byWallet', { headers: signed(Keypair.generate()) });
    expect(errorOf(refused)).to.contain('the free calls of this day are used up');
  });

  it('are refused to a wallet that the operator has blocked', async () => {
    const wallet = Keypair.generate();
    blocked.add(wallet.publicKey.toBase58());
    const refused = await ask('byWallet', { headers: signed(wallet) });
    expect([refused.status, errorOf(refused)]).to.deep.equal([
      402,
      'payer: this shop serves nothing to this wallet, free or paid. You were not charged; do not pay',
    ]);
    expect(upstream.calls).to.deep.equal([]);
  });

  it('are not offered in a 402: a wallet gets the text to sign from another URL', async () => {
    const unpaid = await ask('byWallet');
    const header = Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString();
    expect(String(unpaid.body) + header).not.to.contain('sign-in');
    const { extensions } = (await shop.call('/.well-known/coinslot/sign-in', {})).json() as {
      extensions: {
        'sign-in-with-x': { info: Record<string, string>; supportedChains: { chainId: string }[] };
      };
    };
    const { info, supportedChains } = extensions['sign-in-with-x'];
    const chainId = supportedChains[0]?.chainId ?? '';
    const { status } = await ask('byWallet', {
      headers: headerOf(
        signedStatement(Keypair.generate(), { ...info, chainId, issuedAt: new Date(now).toISOString() }),
      ),
    });
    expect(status).to.equal(200);
    const allowed = await fetch(`${shop.url}/byWallet`, { method: 'OPTIONS' });
    expect(allowed.headers.get('access-control-allow-headers')).to.contain('sign-in-with-x');
    expect(allowed.headers.get('access-control-expose-headers') ?? '').to.contain('Free-Calls-Left');
  });

  it("are refused while they can't be counted: 503, and no work is done", async () => {
    const broken = { takeUses: () => Promise.reject(new Error('disk')), giveUsesBack: async () => {} };
    const ledger = new Proxy(shop.ledger, {
      get: (target, name) => (broken as Record<PropertyKey, unknown>)[name] ?? Reflect.get(target, name),
    });
    const third = await UpstreamShop.open(
      [
        {
          id: 'it',
          path: '/it',
          method: 'post',
          body,
          upstream: { url: upstream.url },
          free: { calls: 1, per: 'day', by: 'address' },
        },
      ],
      {},
      { ledger, trustedProxies: 1 },
    );
    const answer = await ask('it', { at: third });
    expect([answer.status, answer.headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(errorOf(answer)).to.contain('cannot be counted').and.contain('You were not charged');
    expect(upstream.calls).to.have.length(0);
    expect((await ask('it', { at: third, headers: third.pay('it') })).status).to.equal(200);
    await third.close();
  });

  it('are counted separately from sales', async () => {
    await ask('byAddress');
    const told = shop.events.flatMap(event =>
      event.kind === 'given' ? [[event.operation, event.status]] : [],
    );
    expect(told).to.deep.equal([['byAddress', 200]]);
    expect(shop.events.some(({ kind }) => kind === 'answered')).to.equal(false);
  });

  it('are described wherever the operation is described', () => {
    const { contract } = shop;
    const selling = { publicUrl: TERMS.publicUrl, methods: sellingOf(TERMS).methods };
    const byAddress = 'The first 2 calls a day from an address are free.';
    const byWallet = 'The first 2 calls a day from a wallet that signs in are free.';
    const tools = toolsOf(contract, selling.methods)
      .map(({ description }) => description)
      .join();
    const { short, full } = llmsTexts(contract, selling);
    const index = JSON.stringify(discoveryOf(contract.paid, selling));
    for (const [what, described] of Object.entries({ tools, short, full, index, openapi: shop.openapi })) {
      expect(described, what).to.contain(byAddress);
      expect(described, what).to.contain(byWallet);
    }
    for (const described of [tools, full, shop.openapi])
      expect(described).to.contain('/.well-known/coinslot/sign-in').and.contain('SIGN-IN-WITH-X');
  });
});

const faults: [what: string, free: unknown, words: string, more?: Partial<OperationForSale>][] = [
  ['no object', 'five', 'must be an object: x-free: { calls: 5, per: day, by: address }'],
  ['no calls', { calls: 0, per: 'day', by: 'address' }, 'calls: must be a whole number from 1'],
  ['calls as text', { calls: '5', per: 'day', by: 'address' }, 'calls: must be a whole number from 1'],
  ['another time', { calls: 5, per: 'year', by: 'address' }, 'per: must be hour or day'],
  ['another caller', { calls: 5, per: 'day', by: 'ip' }, 'by: must be address or wallet'],
  ['an unknown key', { calls: 5, per: 'day', by: 'address', to: 1 }, "unknown key 'to'"],
  [
    'half a call for all',
    { calls: 5, per: 'day', by: 'address', all: 0.5 },
    'all: must be a whole number from 1',
  ],
  ['an order', { calls: 5, per: 'day', by: 'address' }, 'needs flow: authorization', { flow: 'upfront' }],
];

describe('Errors in x-free are explained', () => {
  for (const [what, free, words, more = {}] of faults)
    it(what, () => {
      const operation = {
        id: 'a',
        path: '/a',
        upstream: { url: 'http://a.example' },
        ...more,
        free: free as object,
      };
      expect(() => contractOf([operation])).to.throw(words);
    });

  it('x-free on an operation that costs nothing at all', () => {
    const paths = (key: string): Record<string, object> => ({
      '/b': {
        get: {
          operationId: 'b',
          'x-free': { calls: 5, per: 'day', by: 'address' },
          'x-upstream': { url: 'http://a.example' },
          ...(key === '' ? {} : { [key]: true }),
          responses: { 200: { description: 'It.', content: { 'application/json': { schema: {} } } } },
        },
      },
    });
    const sold = [{ id: 'a', path: '/a', upstream: { url: 'http://a.example' } }];
    expect(() => contractOf(sold, paths(''))).to.throw(
      'needs a price, because it makes some calls of a paid operation free',
    );
    expect(() => contractOf(sold, paths('x-free-proxy'))).to.throw('remove one of the two');
  });
});
