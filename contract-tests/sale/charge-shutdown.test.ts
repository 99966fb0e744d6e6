import { expect } from 'chai';
import { OrderWorker, type OrderWork } from '../../src/sale/order-worker.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import {
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectUnavailable,
  FEE_PAYER,
  operation,
  RECIPE,
  TERMS,
  world,
} from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';

describe('a server that is shutting down says “not charged” only if the ledger does', () => {
  eachInANewWorld();

  const closing = AbortSignal.abort(new Error('shutting down'));

  it('an unknown payment gets a 503 that says “not charged”', async () => {
    expectUnavailable(
      await world.redeem(world.payment(), { closing }),
      /shutting down. You were not charged/,
    );
    expect(world.facilitator.verifies).to.equal(0);
  });

  it('a delivered payment gets its answer', async () => {
    const payment = world.payment();
    const first = await world.redeem(payment);
    expect(bodyOf(await world.redeem(payment, { closing }))).to.equal(bodyOf(first));
  });

  it('a payment that is being settled gets a 503 with a pending receipt', async () => {
    const payment = world.payment();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    await world.redeem(payment);
    expectPending(await world.redeem(payment, { closing }));
    expectPending(await world.charge.turnAway(payment, 'The server is busy', 1));
  });

  it('an order that is being worked on gets a 503 with the receipt of its payment', async () => {
    const work: OrderWork = { wanted: () => 1, work: () => new Promise(() => {}) };
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const orders = new OrderWorker({ ledger: world.ledger, work, log, attemptMs: 60_000 });
    world.charge = world.newCharge({ orders, confirm: async () => true });
    const brand = operation('brandFeedback');
    const { transaction } = craftPayment({ ...RECIPE, amount: brand.price.atomic });
    const payment = world.checkedPayment(v2Header(requirementsOf(brand, TERMS, FEE_PAYER), transaction));
    const upfront = { request: '{}', ready: async () => undefined };
    const call = { operation: brand, upfront, holdMs: 50 };
    for (const change of [{}, { closing }]) {
      const outcome = await world.redeem(payment, { ...call, ...change });
      expectUnavailable(outcome, /^Paid, and in progress/);
      expect(outcome).to.have.nested.property('receipt.success', true);
      expect(outcome).to.have.nested.property('receipt.amount', '500000');
    }
    expect(world.facilitator.settles).to.equal(1);
  });
});
