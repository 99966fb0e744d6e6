import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import fc from 'fast-check';
import type { FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import { Methods } from '../../src/methods/methods.js';
import { mppMethod } from '../../src/methods/mpp/mpp.js';
import { toDecimal } from '../../src/price/amount.js';
import { RECIPE, TERMS } from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { callThrough } from '../support/door-calls.js';
import { mppPayment, readChallenge } from '../support/mpp-payment.js';
import { sellingOf } from '../support/selling.js';
import { UpstreamShop } from '../support/upstream-shop.js';
import type { Answer } from '../support/world.js';

const SHOPS = 12;
const BODY = {
  type: 'object',
  required: ['text'],
  properties: { text: { type: 'string', maxLength: 200 } },
};
const METHODS = new Methods([
  ...sellingOf(TERMS).methods.all,
  mppMethod(
    { asset: TERMS.asset, payTo: TERMS.payTo, network: 'devnet', realm: '127.0.0.1:8402' },
    { secrets: ['a secret of this test, and of no shop at all'] },
  ),
]);
type Offer = Parameters<typeof v2Header>[0] & { amount: string };

/** How a client pays for the 402 of an unpaid call. Each returns the header that carries the payment. */
const WAYS: Record<string, (unpaid: Answer, payer: Keypair) => string> = {
  x402: (unpaid, payer) => {
    const [offer] = unpaid.json().accepts as [Offer];
    return v2Header(offer, craftPayment({ ...RECIPE, payer, amount: BigInt(offer.amount) }).transaction);
  },
  MPP: ({ headers }, payer) =>
    mppPayment(readChallenge(headers.get('www-authenticate')), payer).authorization,
};
const DOORS = ['http', 'mcp'] as const;

/** Every amount that a 402 names. */
function amountsIn({ headers, json }: Answer): string[] {
  const told = JSON.parse(Buffer.from(headers.get('payment-required') ?? '', 'base64').toString()) as Record<
    'accepts',
    Offer[]
  >;
  const offers = [...(json().accepts as Offer[]), ...told.accepts];
  const { request } = readChallenge(headers.get('www-authenticate'));
  return [...offers.map(({ amount }) => amount), request.amount];
}

const STEPS = fc
  .record({
    ends: fc.uniqueArray(fc.nat({ max: 60 }), { maxLength: 5 }),
    amounts: fc.array(fc.integer({ min: 1, max: 3_000_000 }), { minLength: 6, maxLength: 6 }),
  })
  .map(({ ends, amounts }) => {
    const upTo = ends.toSorted((a, b) => a - b);
    return { upTo, amounts: amounts.slice(0, upTo.length + 1) };
  });
const TEXTS = fc.array(fc.string({ unit: 'grapheme-composite', maxLength: 70 }), {
  minLength: 4,
  maxLength: 4,
});

describe('Calls of any length, priced in steps of any length and price,', function () {
  this.timeout(120_000);

  it(`cost the same in the ledger and at the facilitator as in all challenges of their 402: ${SHOPS} shops, by x402 and MPP, over HTTP and MCP`, async () => {
    await fc.assert(
      fc.asyncProperty(STEPS, TEXTS, async ({ upTo, amounts }, texts) => {
        const steps = amounts.map((amount, at) => ({
          ...(at < upTo.length ? { upTo: upTo[at] } : {}),
          amount: toDecimal(BigInt(amount)),
        }));
        const price = { mode: 'tiered', currency: 'USD', by: '/body/text', measure: 'length', steps };
        const serve = { call: async () => ({ status: 200 as const, body: { value: 1 } }) };
        const shop = await UpstreamShop.open(
          [{ id: 'one', path: '/one', method: 'post', body: BODY, price }],
          {},
          { methods: METHODS, sponsored: true, handlers: { one: serve } },
        );
        const settled: string[] = [];
        Object.assign(shop.facilitator, {
          settle: async ({ requirements }: FacilitatorRequest) => {
            settled.push(requirements.amount);
            return shop.facilitator.onSettle();
          },
        });
        try {
          for (const [n, text] of texts.entries())
            for (const pay of Object.values(WAYS)) {
              const length = [...text].length;
              const amount = String(amounts[upTo.filter(end => end < length).length]);
              const unpaid = await shop.call('/one', {}, { text });
              for (const told of amountsIn(unpaid)) expect(told).to.equal(amount);
              const payer = Keypair.generate();
              const call = { path: '/one', tool: 'one', body: { text }, header: pay(unpaid, payer) };
              settled.length = 0;
              const { signal } = new AbortController();
              const { sent } = await callThrough(DOORS[n % 2]!, shop.url, call, signal);
              expect(sent.kind, JSON.stringify(sent)).to.equal('sold');
              const [row, ...more] = (await shop.ledger.list({ limit: 100 })).filter(
                each => each.payer === payer.publicKey.toBase58(),
              );
              expect([String(row?.amount), row?.state, more.length]).to.deep.equal([amount, 'delivered', 0]);
              expect(settled).to.deep.equal([amount]);
            }
        } finally {
          await shop.close();
        }
      }),
      { numRuns: SHOPS },
    );
  });
});
