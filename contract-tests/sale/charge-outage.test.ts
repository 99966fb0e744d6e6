import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { VerifyResult } from '../../src/rails/rail.js';
import { Facilitators } from '../../src/facilitators/facilitators.js';
import {
  answer,
  asked,
  eachInANewWorld,
  expectPending,
  expectRefused,
  expectUnavailable,
  FakeFacilitator,
  FEE_PAYER,
  TERMS,
  world,
} from '../support/charge-world.js';
import { until } from '../support/faults.js';

const GONE: VerifyResult = { kind: 'unavailable', detail: 'no connection', trouble: { rest: true } };
const OTHER = Keypair.generate().publicKey.toBase58();

describe('charge: a facilitator that is down', () => {
  eachInANewWorld();

  let second: FakeFacilitator;
  let facilitators: Facilitators;

  /** Takes the first facilitator down. `offered`: the fee payer that new challenges name. */
  async function failed(offered: string): Promise<void> {
    second = new FakeFacilitator();
    facilitators = new Facilitators([
      { name: 'first.example/', facilitator: world.facilitator },
      { name: 'second.example/', facilitator: second },
    ]);
    facilitators.learn([
      { hint: FEE_PAYER, by: 'first.example/' },
      { hint: OTHER, by: 'second.example/' },
    ]);
    world.charge = world.newCharge({ facilitator: facilitators });
    world.facilitator.onVerify = () => GONE;
    expectUnavailable(await world.redeem(world.payment()), /can't be reached/);
    await until('it rests', () => facilitators.outage(FEE_PAYER) !== undefined);
    world.hints.setFeePayer(offered);
    world.facilitator.verifies = 0;
  }

  it('if it is known to be down and another one is offered, its payments are not sent to it and get a 402, uncharged, that names the other', async () => {
    await failed(OTHER);
    const payment = world.payment();
    expectRefused(
      await world.redeem(payment),
      /facilitator first\.example\/ can't be reached\. You were not charged; sign a new payment with the fee payer in this challenge/,
      true,
    );
    expect(await world.stateOf(payment)).to.equal(undefined);
    expect(world.facilitator).to.include({ verifies: 0, settles: 0 });
    expect((await world.redeem(world.payment({ feePayer: OTHER }))).kind, 'signed anew').to.equal('sold');
    expect(second).to.include({ verifies: 1, settles: 1 });
    expect(world.facilitator).to.include({ verifies: 0, settles: 0 });
  });

  it('if it is known to be down and there is no other, its payments get a 503, uncharged', async () => {
    await failed(FEE_PAYER);
    expectUnavailable(await world.redeem(world.payment()), /not charged; send the same payment again/);
    expect(world.facilitator).to.include({ verifies: 0, settles: 0 });
  });

  it('if it went down during the work, it is not asked to settle, and no payment is unresolved', async () => {
    const payer = await world.knownPayer();
    facilitators = asked(world.facilitator);
    world.charge = world.newCharge({ facilitator: facilitators });
    world.facilitator.onVerify = () => GONE;
    const payment = world.payment({ payer });
    const outcome = await world.redeem(payment, {
      text: 'another',
      work: async () => {
        await world.redeem(world.payment(), { text: 'a third' });
        await until('it rests', () => facilitators.outage(FEE_PAYER) !== undefined);
        return answer('{}');
      },
    });
    expectUnavailable(outcome, /can't be reached.*not charged/);
    expect(world.facilitator.settles).to.equal(0);
    expect(await world.stateOf(payment)).to.equal('claimed');
  });

  it('a settlement already requested stays unresolved while it is down, and is requested again once it is back', async () => {
    facilitators = asked(world.facilitator);
    world.charge = world.newCharge({
      facilitator: facilitators,
      askAgainAfterMs: 0,
      confirm: async () => true,
    });
    const { onSettle } = world.facilitator;
    world.facilitator.onSettle = () => ({
      kind: 'unknown',
      reason: 'cut off',
      signature: '',
      trouble: { rest: true },
    });
    const payment = world.payment();
    expectPending(await world.redeem(payment));
    await until('it rests', () => facilitators.outage(FEE_PAYER) !== undefined);
    world.facilitator.onSettle = onSettle;
    expectPending(await world.redeem(payment));
    expect(world.facilitator.settles, 'the second ask is kept for later').to.equal(1);
    await until('it answers', async () => {
      await facilitators.probe(TERMS.network);
      return facilitators.outage(FEE_PAYER) === undefined;
    });
    expect((await world.redeem(payment)).kind).to.equal('sold');
    expect(world.facilitator.settles).to.equal(2);
  });
});
