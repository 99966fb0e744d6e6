import { expect } from 'chai';
import type { VerifyResult } from '../../src/rails/rail.js';
import type { Answer } from '../../src/sale/outcome.js';
import {
  bodyOf,
  eachInANewWorld,
  expectRefused,
  expectUnavailable,
  failed,
  world,
} from '../support/charge-world.js';

describe('charge: promise 2, a refused, invalid or failed call is never charged', () => {
  eachInANewWorld();

  for (const status of [400, 502, 503] as const) {
    it(`work that ends with ${status} is not settled, and the same payment can run again`, async () => {
      const payment = world.payment();
      const outcome = await world.redeem(payment, { work: async () => failed(status) });
      expect(outcome).to.have.nested.property('answer.status', status);
      expect(outcome).to.not.have.property('receipt');
      expect(world.facilitator.settles).to.equal(0);
      expect(bodyOf(await world.redeem(payment))).to.equal('{"summary":"run 1"}');
      expect(world.facilitator.settles).to.equal(1);
    });
  }

  it('after a failed run the payment may buy another call', async () => {
    const payment = world.payment();
    await world.redeem(payment, { work: async () => failed(502) });
    expect(bodyOf(await world.redeem(payment, { text: 'another' }))).to.equal('{"summary":"run 1"}');
  });

  it('a payment gets at most three runs of its work, and then a new one must be signed', async () => {
    const payment = world.payment();
    let runs = 0;
    const work = async (): Promise<Answer> => {
      runs += 1;
      return failed(502);
    };
    for (let run = 0; run < 3; run++) await world.redeem(payment, { work });
    expectRefused(await world.redeem(payment, { work }), /failed 3 times\. You were not charged/, false);
    expect(runs).to.equal(3);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('work that ignores its signal ends as a 502 at the deadline, and is not settled', async () => {
    world.charge = world.newCharge({ workDeadlineMs: 50 });
    let signal: AbortSignal | undefined;
    const outcome = await world.redeem(world.payment(), {
      work: given => {
        signal = given;
        return new Promise<Answer>(() => {});
      },
    });
    expect(outcome).to.have.nested.property('answer.status', 502);
    expect(bodyOf(outcome)).to.match(/took longer than 0.05 s. You were not charged/);
    expect(signal?.aborted).to.equal(true);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('the time that a slow verify takes does not shorten the time for the work', async () => {
    world.charge = world.newCharge({ workDeadlineMs: 150 });
    world.facilitator.onVerify = async () => {
      await new Promise(resolve => setTimeout(resolve, 250));
      return { kind: 'valid' };
    };
    expect(bodyOf(await world.redeem(world.payment()))).to.equal('{"summary":"run 1"}');
  });

  it('work that throws, which its interface forbids, ends as a 502 and is not settled, even for known payers', async () => {
    const payer = await world.knownPayer();
    for (const payment of [world.payment(), world.payment({ payer })]) {
      const outcome = await world.redeem(payment, { work: () => Promise.reject(new Error('bug')) });
      expect(outcome).to.have.nested.property('answer.status', 502);
    }
    await world.troubleAtVerify();
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    const work = (): Promise<Answer> => Promise.reject(new Error('nobody looks at this'));
    expect((await world.redeem(world.payment({ payer }), { work })).kind).to.equal('refused');
    expect(world.facilitator.settles).to.equal(0);
  });

  it('a payment that verify refuses gets a 402, leaves no row, and can be tried again', async () => {
    const payment = world.payment();
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    expectRefused(await world.redeem(payment), /funds: the payer has too little USDC/, true);
    expect(await world.stateOf(payment)).to.equal(undefined);
    expect(world.runs).to.equal(0);
    world.facilitator.onVerify = () => ({ kind: 'valid' });
    expect((await world.redeem(payment)).kind).to.equal('sold');
  });

  for (const [name, onVerify] of Object.entries({
    unreachable: (): VerifyResult => ({ kind: 'unavailable', detail: 'down' }),
    'broken, so that it throws': (): VerifyResult => {
      throw new Error('bug');
    },
  })) {
    it(`if the facilitator is ${name} at verify, the payment gets a 503 and stays untouched however often it is sent, from a known payer or not`, async () => {
      const payer = await world.knownPayer();
      await world.troubleAtVerify();
      const payments = [world.payment(), world.payment({ payer })];
      world.facilitator.onVerify = onVerify;
      for (let time = 0; time < 5; time++) {
        for (const payment of payments) expectUnavailable(await world.redeem(payment), /not charged/);
      }
      expect(world.runs).to.be.at.most(1);
      expect(world.facilitator.verifies, 'it rests after a few').to.be.at.most(3);
      world.charge = world.newCharge();
      world.facilitator.onVerify = () => ({ kind: 'valid' });
      for (const payment of payments) expect((await world.redeem(payment)).kind).to.equal('sold');
      expect(world.facilitator.settles).to.equal(2);
    });
  }
});
