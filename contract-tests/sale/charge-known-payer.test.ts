import type { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import type { Answer, Outcome } from '../../src/sale/outcome.js';
import { OrderWorker } from '../../src/sale/order-worker.js';
import {
  answer,
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectRefused,
  FEE_PAYER,
  Gate,
  operation,
  RECIPE,
  SIGNATURE,
  TERMS,
  world,
} from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { until } from '../support/faults.js';

const SIMULATION_FAILED = 'invalid_exact_svm_transaction_simulation_failed';

describe('charge: for known payers, only settle is requested', () => {
  eachInANewWorld();

  let payer: Keypair;
  let calls = 0;
  beforeEach(async () => {
    payer = await world.knownPayer();
  });

  /** Each call has a different text, so that none redeems another's sale. */
  const buy = (work?: () => Promise<Answer>): Promise<Outcome> =>
    world.redeem(world.payment({ payer }), { text: `text ${++calls}`, ...(work ? { work } : {}) });

  const isKnown = (): Promise<boolean> => world.isKnown(payer);

  it('a call is worked on and then settled, without verify', async () => {
    expect((await buy()).kind).to.equal('sold');
    expect((await buy()).kind).to.equal('sold');
    expect(world.facilitator).to.include({ verifies: 0, settles: 2 });
  });

  it('an order is settled without verify', async () => {
    const brand = operation('brandFeedback');
    const work = { wanted: () => 1, work: async () => ({ kind: 'failed' as const, error: 'nobody.' }) };
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const orders = new OrderWorker({ ledger: world.ledger, work, log, attemptMs: 1_000 });
    world.charge = world.newCharge({ orders, confirm: async () => true });
    const { transaction } = craftPayment({ ...RECIPE, payer, amount: brand.price.atomic });
    const payment = world.checkedPayment(v2Header(requirementsOf(brand, TERMS, FEE_PAYER), transaction));
    const upfront = { request: '{}', ready: async () => undefined };
    await world.redeem(payment, { operation: brand, upfront, holdMs: 1 });
    expect(await world.stateOf(payment)).to.equal('owed');
    expect(world.facilitator).to.include({ verifies: 0, settles: 1 });
  });

  it('if settle refuses, the buyer gets a 402 and is not charged, and from then on verify comes before the work', async () => {
    world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    expectRefused(await buy(), /funds: the payer has too little USDC/, false);
    expect(await isKnown()).to.equal(false);
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    world.runs = 0;
    expectRefused(await buy(), /funds/, true);
    expect(world.runs).to.equal(0);
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('after a settlement of unknown outcome, verify comes first', async () => {
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'duplicate_settlement', signature: '' });
    expectPending(await buy());
    world.facilitator.onSettle = () => ({ kind: 'settled', signature: SIGNATURE });
    expect((await buy()).kind).to.equal('sold');
    expect(world.facilitator.verifies).to.equal(1);
  });

  it('a payer has at most four unverified runs at a time, and further ones are verified', async () => {
    const gate = new Gate();
    const sent = Array.from({ length: 6 }, () => buy(() => gate.wait(answer('{}'))));
    await until('two are verified', () => world.facilitator.verifies === 2);
    gate.open();
    for (const outcome of await Promise.all(sent)) expect(outcome.kind).to.equal('sold');
    expect(world.facilitator.verifies).to.equal(2);
    await buy();
    expect(world.facilitator.verifies, 'they are over').to.equal(2);
  });

  it('a run that has taken more than a second counts double', async () => {
    const gate = new Gate();
    const slow = [1, 2].map(() => buy(() => gate.wait(answer('{}'))));
    await gate.reached;
    world.now += 1_100;
    expect((await buy()).kind).to.equal('sold');
    expect(world.facilitator.verifies, 'two long ones fill it').to.equal(1);
    gate.open();
    await Promise.all(slow);
  });

  it('a run counts until settle has answered, not only while the work is being done', async () => {
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const sent = Array.from({ length: 4 }, () => buy());
    await until('four are being settled', () => world.facilitator.settles === 4);
    const fifth = buy();
    await until('the fifth is verified', () => world.facilitator.verifies === 1);
    gate.open();
    await Promise.all([...sent, fifth]);
  });

  it('after a failure of the facilitator, verify comes first until the facilitator has answered for a payment', async () => {
    await world.troubleAtVerify();
    expect((await buy()).kind).to.equal('sold');
    expect(world.facilitator.verifies).to.equal(1);
    expect((await buy()).kind).to.equal('sold');
    expect(world.facilitator.verifies).to.equal(1);
  });

  it('after a failure of the facilitator, no work begins before verify has answered', async () => {
    await world.troubleAtVerify();
    const gate = new Gate();
    world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
    world.runs = 0;
    const bought = buy();
    await gate.reached;
    expect(world.runs).to.equal(0);
    gate.open();
    expect((await bought).kind).to.equal('sold');
    expect(world.runs).to.equal(1);
  });

  it('a payment that may redeem an equal sale is verified, because it would never be settled', async () => {
    const text = 'the same text';
    const first = await world.redeem(world.payment({ payer }), { text });
    if (!('sale' in first)) throw new Error(first.kind);
    await first.sale.lost();
    expect(world.facilitator.verifies).to.equal(0);
    expect(bodyOf(await world.redeem(world.payment({ payer }), { text }))).to.equal(bodyOf(first));
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('a second run of a payment is verified', async () => {
    const payment = world.payment({ payer });
    const failed = (): Promise<Answer> => Promise.reject(new Error('no'));
    expect(await world.redeem(payment, { text: 'again', work: failed })).to.have.nested.property(
      'answer.status',
      502,
    );
    expect(world.facilitator.verifies).to.equal(0);
    expect((await world.redeem(payment, { text: 'again' })).kind).to.equal('sold');
    expect(world.facilitator.verifies).to.equal(1);
  });

  describe('with an empty wallet, so that the simulation in settle fails', () => {
    beforeEach(() => {
      world.facilitator.onSettle = () => ({
        kind: 'refused',
        reason: SIMULATION_FAILED,
        mayHaveLanded: true,
      });
    });

    it('the buyer gets a 402 at once, uncharged, if the chain does not show the transfer', async () => {
      const outcome = await buy();
      expectRefused(outcome, /would fail on chain.*too little USDC/, false);
      expect(outcome).to.have.nested.property('receipt.errorReason', SIMULATION_FAILED);
      expect(await world.ledger.list({ state: 'released' })).to.have.length(1);
      expect(await isKnown()).to.equal(false);
    });

    it('the buyer gets the answer if the transfer has landed and only a repeated request failed', async () => {
      world.charge = world.newCharge({
        findDenied: async () => ({ kind: 'found', signature: SIGNATURE, failed: false }),
      });
      const outcome = await buy();
      expect(bodyOf(outcome)).to.equal('{"summary":"run 1"}');
      expect(outcome).to.have.nested.property('receipt.transaction', SIGNATURE);
    });

    const doubts: [string, Parameters<typeof world.newCharge>[0]][] = [
      ["can't be read", { findDenied: () => Promise.reject(new Error('no RPC server answers')) }],
      ['does not say', { findDenied: async () => ({ kind: 'unclear' }) }],
      [
        'shows a failed transfer that is not final yet',
        { findDenied: async () => ({ kind: 'found', signature: SIGNATURE, failed: true }) },
      ],
    ];
    for (const [name, change] of doubts) {
      it(`the buyer gets a 503, and the payment stays unresolved, if the chain ${name}`, async () => {
        world.charge = world.newCharge(change);
        expectPending(await buy());
        expect(await world.ledger.list({ state: 'settling' })).to.have.length(1);
      });
    }
  });
});
