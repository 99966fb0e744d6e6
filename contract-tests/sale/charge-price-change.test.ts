import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Payment } from '../../src/sale/check-payment.js';
import type { Facilitator } from '../../src/facilitators/facilitator.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import {
  asked,
  ACCEPTED,
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectRefused,
  failed,
  FEE_PAYER,
  RECIPE,
  SUMMARIZE,
  TERMS,
  world,
} from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';

describe('a changed price affects only unknown payments', () => {
  eachInANewWorld();

  const dearer = { ...SUMMARIZE, price: { ...SUMMARIZE.price, atomic: 20_000n } };

  /** The payment as a server with another price decodes it. */
  async function under(header: string): Promise<Payment> {
    const checkedPayment = await world.charge.checkPayment(
      { headers: { 'payment-signature': header } },
      dearer,
    );
    if (checkedPayment.kind !== 'mismatch') throw new Error(checkedPayment.kind);
    expect(checkedPayment.error).to.match(/the price is 0.02 USDC/);
    return checkedPayment.payment;
  }

  it('a delivered payment gets the same answer, with a receipt for the price that was paid', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    const first = await world.redeem(world.checkedPayment(header));
    const again = await world.redeem(await under(header), { operation: dearer });
    expect(bodyOf(again)).to.equal(bodyOf(first));
    expect(again).to.have.nested.property('receipt.amount', '10000');
  });

  it('a payment that was being settled is still pending, and never refused', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    await world.redeem(world.checkedPayment(header));
    expect(await world.charge.isKnown(await under(header))).to.equal(true);
    expectPending(await world.redeem(await under(header), { operation: dearer }));
  });

  it('after a change of the receiver, a delivered answer is still handed out', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    const first = await world.redeem(world.checkedPayment(header));
    const elsewhere = { ...TERMS, payTo: Keypair.generate().publicKey.toBase58() };
    const charge = world.newCharge({ terms: elsewhere });
    const checkedPayment = await charge.checkPayment({ headers: { 'payment-signature': header } }, SUMMARIZE);
    if (checkedPayment.kind !== 'mismatch') throw new Error(checkedPayment.kind);
    expect(bodyOf(await charge.process(world.call(checkedPayment.payment)))).to.equal(bodyOf(first));
  });

  it('after a change of the receiver, a settlement is requested again with the receiver that was paid', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    const askedFor: string[] = [];
    const recorder: Facilitator = {
      supported: () => world.facilitator.supported(),
      verify: () => world.facilitator.verify(),
      close: () => world.facilitator.close(),
      settle: async ({ requirements }) => {
        askedFor.push(requirements.payTo);
        return { kind: 'unknown', reason: 'status 502', signature: '' };
      },
    };
    const facilitator = asked(recorder);
    world.charge = world.newCharge({ facilitator });
    expectPending(await world.redeem(world.checkedPayment(header)));
    const elsewhere = { ...TERMS, payTo: Keypair.generate().publicKey.toBase58() };
    const ledger = { ...world.ledger, receivers: [elsewhere.payTo, TERMS.payTo] };
    const charge = world.newCharge({ terms: elsewhere, ledger, facilitator, askAgainAfterMs: 0 });
    const checkedPayment = await charge.checkPayment({ headers: { 'payment-signature': header } }, SUMMARIZE);
    if (checkedPayment.kind !== 'mismatch') throw new Error(checkedPayment.kind);
    expectPending(await charge.process(world.call(checkedPayment.payment, { holdMs: 1_000 })));
    expect(askedFor).to.deep.equal([TERMS.payTo, TERMS.payTo]);
  });

  it('a payment that was not settled is checked against today’s price and refused, even if its work failed before the change', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    expect(await world.charge.isKnown(await under(header))).to.equal(false);
    await world.redeem(world.checkedPayment(header), { work: async () => failed(502) });
    expectRefused(
      await world.redeem(await under(header), { operation: dearer }),
      /the price is 0.02 USDC/,
      true,
    );
    expect(world.facilitator.settles).to.equal(0);
    const row = await world.ledger.find(world.checkedPayment(header).checked.id);
    expect(row, 'sent away, and the ledger knows').to.include({ callers: 2, callerUntil: 0 });
  });

  it('a payment for the new offer buys at the new price', async () => {
    const { transaction } = craftPayment({ ...RECIPE, amount: 20_000n });
    const header = v2Header(requirementsOf(dearer, TERMS, FEE_PAYER), transaction);
    const checkedPayment = await world.charge.checkPayment(
      { headers: { 'payment-signature': header } },
      dearer,
    );
    if (checkedPayment.kind !== 'payment') throw new Error(checkedPayment.kind);
    const outcome = await world.redeem(checkedPayment.payment, { operation: dearer });
    expect(outcome).to.have.nested.property('receipt.amount', '20000');
  });
});
