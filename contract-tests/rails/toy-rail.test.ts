import { expect } from 'chai';
import type { Payment } from '../../src/ledger/store.js';
import { Methods } from '../../src/methods/methods.js';
import { Reconciler } from '../../src/sale/reconciler.js';
import { callTool } from '../support/mcp-call.js';
import { toyMethod } from '../support/toy-method.js';
import { ToyRail } from '../support/toy-rail.js';
import { TestUpstream, UpstreamShop } from '../support/upstream-shop.js';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const PRICE = 10_000n;

describe('A rail that the server was not written for, with balances in memory', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;
  let rail: ToyRail;
  let reconciler: Reconciler;
  let number = 0;
  let buyers = 0;
  let buyer = '';

  before(async () => {
    upstream = await TestUpstream.open();
    upstream.says(200, '{"value":7}');
    const operations = [
      { id: 'one', path: '/one', upstream: { url: `${upstream.url}/one` } },
      { id: 'order', path: '/order', upstream: { url: `${upstream.url}/order` }, flow: 'upfront' as const },
    ];
    rail = new ToyRail();
    shop = await UpstreamShop.open(operations, {}, { methods: new Methods([toyMethod()]), rail });
    reconciler = new Reconciler({
      ledger: shop.ledger,
      rail,
      log: SILENT,
      timing: { rest: 0, longestRest: 0, auditAfter: 0 },
    });
  });
  beforeEach(() => {
    rail.loses = 'nothing';
    // A new buyer for each test, because a buyer who signs again for an equal call may redeem the earlier one.
    buyer = `buyer${'a'.repeat(++buyers)}`;
    rail.balances.set(buyer, 5n * PRICE);
  });
  after(async () => {
    await reconciler.stop();
    await shop.close();
    upstream.close();
  });

  /** A payment header, made with the number from a new challenge. */
  async function payment(path = '/one', payer = buyer, amount = PRICE): Promise<{ toy: string }> {
    const challenge = (await shop.call(path, {})).headers.get('toy-challenge') ?? '';
    return { toy: `${challenge.split(' ')[0]} ${payer}:${amount}:${++number}` };
  }

  async function rowOf({ toy }: { toy: string }): Promise<Payment> {
    const row = (await shop.ledger.list({ limit: 100 })).find(({ evidence }) => toy.endsWith(evidence));
    if (!row) throw new Error('the ledger has no such payment');
    return row;
  }

  it('gives its hints to the challenge', async () => {
    const answer = await shop.call('/one', {});
    expect(answer.status).to.equal(402);
    expect(answer.headers.get('toy-challenge')).to.match(/^one\.\S+ toy $/);
  });

  it('sells over HTTP with a receipt, once for the same payment, and serves the answer to whoever has its key', async () => {
    const paid = await payment();
    const earned = rail.earned;
    const [first, again] = [await shop.call('/one', paid), await shop.call('/one', paid)];
    for (const answer of [first, again]) {
      expect([answer.status, answer.json()]).to.deep.equal([200, { value: 7 }]);
      expect(answer.headers.get('toy-receipt')).to.equal(buyer);
    }
    expect([rail.earned - earned, rail.balances.get(buyer)]).to.deep.equal([PRICE, 4n * PRICE]);
    expect(await rowOf(paid)).to.include({
      network: 'toy:1',
      method: 'toy',
      payer: buyer,
      state: 'delivered',
      after: rail.tick,
      position: rail.tick,
    });
    const { pathname } = new URL(first.headers.get('location') ?? '');
    const fetched = await shop.call(pathname, {});
    expect([fetched.status, fetched.json(), fetched.headers.get('toy-receipt')]).to.deep.equal([
      200,
      { value: 7 },
      buyer,
    ]);
  });

  it('sells over MCP', async () => {
    const { toy } = await payment();
    const bought = await callTool(shop.url, 'one', {}, { toy });
    expect(bought.structuredContent).to.deep.equal({ value: 7 });
    expect(bought._meta).to.include({ 'toy/receipt': buyer });
    expect(rail.balances.get(buyer)).to.equal(4n * PRICE);
  });

  it('sells an operation that is paid up front, once the money is seen', async () => {
    const paid = await payment('/order');
    const answer = await shop.call('/order', paid);
    expect([answer.status, answer.json()]).to.deep.equal([200, { value: 7 }]);
    expect(rail.balances.get(buyer)).to.equal(4n * PRICE);
  });

  it("refuses a payment below the price, one that it can't read, and a payer without the money", async () => {
    for (const [paid, error] of [
      [await payment('/one', buyer, PRICE - 1n), /amount: pays 9999, must be 10000/],
      [{ toy: (await payment()).toy.replace(/ .*/, ' nonsense') }, /transfer: cannot be read/],
      [await payment('/one', 'bob'), /funds: too little/],
    ] as const) {
      const refused = await shop.call('/one', paid);
      expect(refused.status).to.equal(402);
      expect(refused.headers.get('toy-challenge')).to.match(error);
    }
    expect(rail.balances.get(buyer)).to.equal(5n * PRICE);
  });

  it('refuses the same payment for another call, and says how to make a new one', async () => {
    const paid = await payment();
    expect((await shop.call('/one', paid)).status).to.equal(200);
    const [nonce] = (await payment('/order')).toy.split(' ');
    const refused = await shop.call('/order', { toy: `${nonce} ${paid.toy.split(' ')[1]}` });
    expect(refused.status).to.equal(402);
    expect(refused.headers.get('toy-challenge')).to.match(
      /sign a new one for this call, with another number/,
    );
  });

  it("finds money that moved although the bank's answer was lost, and delivers the answer", async () => {
    rail.loses = 'answers';
    const paid = await payment();
    const pending = await shop.call('/one', paid);
    expect(pending.status).to.equal(503);
    expect(pending.json().error).to.match(/^The settlement of this payment is not yet certain/);
    expect((await rowOf(paid)).state).to.equal('settling');
    await reconciler.reconcile();
    expect((await rowOf(paid)).state).to.equal('delivered');
    const answer = await shop.call('/one', paid);
    expect([answer.status, answer.json()]).to.deep.equal([200, { value: 7 }]);
    expect(rail.balances.get(buyer)).to.equal(4n * PRICE);
  });

  it('releases a payment only once the rail proves that its money never moved', async () => {
    rail.loses = 'requests';
    const paid = await payment();
    expect((await shop.call('/one', paid)).status).to.equal(503);
    await reconciler.reconcile();
    expect((await rowOf(paid)).state).to.equal('settling');
    rail.tick += 3;
    await reconciler.reconcile();
    expect(await rowOf(paid)).to.include({ state: 'released', reason: 'the bank never moved it' });
    expect((await shop.call('/one', paid)).status).to.equal(402);
    expect(rail.balances.get(buyer)).to.equal(5n * PRICE);
  });
});
