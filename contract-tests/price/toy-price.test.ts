import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { quoted } from '../../src/contract/quoted.js';
import type { FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import { PRICES } from '../../src/price/prices.js';
import { RECIPE } from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { callTool } from '../support/mcp-call.js';
import { toyPrice } from '../support/toy-price.js';
import { call, type Answer } from '../support/world.js';
import { contractOf, TestUpstream, UpstreamShop, type OperationForSale } from '../support/upstream-shop.js';

type Offer = Parameters<typeof v2Header>[0] & { amount: string };

const offersIn = (answer: Answer): Offer[] => answer.json().accepts as Offer[];
const amountIn = (answer: Answer): string | undefined => offersIn(answer)[0]?.amount;

const TOY = { mode: 'toy', currency: 'USD', characters: 50 };
const PRICES_WITH_TOY = { ...PRICES, toy: toyPrice };
const TEXT = {
  type: 'object',
  required: ['text'],
  properties: { text: { type: 'string', minLength: 1, maxLength: 50 } },
};
const operation = (id: string, more: Partial<OperationForSale> = {}): OperationForSale => ({
  id,
  path: `/${id}`,
  method: 'post',
  body: TEXT,
  price: TOY,
  upstream: { url: 'https://api.example.com/' },
  ...more,
});

describe('A kind of price that the server was not written for', () => {
  let upstream: TestUpstream;
  let shop: UpstreamShop;

  before(async () => {
    upstream = await TestUpstream.open();
    upstream.says(200, '{"value":7}');
    const sold = [
      operation('count', { upstream: { url: upstream.url } }),
      operation('later', { upstream: { url: upstream.url }, flow: 'upfront' }),
    ];
    shop = await UpstreamShop.open(sold, {}, { prices: PRICES_WITH_TOY });
  });
  after(async () => {
    await shop.close();
    upstream.close();
  });

  async function offerFor(path: string, body?: object): Promise<Offer> {
    const answer = await shop.call(path, {}, body);
    expect(answer.status).to.equal(402);
    const [offer] = offersIn(answer);
    return offer!;
  }

  /** A payment that accepts an offer and transfers the offer's amount. */
  function paymentOf(offer: Offer, payer = Keypair.generate()): Record<string, string> {
    const { transaction } = craftPayment({ ...RECIPE, payer, amount: BigInt(offer.amount) });
    return { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
  }

  it('is in the challenge, in body and header, for the text that the call sent', async () => {
    for (const text of ['a', 'four', 'x'.repeat(50)]) {
      const answer = await shop.call('/count', {}, { text });
      expect([answer.status, amountIn(answer)]).to.deep.equal([402, `${text.length * 100}`]);
      expect(answer.headers.get('payment-required')).to.equal(answer.body.toString('base64'));
    }
  });

  it('is the highest one in the challenge of a call without a body, or with an invalid one', async () => {
    const answers = [await call(`${shop.url}/count`, { method: 'POST' })];
    for (const body of [{}, { text: 5 }, { text: 'x'.repeat(51) }])
      answers.push(await shop.call('/count', {}, body));
    for (const answer of answers) expect([answer.status, amountIn(answer)]).to.deep.equal([402, '5000']);
  });

  for (const flow of ['count', 'later'])
    it(`is paid and written to the ledger over HTTP: ${flow}`, async () => {
      const payer = Keypair.generate();
      const body = { text: 'twelve chars' };
      const pay = paymentOf(await offerFor(`/${flow}`, body), payer);
      const settled = shop.facilitator.settles;
      for (const answer of [await shop.call(`/${flow}`, pay, body), await shop.call(`/${flow}`, pay, body)])
        expect([answer.status, answer.json()]).to.deep.equal([200, { value: 7 }]);
      expect(shop.facilitator.settles - settled).to.equal(1);
      const rows = await shop.ledger.list({ limit: 100 });
      const own = rows.filter(row => row.payer === payer.publicKey.toBase58());
      expect(own.map(({ state, amount }) => [state, amount])).to.deep.equal([['delivered', 1_200n]]);
    });

  it("is in each call's settle request to the facilitator", async () => {
    const amounts: string[] = [];
    Object.assign(shop.facilitator, {
      settle: async ({ requirements }: FacilitatorRequest) => {
        amounts.push(requirements.amount);
        return shop.facilitator.onSettle();
      },
    });
    for (const text of ['four', 'thirteen char']) {
      const pay = paymentOf(await offerFor('/count', { text }));
      expect((await shop.call('/count', pay, { text })).status).to.equal(200);
    }
    Reflect.deleteProperty(shop.facilitator, 'settle');
    expect(amounts).to.deep.equal(['400', '1300']);
  });

  it('sells over MCP', async () => {
    const sent = { text: 'twelve chars' };
    const price = await callTool(shop.url, 'count', sent);
    const [offer] = (price.structuredContent as { accepts: Offer[] }).accepts;
    expect(offer?.amount).to.equal('1200');
    const { 'PAYMENT-SIGNATURE': header = '' } = paymentOf(offer!);
    const payment: unknown = JSON.parse(Buffer.from(header, 'base64').toString());
    const dearer = await callTool(shop.url, 'count', { text: 'thirteen char' }, { 'x402/payment': payment });
    expect(dearer.isError).to.equal(true);
    expect(JSON.stringify(dearer.structuredContent)).to.match(
      /accepted 0\.0012 USDC, the price is 0\.0013 USDC/,
    );
    const bought = await callTool(shop.url, 'count', sent, { 'x402/payment': payment });
    expect(bought.structuredContent).to.deep.equal({ value: 7 });
  });

  it('is computed again from the body sent with the payment: a payment for one body buys neither a dearer nor a cheaper one', async () => {
    const pay = paymentOf(await offerFor('/count', { text: 'cheap' }));
    const calls = upstream.calls.length;
    for (const text of ['a dearer text', 'less']) {
      const refused = await shop.call('/count', pay, { text });
      expect([refused.status, amountIn(refused)]).to.deep.equal([402, `${text.length * 100}`]);
      expect(refused.json().error).to.match(/^amount: accepted 0\.0005 USDC, the price is 0\.00/);
    }
    expect(upstream.calls.length).to.equal(calls);
    expect((await shop.call('/count', pay, { text: 'cheap' })).status).to.equal(200);
    const sold = await shop.call('/count', pay, { text: 'a dearer text' });
    expect([sold.status, amountIn(sold)]).to.deep.equal([402, '1300']);
    expect(sold.json().error).to.match(/sent for another call, with another body/);
  });

  it('must be paid by the transfer itself, whatever amount the payment claims to have accepted', async () => {
    const body = { text: 'twelve chars' };
    const offer = await offerFor('/count', body);
    const { transaction } = craftPayment({ ...RECIPE, payer: Keypair.generate(), amount: 100n });
    const refused = await shop.call('/count', { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) }, body);
    expect(refused.status).to.equal(402);
    expect(refused.json().error).to.match(/pays 0\.0001 USDC, must be exactly 0\.0012 USDC/);
  });

  it('is not charged for an invalid body, which gets a 400, and the payment still buys the corrected call', async () => {
    const body = { text: 'twelve chars' };
    const pay = paymentOf(await offerFor('/count', body));
    const wrong = await shop.call('/count', pay, { text: 5 });
    expect(wrong.status).to.equal(400);
    expect(wrong.json().error).to.match(/You were not charged/);
    expect((await shop.call('/count', pay, body)).status).to.equal(200);
  });

  it('sells nothing if it is beyond the bounds', async () => {
    const [sold] = shop.contract.paid;
    const asked = { params: {}, query: {}, body: { text: 'x'.repeat(51) } };
    const refusal = await quoted(sold!, asked).catch((error: unknown) => error);
    expect(String(refusal)).to.include('the price of count is outside its range: 0.0051');
  });

  it('causes an error that names the missing field if the contract leaves one out', () => {
    const wrong = [operation('one', { price: { mode: 'toy', currency: 'USD', amount: '0.01' } })];
    expect(() => contractOf(wrong, {}, PRICES_WITH_TOY))
      .to.throw(/unknown key 'amount'/)
      .with.property('message')
      .that.includes('characters must be the greatest length');
    expect(() => contractOf(wrong)).to.throw(/mode must be 'fixed' or 'tiered' or 'handler'/);
  });
});
