import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { AnyAsked, AnyServed } from '../../src/contract/operation.js';
import { UpstreamFailure } from '../../src/net/failure.js';
import { openHandlers, type ContextParts } from '../../src/shop/open-handlers.js';
import { RECIPE } from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { callTool } from '../support/mcp-call.js';
import type { Answer } from '../support/world.js';
import { contractOf, UpstreamShop, type OperationForSale } from '../support/upstream-shop.js';

type Offer = Parameters<typeof v2Header>[0] & { amount: string };
const offerIn = (answer: Answer): Offer => (answer.json().accepts as Offer[])[0]!;

const SOLD: OperationForSale = {
  id: 'work',
  path: '/work',
  method: 'post',
  body: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
  price: { mode: 'handler', currency: 'USD', min: '0.01', max: '0.05' },
};

/** Invalid results of the function. */
const BAD: Record<string, NonNullable<AnyServed['price']>> = {
  'more than max': () => '0.06',
  'less than min': () => '0.001',
  'a number': () => 0.02 as never,
  nothing: () => undefined as never,
  'an error': () => {
    throw new Error('no price');
  },
  'no answer in time': () => new Promise<string>(() => {}),
};

describe('A price from the handler', () => {
  let shop: UpstreamShop;
  let price: NonNullable<AnyServed['price']>;
  let worked = 0;

  before(async () => {
    const work: AnyServed = {
      call: async () => ({ status: 200, body: { value: ++worked } }),
      price: asked => price(asked),
    };
    shop = await UpstreamShop.open([SOLD], {}, { handlers: { work } });
  });
  beforeEach(() => {
    price = ({ body }: AnyAsked) => `0.0${(body as { n: number }).n}`;
  });
  after(() => shop.close());

  function paymentOf(offer: Offer): Record<string, string> {
    const { transaction } = craftPayment({
      ...RECIPE,
      payer: Keypair.generate(),
      amount: BigInt(offer.amount),
    });
    return { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
  }

  it('is in the 402 of the call and is charged; a call without the required body is offered at the highest price', async () => {
    const offer = offerIn(await shop.call('/work', {}, { n: 3 }));
    expect(offer.amount).to.equal('30000');
    expect((await shop.call('/work', paymentOf(offer), { n: 3 })).status).to.equal(200);
    expect(offerIn(await shop.call('/work', {}, {})).amount).to.equal('50000');
  });

  it("can't be used to change the body of the call", async () => {
    price = asked => {
      (asked.body as { n: number }).n = 9;
      return '0.02';
    };
    const paid = paymentOf(offerIn(await shop.call('/work', {}, { n: 1 })));
    expect((await shop.call('/work', paid, { n: 1 })).status).to.equal(200);
    expect((await shop.call('/work', paid, { n: 9 })).status).to.equal(402);
  });

  for (const [what, bad] of Object.entries(BAD))
    it(`sells nothing if the function returns ${what}`, async () => {
      const paid = paymentOf(offerIn(await shop.call('/work', {}, { n: 2 })));
      const before = worked;
      price = bad;
      for (const answer of [
        await shop.call('/work', {}, { n: 2 }),
        await shop.call('/work', paid, { n: 2 }),
      ]) {
        expect(answer.status).to.equal(502);
        expect(answer.json().error).to.match(/You were not charged/);
      }
      const tool = await callTool(shop.url, 'work', { n: 2 });
      expect([tool.isError, (tool.structuredContent as { status: number }).status]).to.deep.equal([
        true,
        502,
      ]);
      expect(worked).to.equal(before);
    });

  it('delivers what was paid for, even if the function later returns another price or fails', async () => {
    const paid = paymentOf(offerIn(await shop.call('/work', {}, { n: 4 })));
    const sold = await shop.call('/work', paid, { n: 4 });
    for (const later of [() => '0.01', () => Promise.reject(new Error('no price'))]) {
      price = later;
      const again = await shop.call('/work', paid, { n: 4 });
      expect([again.status, again.json()]).to.deep.equal([200, sold.json()]);
    }
  });

  it("is refused with the handler's reason if the handler can't do the work", async () => {
    price = () => {
      throw new UpstreamFailure('invalid', 'n is too large for today');
    };
    const answer = await shop.call('/work', {}, { n: 5 });
    expect([answer.status, answer.json().error]).to.deep.equal([
      400,
      'n is too large for today. You were not charged.',
    ]);
  });

  it('requires that the handler has a function `price`, which in turn requires such a price in the contract', async () => {
    const call = async () => ({ status: 200, body: {} });
    const opened = (sold: OperationForSale, served: object): Promise<unknown> =>
      openHandlers(contractOf([sold]), { work: () => served } as never, {}, {} as ContextParts).catch(
        (error: unknown) => error,
      );
    expect(String(await opened(SOLD, { call }))).to.include('its handler has no function price');
    const fixed = { mode: 'fixed', currency: 'USD', amount: '0.01' };
    expect(String(await opened({ ...SOLD, price: fixed }, { call, price: () => '0.01' }))).to.include(
      'a function price that is never called',
    );
  });
});
