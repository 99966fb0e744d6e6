import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Charge } from '../../src/sale/charge.js';
import type { Payment } from '../../src/sale/check-payment.js';
import type { PaidCall } from '../../src/sale/paid-call.js';
import type { Answer, Outcome } from '../../src/sale/outcome.js';
import { bodyOf, eachInANewWorld, failed, Gate, ID, SIGNATURE, world } from '../support/charge-world.js';
import { until } from '../support/faults.js';

describe('a payment that waits for an earlier one with the same payment-identifier buys the answer itself if the earlier one does not', () => {
  eachInANewWorld(true);

  let first: Payment;
  let second: Payment;
  beforeEach(() => {
    const payer = Keypair.generate();
    first = world.payment({ payer, identifier: ID });
    second = world.payment({ payer, identifier: ID });
  });

  /** Sends both payments, the second while the first is held. */
  async function both(
    gate: Gate,
    server: Charge,
    change: Partial<PaidCall> = {},
  ): Promise<[Outcome, Outcome]> {
    const unsold = world.redeem(first, change);
    await gate.reached;
    const answered = server.process(world.call(second));
    await until('it waits', async () => (await world.ledger.find(first.checked.id))?.callers === 2);
    gate.open();
    return Promise.all([unsold, answered]);
  }

  async function expectSoldItself([unsold, answered]: [Outcome, Outcome], kind = 'refused'): Promise<void> {
    expect(unsold.kind).to.equal(kind);
    expect(bodyOf(answered)).to.match(/^\{"summary"/);
    expect(answered).to.have.nested.property('receipt.transaction', SIGNATURE);
    expect(await world.stateOf(second)).to.equal('delivered');
  }

  for (const where of ['at the same server', 'at another server']) {
    const server = (): Charge => (where === 'at the same server' ? world.charge : world.newCharge());

    it(`because its settlement is refused, ${where}`, async () => {
      const gate = new Gate();
      world.facilitator.onSettle = () => {
        const { settles } = world.facilitator;
        if (settles > 1) return { kind: 'settled', signature: SIGNATURE };
        return gate.wait({ kind: 'refused', reason: 'insufficient_funds' });
      };
      await expectSoldItself(await both(gate, server()));
      expect(await world.stateOf(first)).to.equal('released');
      expect(world.facilitator.settles).to.equal(2);
    });

    it(`because its verification is refused, ${where}`, async () => {
      const gate = new Gate();
      world.facilitator.onVerify = () => {
        if (world.facilitator.verifies > 1) return { kind: 'valid' };
        return gate.wait({ kind: 'refused', reason: 'insufficient_funds' });
      };
      await expectSoldItself(await both(gate, server()));
      expect(world.facilitator.settles).to.equal(1);
    });

    it(`because its verification gets no answer, ${where}`, async () => {
      const gate = new Gate();
      world.facilitator.onVerify = () => {
        if (world.facilitator.verifies > 1) return { kind: 'valid' };
        return gate.wait({ kind: 'unavailable', detail: 'status 500' });
      };
      await expectSoldItself(await both(gate, server()), 'unavailable');
      expect(world.facilitator.settles).to.equal(1);
    });

    it(`because its work fails, ${where}`, async () => {
      const gate = new Gate();
      const work = (): Promise<Answer> => gate.wait(failed(502));
      await expectSoldItself(await both(gate, server(), { work }), 'failed');
      expect(world.facilitator.settles).to.equal(1);
    });
  }
});
