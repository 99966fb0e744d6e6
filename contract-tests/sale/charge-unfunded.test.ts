import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Payment } from '../../src/sale/check-payment.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import type { Answer } from '../../src/sale/outcome.js';
import {
  answer,
  eachInANewWorld,
  expectRefused,
  expectUnavailable,
  faulty,
  FEE_PAYER,
  Gate,
  RECIPE,
  SUMMARIZE,
  TERMS,
  world,
} from '../support/charge-world.js';
import { commitsOf } from '../support/commits.js';
import { craftPayment, v2Header } from '../support/craft.js';

describe('charge: promise 8, no work is run for money that does not exist', () => {
  eachInANewWorld();

  it('an unknown payer is verified first', async () => {
    const payer = await world.knownPayer();
    const gate = new Gate();
    world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
    const outcome = world.redeem(world.payment());
    await gate.reached;
    // If the work did not wait for verify, it would have begun before this other sale, which needs no verify, had ended.
    expect((await world.redeem(world.payment({ payer }))).kind).to.equal('sold');
    expect(world.runs).to.equal(1);
    gate.open();
    expect((await outcome).kind).to.equal('sold');
    expect(world.runs).to.equal(2);
  });

  it('payments that verify refuses one after the other cost the ledger two commits each, and leave nothing behind', async () => {
    const commits = (): number => commitsOf(`${world.folder}/ledger.db`);
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    await world.redeem(world.payment());
    const before = commits();
    const payments = Array.from({ length: 20 }, () => world.payment());
    for (const payment of payments) {
      expectRefused(await world.redeem(payment), /funds/, true);
      expect(await world.stateOf(payment)).to.equal(undefined);
    }
    expect(commits() - before).to.equal(2 * payments.length);
    expect(world.logged).to.deep.equal([]);
  });

  it('a wallet that was refused a call forty times can buy it as soon as it has money', async () => {
    const payer = Keypair.generate();
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    for (let time = 0; time < 40; time++)
      expectRefused(await world.redeem(world.payment({ payer })), /funds/, true);
    world.facilitator.onVerify = () => ({ kind: 'valid' });
    expect((await world.redeem(world.payment({ payer }))).kind).to.equal('sold');
  });

  it("a refusal whose row can't be deleted is still a refusal, and the row is free once its lease has ended", async () => {
    world.charge = world.newCharge({ ledger: faulty('deleteClaim') });
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    const payment = world.payment();
    expectRefused(await world.redeem(payment), /funds/, true);
    expect(world.logged).to.deep.equal(['could not delete a refused claim; its lease will expire']);
    expect(await world.ledger.find(payment.checked.id)).to.include({ leased: true, attended: false });
    world.now += 91_000;
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2_000, height: 1_100 });
    world.facilitator.onVerify = () => ({ kind: 'valid' });
    expect((await world.redeem(payment)).kind).to.equal('sold');
  });

  it('a known payer with many unverified runs is verified while the work runs, and the work is stopped if verify refuses', async () => {
    const payer = await world.knownPayer();
    const endOthers = await world.unverifiedRuns(payer);
    const [verifying, working] = [new Gate(), new Gate()];
    world.facilitator.onVerify = () => verifying.wait({ kind: 'refused', reason: 'no' });
    let signal: AbortSignal | undefined;
    const outcome = world.redeem(world.payment({ payer }), {
      work: given => {
        signal = given;
        return working.wait(answer('{}'));
      },
    });
    await Promise.all([verifying.reached, working.reached]);
    verifying.open();
    expectRefused(await outcome, /refused by the facilitator: no/, true);
    expect(signal?.aborted).to.equal(true);
    working.open();
    expect(world.facilitator.settles).to.equal(0);
    await endOthers();
  });

  it('a payer that was refused counts as unknown again', async () => {
    const payer = await world.knownPayer();
    await world.troubleAtVerify();
    world.facilitator.onVerify = () => ({ kind: 'refused', reason: 'no' });
    await world.redeem(world.payment({ payer }));
    world.runs = 0;
    await world.redeem(world.payment({ payer }));
    expect(world.runs).to.equal(0);
  });

  it('when there are too many unknown payers, the next gets a 503 without a facilitator call, and its payment stays untouched; known payers are not delayed', async () => {
    const payer = await world.knownPayer();
    world.charge = world.newCharge({ unknownPayers: { rate: 0, burst: 2 } });
    for (let n = 0; n < 2; n++) expect((await world.redeem(world.payment())).kind).to.equal('sold');
    const payment = world.payment();
    expectUnavailable(await world.redeem(payment), /Too many new payers/);
    expect(world.facilitator.verifies).to.equal(2);
    expect(await world.stateOf(payment)).to.equal(undefined);
    expect((await world.redeem(world.payment({ payer }))).kind).to.equal('sold');
  });

  it('a new payer whose blockhash expires before the work would be done gets a 402 without work, is not charged, and leaves its row free', async () => {
    const known = await world.knownPayer();
    world.charge = world.newCharge({ blocksLeft: async () => 49 });
    const payer = Keypair.generate();
    const payment = world.payment({ payer });
    expectRefused(
      await world.redeem(payment),
      /^the blockhash would expire before the work is done\. You were not charged; sign again/,
      true,
    );
    expect(world.runs).to.equal(0);
    expect(world.facilitator.settles).to.equal(0);
    const row = await world.ledger.find(payment.checked.id);
    expect(row).to.include({ state: 'claimed', runs: 0, leased: false, attended: false });
    expect((await world.redeem(world.payment({ payer: known }), { text: 'b' })).kind).to.equal('sold');
    const began = performance.now();
    world.charge = world.newCharge({ blocksLeft: async () => 50 });
    expect((await world.redeem(world.payment({ payer }))).kind, 'signed anew').to.equal('sold');
    expect(performance.now() - began).to.be.lessThan(1_000);
    expect((await world.ledger.find(payment.checked.id))?.aliasOf, 'a late copy').to.not.equal(null);
    world.charge = world.newCharge({ blocksLeft: async () => undefined });
    expect((await world.redeem(world.payment())).kind, 'age unknown').to.equal('sold');
  });

  it('the number of a payer’s unsettled payments is limited', async () => {
    world.charge = world.newCharge({ maxUnsettledPerPayer: 3 });
    const payer = Keypair.generate();
    const gate = new Gate();
    const work = (): Promise<Answer> => gate.wait(answer('{}'));
    const outcomes = Array.from({ length: 5 }, () => world.redeem(world.payment({ payer }), { work }));
    const other = await world.redeem(world.payment());
    expect(other.kind).to.equal('sold');
    gate.open();
    const kinds = (await Promise.all(outcomes)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'sold')).to.have.length(3);
    const late = world.payment({ payer });
    expect((await world.redeem(late)).kind, 'room again').to.equal('sold');
  });

  it('the total amount of a payer’s unsettled payments is limited', async () => {
    const dear = { ...SUMMARIZE, price: { ...SUMMARIZE.price, atomic: 60_000_000n } };
    const payer = Keypair.generate();
    const gate = new Gate();
    const payment = (): Payment =>
      world.checkedPayment(
        v2Header(
          requirementsOf(dear, TERMS, FEE_PAYER),
          craftPayment({ ...RECIPE, payer, amount: 60_000_000n }).transaction,
        ),
      );
    const first = world.redeem(payment(), { operation: dear, work: () => gate.wait(answer('{}')) });
    await gate.reached;
    const second = payment();
    expectUnavailable(
      await world.redeem(second, { operation: dear }),
      /Too much money in unsettled payments/,
    );
    expect(await world.stateOf(second)).to.equal(undefined);
    gate.open();
    expect((await first).kind).to.equal('sold');
  });
});
