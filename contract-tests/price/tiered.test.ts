import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import fc from 'fast-check';
import type { FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import { toDecimal } from '../../src/price/amount.js';
import type { Price } from '../../src/price/price.js';
import { tiered } from '../../src/price/tiered.js';
import { RECIPE } from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { callTool } from '../support/mcp-call.js';
import type { Answer } from '../support/world.js';
import { TestUpstream, UpstreamShop, type OperationForSale } from '../support/upstream-shop.js';

type Offer = Parameters<typeof v2Header>[0] & { amount: string };
const offerIn = (answer: Answer): Offer => (answer.json().accepts as Offer[])[0]!;
const USD = { mode: 'tiered', currency: 'USD' };

const text = { type: 'string', maxLength: 200 };
const list = { type: 'array', items: { type: 'integer' }, maxItems: 20 };
const count = { type: 'number', minimum: 0, maximum: 1_000 };
const BODY = {
  type: 'object',
  required: ['text', 'list', 'count'],
  properties: { text, list, count, more: { type: 'integer', default: 3, maximum: 100 } },
};
type Body = { text: string; list: number[]; count: number };

const STEPS = {
  ...USD,
  by: '/body/text',
  measure: 'length',
  steps: [{ upTo: 10, amount: '0.01' }, { upTo: 50, amount: '0.02' }, { amount: '0.05' }],
};
const PER_ITEM = {
  ...USD,
  by: '/body/list',
  measure: 'items',
  per: { amount: '0.001', units: 3 },
  min: '0.001',
  max: '0.004',
};
const PER_VALUE = {
  ...USD,
  by: '/body/count',
  measure: 'value',
  per: { amount: '0.0001', units: 7 },
  min: '0.00005',
  max: '0.01',
};
const PER_BYTES = {
  ...USD,
  by: '/body',
  measure: 'bytes',
  per: { amount: '0.00001', units: 1 },
  min: '0.0001',
  max: '1',
};

const read = (price: object): Price => tiered.read(price as Record<string, unknown>);
const quoteOf = async (price: object, body: unknown): Promise<bigint> =>
  (await read(price).quote({ params: {}, query: {}, body })).atomic;

/** The expected costs, computed independently. */
const ORACLES: Record<string, { price: object; costs: (body: Body) => bigint }> = {
  steps: {
    price: STEPS,
    costs: body => {
      const characters = [...body.text].length;
      return characters <= 10 ? 10_000n : characters <= 50 ? 20_000n : 50_000n;
    },
  },
  items: {
    price: PER_ITEM,
    costs: body => clamp(1_000n, ceil(BigInt(body.list.length) * 1_000n, 3n), 4_000n),
  },
  value: {
    price: PER_VALUE,
    // Numbers with at most two decimals, in hundredths.
    costs: body => clamp(50n, ceil(BigInt(Math.round(body.count * 100)) * 100n, 700n), 10_000n),
  },
  bytes: {
    price: PER_BYTES,
    costs: body =>
      clamp(100n, BigInt(Buffer.byteLength(JSON.stringify({ ...body, more: 3 }))) * 10n, 1_000_000n),
  },
};

function ceil(dividend: bigint, divisor: bigint): bigint {
  return dividend / divisor + (dividend % divisor > 0n ? 1n : 0n);
}
function clamp(least: bigint, amount: bigint, most: bigint): bigint {
  return amount < least ? least : amount > most ? most : amount;
}

const BODIES = fc.record({
  text: fc.string({ unit: 'grapheme-composite', maxLength: 60 }),
  list: fc.array(fc.nat({ max: 9 }), { maxLength: 20 }),
  count: fc.nat({ max: 100_000 }).map(hundredths => hundredths / 100),
});

describe('A price that depends on the call', () => {
  it('is that of the first step that the value does not exceed, or of the last if it exceeds all', async () => {
    const amount = fc.integer({ min: 1, max: 1_000_000 }).map(BigInt);
    const ends = fc.uniqueArray(fc.nat({ max: 500 }), { maxLength: 8 }).map(all => all.sort((a, b) => a - b));
    const cases = fc.tuple(ends, fc.array(amount, { minLength: 9, maxLength: 9 }), fc.nat({ max: 600 }));
    await fc.assert(
      fc.asyncProperty(cases, async ([upTo, amounts, value]) => {
        const prices = amounts.slice(0, upTo.length + 1);
        const steps = prices.map((each, at) => ({
          ...(at < upTo.length ? { upTo: upTo[at] } : {}),
          amount: toDecimal(each),
        }));
        const price = { ...USD, by: '/body/n', measure: 'value', steps };
        const at = upTo.findIndex(end => value <= end);
        expect(await quoteOf(price, { n: value })).to.equal(prices.at(at));
        const { least, most } = read(price);
        expect(prices.every(each => each >= least.atomic && each <= most.atomic)).to.equal(true);
      }),
      { numRuns: 500 },
    );
  });

  it('counts all bytes that a lenient base64 decoder could find, wherever the commas are', async () => {
    const encoded = { types: ['string'], always: true, bytes: true };
    const costs = async (body: string): Promise<bigint> =>
      (await tiered.read(PER_BYTES, () => encoded).quote({ params: {}, query: {}, body })).atomic;
    const dear = Buffer.alloc(3_000).toString('base64');
    expect(await costs(`data:image/png;base64,${dear}`)).to.equal(30_000n);
    for (const shape of [`${dear},`, `data:image/png;base64,${dear},`, `data:${dear};base64,AAAA`])
      expect(Number(await costs(shape)), shape.slice(-12)).to.be.at.least(30_000);
  });

  it('per unit is rounded up to a millionth of a dollar and kept within its bounds, whatever the number of units', async () => {
    const price = {
      ...USD,
      by: '/body/n',
      measure: 'value',
      per: { amount: '0.000003', units: 7 },
      min: '0.000001',
      max: '100',
    };
    for (const [n, atomic] of [
      [0, 1n],
      [-5, 1n],
      [1, 1n],
      [2.34, 2n],
      [7, 3n],
      [7.000_001, 4n],
      [1e-7, 1n],
      [5e-324, 1n],
      [1e300, 100_000_000n],
    ] as const)
      expect(await quoteOf(price, { n }), `${n}`).to.equal(atomic);
  });

  it('is the highest one for a call without the value, or with a value of another type', async () => {
    for (const body of [{}, { text: 5 }, { text: null }, null, 'text', { text: ['a'] }])
      expect(await quoteOf(STEPS, body)).to.equal(50_000n);
  });

  describe('in a shop', () => {
    let upstream: TestUpstream;
    let shop: UpstreamShop;
    const asked: string[] = [];

    before(async () => {
      upstream = await TestUpstream.open();
      upstream.says(200, '{"value":7}');
      const sold = Object.entries(ORACLES).map(([id, { price }]): OperationForSale => ({
        ...{ id, path: `/${id}`, method: 'post', body: BODY, price },
        upstream: { url: upstream.url },
      }));
      const days = {
        name: 'days',
        in: 'query' as const,
        schema: { type: 'integer', default: 1, maximum: 30 },
      };
      const perDay = {
        ...USD,
        by: '/query/days',
        measure: 'value',
        per: { amount: '0.01', units: 1 },
        min: '0.01',
        max: '0.3',
      };
      sold.push({
        id: 'days',
        path: '/days',
        price: perDay,
        parameters: [days],
        upstream: { url: upstream.url },
      });
      shop = await UpstreamShop.open(sold);
      Object.assign(shop.facilitator, {
        settle: async ({ requirements }: FacilitatorRequest) => {
          asked.push(requirements.amount);
          return shop.facilitator.onSettle();
        },
      });
    });
    after(async () => {
      await shop.close();
      upstream.close();
    });

    function paymentOf(offer: Offer, payer = Keypair.generate()): Record<string, string> {
      const { transaction } = craftPayment({ ...RECIPE, payer, amount: BigInt(offer.amount) });
      return { 'PAYMENT-SIGNATURE': v2Header(offer, transaction) };
    }

    for (const [id, { costs }] of Object.entries(ORACLES))
      it(`is the same in the 402, at the facilitator, in the receipt and in the ledger: ${id}`, async () => {
        await fc.assert(
          fc.asyncProperty(BODIES, async body => {
            const offer = offerIn(await shop.call(`/${id}`, {}, body));
            const payer = Keypair.generate();
            asked.length = 0;
            const answer = await shop.call(`/${id}`, paymentOf(offer, payer), body);
            expect(answer.status).to.equal(200);
            const receipt = JSON.parse(
              Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString(),
            ) as { amount: string };
            const rows = await shop.ledger.list({ limit: 1_000 });
            const row = rows.find(each => each.payer === payer.publicKey.toBase58());
            const amount = String(costs(body));
            expect([offer.amount, ...asked, receipt.amount, String(row?.amount)]).to.deep.equal(
              Array(4).fill(amount),
            );
          }),
          { numRuns: 25 },
        );
      });

    it('can depend on a query parameter, or on its default if the call leaves it out', async () => {
      expect(offerIn(await shop.call('/days', {})).amount).to.equal('10000');
      expect(offerIn(await shop.call('/days?days=30', {})).amount).to.equal('300000');
    });

    it('refuses a payment that was signed for another body, names the right price, and does no work', async () => {
      const small: Body = { text: 'short', list: [], count: 0 };
      const paid = paymentOf(offerIn(await shop.call('/steps', {}, small)));
      const calls = upstream.calls.length;
      const dearer = await shop.call('/steps', paid, { ...small, text: 'x'.repeat(11) });
      expect([dearer.status, offerIn(dearer).amount]).to.deep.equal([402, '20000']);
      expect(String(dearer.json().error)).to.match(/accepted 0\.01 USDC, the price is 0\.02 USDC/);
      expect(upstream.calls.length).to.equal(calls);
      expect((await shop.call('/steps', paid, small)).status).to.equal(200);
    });

    it('allows ten concurrent calls by one buyer at ten prices, over HTTP and MCP', async () => {
      const payer = Keypair.generate();
      const bodies = Array.from({ length: 10 }, (_, at) => ({
        text: '',
        list: [],
        count: (at + 1) * 7,
      }));
      const sent = await Promise.all(
        bodies.map(async body => ({ body, offer: offerIn(await shop.call('/value', {}, body)) })),
      );
      expect(new Set(sent.map(({ offer }) => offer.amount)).size).to.equal(10);
      const statuses = await Promise.all(
        sent.map(async ({ body, offer }, at) => {
          const paid = paymentOf(offer, payer);
          if (at % 2 === 0) return (await shop.call('/value', paid, body)).status;
          const payment: unknown = JSON.parse(
            Buffer.from(paid['PAYMENT-SIGNATURE'] ?? '', 'base64').toString(),
          );
          const result = await callTool(shop.url, 'value', body, { 'x402/payment': payment });
          return result.isError ? 500 : 200;
        }),
      );
      expect(statuses).to.deep.equal(Array(10).fill(200));
      const rows = (await shop.ledger.list({ limit: 1_000 })).filter(
        each => each.payer === payer.publicKey.toBase58(),
      );
      const amounts = rows.map(({ amount }) => String(amount)).sort();
      expect(amounts).to.deep.equal(sent.map(({ offer }) => offer.amount).sort());
    });

    it('is described in words: its range, and what it depends on', () => {
      const document = JSON.parse(shop.openapi) as {
        paths: Record<string, { post: { description: string; 'x-payment-info': object } }>;
      };
      const { description, 'x-payment-info': info } = document.paths['/steps']!.post;
      expect(info).to.deep.include({ price: { mode: 'dynamic', currency: 'USD', min: '0.01', max: '0.05' } });
      expect(description).to.include('Price: 0.01 to 0.05 USDC a call');
      expect(description).to.include(
        'By the length of /body/text: 0.01 USDC up to 10 characters, 0.02 USDC up to 50 characters, 0.05 USDC beyond.',
      );
    });
  });
});
