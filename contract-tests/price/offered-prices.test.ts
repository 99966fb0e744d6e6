import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { PricedOperation } from '../../src/contract/contract.js';
import { atPrice } from '../../src/contract/quoted.js';
import { Methods } from '../../src/methods/methods.js';
import { mppMethod } from '../../src/methods/mpp/mpp.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import { OfferedPrices } from '../../src/offers/tell-prices.js';
import { FEE_PAYER, MINUTE, RECIPE, TERMS } from '../support/charge-world.js';
import { craftPayment, DEVNET_V1, v1Header, v2Header } from '../support/craft.js';
import { callTool } from '../support/mcp-call.js';
import { mppPayment, readChallenge } from '../support/mpp-payment.js';
import { sellingOf } from '../support/selling.js';
import { UpstreamShop, type OperationForSale } from '../support/upstream-shop.js';
import type { Answer } from '../support/world.js';

const PRESENT = 20_000n;
const FORMER = 10_000n;
const REALM = '127.0.0.1:8402';

const OPERATIONS: OperationForSale[] = ['value', 'another'].map(id => ({
  id,
  path: `/${id}`,
  price: { mode: 'fixed', currency: 'USD', amount: '0.02' },
}));

describe('A price that was offered within the last five minutes, before a restart or by another server of the same ledger,', () => {
  let shop: UpstreamShop;
  let value: PricedOperation;
  let now: number;
  const mpp = mppMethod(
    { asset: TERMS.asset, payTo: TERMS.payTo, network: 'devnet', realm: REALM },
    { secrets: ['a secret of this test, and of no shop at all'] },
  );

  beforeEach(async () => {
    now = Date.now();
    const serve = { call: async () => ({ status: 200, body: { value: 1 } }) };
    shop = await UpstreamShop.open(
      OPERATIONS,
      {},
      {
        methods: new Methods([...sellingOf(TERMS).methods.all, mpp]),
        handlers: { value: serve, another: serve },
        now: () => now,
      },
    );
    value = shop.contract.paid.find(({ id }) => id === 'value')!;
    await tell(PRESENT);
  });
  afterEach(() => shop.close());

  /** Offers `value` at this price, as another server would, or as this one did before a restart. */
  async function tell(atomic: bigint): Promise<void> {
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const prices = new OfferedPrices({ paid: [atPrice(value, atomic)], ledger: shop.ledger, log });
    await prices.start();
    await prices.stop();
  }

  /** A payment whose header accepts the amount `accepted` and whose transfer moves `moved`. */
  const paid = (accepted: bigint, moved = accepted): Record<string, string> => {
    const { transaction } = craftPayment({ ...RECIPE, payer: Keypair.generate(), amount: moved });
    return {
      'PAYMENT-SIGNATURE': v2Header(requirementsOf(atPrice(value, accepted), TERMS, FEE_PAYER), transaction),
    };
  };
  const amounts = async (): Promise<bigint[]> =>
    (await shop.ledger.list({ limit: 10 })).map(({ amount }) => amount);
  const asked = (answer: Answer): unknown => (answer.json().accepts as { amount: string }[])[0]?.amount;

  async function expectRefused(headers: Record<string, string>, path = '/value'): Promise<void> {
    const answer = await shop.call(path, headers);
    expect([answer.status, asked(answer)]).to.deep.equal([402, PRESENT.toString()]);
    expect([await amounts(), shop.facilitator.settles]).to.deep.equal([[], 0]);
  }

  it('buys its call, in x402 v2 and v1, in MPP, and over MCP', async () => {
    await tell(FORMER);
    const { transaction } = craftPayment({ ...RECIPE, payer: Keypair.generate(), amount: FORMER });
    const hints = { sponsor: FEE_PAYER, recentBlockhash: Keypair.generate().publicKey.toBase58() };
    const challenge = mpp.challenge(atPrice(value, FORMER), hints).headers['WWW-Authenticate'] ?? '';
    const payments = [
      paid(FORMER),
      { 'X-PAYMENT': v1Header(DEVNET_V1, transaction) },
      { Authorization: mppPayment(readChallenge(challenge), Keypair.generate()).authorization },
    ];
    for (const headers of payments) {
      const answer = await shop.call('/value', headers);
      expect(answer.status, answer.body.toString()).to.equal(200);
      expect((await shop.call('/value', headers)).body, 'once more').to.deep.equal(answer.body);
    }
    const sent = JSON.parse(
      Buffer.from(paid(FORMER)['PAYMENT-SIGNATURE'] ?? '', 'base64').toString(),
    ) as object;
    const result = await callTool(shop.url, 'value', {}, { 'x402/payment': sent });
    expect(JSON.stringify(result)).to.include('"value":1');
    expect(await amounts()).to.deep.equal([FORMER, FORMER, FORMER, FORMER]);
    expect(shop.facilitator.settles).to.equal(4);
    const told = shop.events.map(each => each.kind === 'answered' && each.amount);
    expect(new Set(told), 'in the log').to.deep.equal(new Set([FORMER]));
  });

  it('may be higher or lower than the current price', async () => {
    for (const atomic of [30_000n, FORMER]) {
      await tell(atomic);
      expect((await shop.call('/value', paid(atomic))).status).to.equal(200);
    }
    expect((await amounts()).toSorted()).to.deep.equal([FORMER, 30_000n]);
  });

  it('is no longer accepted after five minutes', async () => {
    await tell(FORMER);
    now += 5 * MINUTE + 1;
    await expectRefused(paid(FORMER));
    now -= 2;
    expect((await shop.call('/value', paid(FORMER))).status).to.equal(200);
  });

  it('is the only other price accepted: a price that was never offered is refused, and so is a transfer of an amount other than the accepted one', async () => {
    await expectRefused(paid(FORMER));
    await tell(FORMER);
    await expectRefused(paid(FORMER + 1n));
    await expectRefused(paid(FORMER, FORMER - 1n));
    await expectRefused(paid(PRESENT, FORMER));
    await expectRefused(paid(FORMER, PRESENT));
    await expectRefused(paid(FORMER), '/another');
  });

  it('is not read from the ledger if a payment has the current price', async () => {
    await tell(FORMER);
    shop.ledger.offeredPrices = async () => expect.fail('it was read');
    expect((await shop.call('/value', paid(PRESENT))).status).to.equal(200);
    expect(await amounts()).to.deep.equal([PRESENT]);
  });

  it('leads to a 402 with the current price if its payment is refused', async () => {
    await tell(FORMER);
    shop.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    const answer = await shop.call('/value', paid(FORMER));
    expect([answer.status, asked(answer)]).to.deep.equal([402, PRESENT.toString()]);
  });
});
