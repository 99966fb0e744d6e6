import { expect } from 'chai';
import { Methods } from '../../src/methods/methods.js';
import { PRICES } from '../../src/price/prices.js';
import { Reconciler } from '../../src/sale/reconciler.js';
import { callTool } from '../support/mcp-call.js';
import { toyMethod } from '../support/toy-method.js';
import { toyPrice } from '../support/toy-price.js';
import { ToyRail } from '../support/toy-rail.js';
import { TestUpstream, UpstreamShop } from '../support/upstream-shop.js';

/** The toy price of each character. */
const PER_CHARACTER = 100n;
const FUNDS = 1_000_000n;
const COPIES = 20;

describe('A shop with a method, a rail and a price that the server was not written for', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;
  let rail: ToyRail;
  let reconciler: Reconciler;
  let numbers = 0;
  let buyers = 0;
  let buyer = '';

  before(async () => {
    upstream = await TestUpstream.open();
    rail = new ToyRail();
    const text = { type: 'string', minLength: 1, maxLength: 50 };
    const sold = ['count', 'later'].map(id => ({
      id,
      path: `/${id}`,
      method: 'post' as const,
      body: { type: 'object', required: ['text'], properties: { text } },
      price: { mode: 'toy', currency: 'USD', characters: 50 },
      upstream: { url: upstream.url },
      ...(id === 'later' ? { flow: 'upfront' as const } : {}),
    }));
    const methods = new Methods([toyMethod()]);
    shop = await UpstreamShop.open(sold, {}, { methods, rail, prices: { ...PRICES, toy: toyPrice } });
    reconciler = new Reconciler({
      ledger: shop.ledger,
      rail,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      timing: { rest: 0, longestRest: 0, auditAfter: 0 },
    });
  });
  beforeEach(() => {
    rail.loses = 'nothing';
    upstream.says(200, '{"value":7}');
    buyer = `buyer${'a'.repeat(++buyers)}`;
    rail.balances.set(buyer, FUNDS);
  });
  after(async () => {
    await reconciler.stop();
    await shop.close();
    upstream.close();
  });

  const priceOf = (text: string): bigint => PER_CHARACTER * BigInt(text.length);
  const spent = (): bigint => FUNDS - (rail.balances.get(buyer) ?? 0n);

  /** A header that pays for this text. It contains the number of a new challenge. */
  async function paymentFor(text: string, path = '/count'): Promise<{ toy: string }> {
    const challenge = (await shop.call(path, {}, { text })).headers.get('toy-challenge') ?? '';
    return { toy: `${challenge.split(' ')[0]} ${buyer}:${priceOf(text)}:${++numbers}` };
  }

  it('charges once for copies that come at the same moment, and answers each of them', async () => {
    const paid = await paymentFor('twelve chars');
    const calls = upstream.calls.length;
    const copies = Array.from({ length: COPIES }, () => shop.call('/count', paid, { text: 'twelve chars' }));
    for (const answer of await Promise.all(copies)) {
      expect([answer.status, answer.json()]).to.deep.equal([200, { value: 7 }]);
      expect(answer.headers.get('toy-receipt')).to.equal(buyer);
    }
    expect([spent(), upstream.calls.length - calls]).to.deep.equal([1_200n, 1]);
  });

  it('charges once for copies of an upfront payment: each gets the answer, or a 503 that says that it is paid', async () => {
    const paid = await paymentFor('order', '/later');
    const calls = upstream.calls.length;
    const copies = Array.from({ length: COPIES }, () => shop.call('/later', paid, { text: 'order' }));
    for (const answer of await Promise.all(copies))
      if (answer.status !== 200) expect(answer.json().error).to.match(/^Paid, and in progress/);
    const last = await shop.call('/later', paid, { text: 'order' });
    expect([last.status, last.json()]).to.deep.equal([200, { value: 7 }]);
    expect([spent(), upstream.calls.length - calls]).to.deep.equal([500n, 1]);
  });

  it('charges once for a payment that is copied to MCP', async () => {
    const { toy } = await paymentFor('both');
    const [tool, page] = [
      await callTool(shop.url, 'count', { text: 'both' }, { toy }),
      await shop.call('/count', { toy }, { text: 'both' }),
    ];
    expect([tool.structuredContent, page.json()]).to.deep.equal([{ value: 7 }, { value: 7 }]);
    expect(tool._meta).to.include({ 'toy/receipt': buyer });
    expect(spent()).to.equal(400n);
  });

  it('lets a payment buy neither a dearer call nor any other, before or after its own sale', async () => {
    const paid = await paymentFor('cheap');
    const dearer = await shop.call('/count', paid, { text: 'a dearer text' });
    expect([dearer.status, spent()]).to.deep.equal([402, 0n]);
    expect((await shop.call('/count', paid, { text: 'cheap' })).status).to.equal(200);
    const calls = upstream.calls.length;
    for (const text of ['a dearer text', 'other'])
      expect((await shop.call('/count', paid, { text })).status, text).not.to.equal(200);
    expect([spent(), upstream.calls.length]).to.deep.equal([500n, calls]);
  });

  it('charges nothing while the work fails, and the same payment buys it afterwards', async () => {
    const paid = await paymentFor('later on');
    upstream.says(500, '{}');
    const failed = await shop.call('/count', paid, { text: 'later on' });
    expect([failed.status, spent()]).to.deep.equal([502, 0n]);
    upstream.says(200, '{"value":8}');
    const sold = await shop.call('/count', paid, { text: 'later on' });
    expect([sold.status, sold.json(), spent()]).to.deep.equal([200, { value: 8 }, 800n]);
  });

  it('never charges twice for an answer whose settlement was lost', async () => {
    const paid = await paymentFor('lost');
    rail.loses = 'answers';
    expect((await shop.call('/count', paid, { text: 'lost' })).status).to.equal(503);
    rail.loses = 'nothing';
    await reconciler.reconcile();
    const again = await shop.call('/count', paid, { text: 'lost' });
    expect([again.status, again.json(), spent()]).to.deep.equal([200, { value: 7 }, 400n]);
  });
});
