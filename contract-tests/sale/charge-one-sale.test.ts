import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Answer, Outcome } from '../../src/sale/outcome.js';
import {
  ACCEPTED,
  answer,
  asSent,
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectRefused,
  FEE_PAYER,
  Gate,
  ID,
  MINT_INFO,
  MINUTE,
  RECIPE,
  SIGNATURE,
  world,
} from '../support/charge-world.js';
import { craftPayment, DEVNET, DEVNET_V1, v1Header, v2Header, withIdentifier } from '../support/craft.js';

describe('charge: promise 1, one payment buys one answer', () => {
  eachInANewWorld();

  it('200 copies at once, as v1 and v2, with garbage in the fee payer’s slot, cause one run and one settlement, and get equal answers', async () => {
    const crafted = craftPayment(RECIPE);
    const copies = Array.from({ length: 200 }, (_, n) => {
      const bytes = Buffer.from(crafted.bytes);
      bytes.fill(n, 1, 65);
      const transaction = bytes.toString('base64');
      return world.checkedPayment(n % 2 ? v1Header(DEVNET_V1, transaction) : v2Header(ACCEPTED, transaction));
    });
    const outcomes = await Promise.all(copies.map(copy => world.redeem(copy)));
    expect(world.runs).to.equal(1);
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
    expect(new Set(outcomes.map(bodyOf))).to.deep.equal(new Set(['{"summary":"run 1"}']));
    outcomes.forEach((outcome, n) => {
      const { receipt } = outcome as Outcome & { kind: 'sold' };
      expect(receipt).to.deep.equal({
        success: true,
        payer: crafted.payer.publicKey.toBase58(),
        transaction: SIGNATURE,
        amount: '10000',
      });
      expect(copies[n]?.method.receiptMeta(receipt, { sold: true })['x402/payment-response']).to.deep.equal({
        ...receipt,
        network: n % 2 ? DEVNET_V1 : DEVNET,
      });
    });
  });

  it('two servers on one ledger run the work once and settle once', async () => {
    const other = world.newCharge();
    const payment = world.payment();
    const outcomes = await Promise.all([world.redeem(payment), other.process(world.call(payment))]);
    expect(world.runs).to.equal(1);
    expect(world.facilitator.settles).to.equal(1);
    expect(outcomes.map(bodyOf)).to.deep.equal(['{"summary":"run 1"}', '{"summary":"run 1"}']);
  });

  it('a payment sent for another body or operation during its run is refused, and the run is not disturbed', async () => {
    const gate = new Gate();
    const payment = world.payment();
    const first = world.redeem(payment, { work: () => gate.wait(answer('{"summary":"slow"}')) });
    await gate.reached;
    expectRefused(await world.redeem(payment, { text: 'another' }), /with another body/, false);
    expectRefused(await world.redeem(payment, { operation: MINT_INFO }), /of summarize/, false);
    gate.open();
    expect(bodyOf(await first)).to.equal('{"summary":"slow"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('at most 512 callers wait for one run', async () => {
    const gate = new Gate();
    const payment = world.payment();
    const work = (): Promise<Answer> => gate.wait(answer('{}'));
    const calls = Array.from({ length: 520 }, () => world.redeem(payment, { work }));
    await gate.reached;
    gate.open();
    const kinds = (await Promise.all(calls)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'sold')).to.have.length(512);
    expect(kinds.filter(kind => kind === 'unavailable')).to.have.length(8);
  });
});

describe('charge: promise 3, the same payment again gets the same answer', () => {
  eachInANewWorld();

  const bytes = Buffer.from([0, 255, 1, 254, 13, 10, 0]);

  it('the answer is returned byte for byte and uncharged for 10 minutes, after which it is no longer kept', async () => {
    const payment = world.payment();
    const work = async (): Promise<Answer> => answer(bytes);
    const first = await world.redeem(payment, { work });
    world.now += 10 * MINUTE - 5_000;
    const again = await world.redeem(payment, { work });
    expect(asSent(again)).to.deep.equal(asSent(first));
    expect((again as Outcome & { kind: 'sold' }).answer.body.equals(bytes)).to.equal(true);
    world.now += 5_001;
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(payment), /no longer kept/, false);
    await world.ledger.prune();
    expectRefused(await world.redeem(payment), /no longer kept/, false);
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('the answer is saved before the facilitator is asked to settle', async () => {
    const payment = world.payment();
    let atSettle: unknown;
    world.facilitator.onSettle = async () => {
      atSettle = [
        await world.stateOf(payment),
        (await world.ledger.answer(payment.checked.id))?.body.toString(),
      ];
      return { kind: 'settled', signature: SIGNATURE };
    };
    await world.redeem(payment);
    expect(atSettle).to.deep.equal(['settling', '{"summary":"run 1"}']);
  });

  it('the answer is returned after a restart, too, even to a v1 copy of a v2 payment', async () => {
    const { transaction } = craftPayment(RECIPE);
    const first = await world.redeem(world.checkedPayment(v2Header(ACCEPTED, transaction)));
    await world.restart();
    const asV1 = world.checkedPayment(v1Header(DEVNET_V1, transaction));
    expect(asV1.method.name).to.equal('x402-v1');
    expect(bodyOf(await world.redeem(asV1))).to.equal(bodyOf(first));
  });

  it('an answer of less than 256 KB is kept for 24 hours if the payment has a payment-identifier', async () => {
    const small = world.payment({ identifier: ID });
    const large = world.payment({ identifier: `${ID}2` });
    await world.redeem(small);
    await world.redeem(large, { work: async () => answer(Buffer.alloc(256 * 1024)) });
    world.now += 24 * 60 * MINUTE - 5_000;
    expect(bodyOf(await world.redeem(small))).to.equal('{"summary":"run 1"}');
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(large), /no longer kept/, false);
    world.now += 5_001;
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    expectRefused(await world.redeem(small), /no longer kept/, false);
  });

  it('the payment is refused with another body or operation, without a fresh blockhash', async () => {
    const payment = world.payment();
    await world.redeem(payment);
    expectRefused(await world.redeem(payment, { text: 'another' }), /with another body/, false);
    expectRefused(
      await world.redeem(payment, { operation: MINT_INFO }),
      /of summarize: sign a new one/,
      false,
    );
    expect(world.runs).to.equal(1);
  });
});

describe('charge: promise 11, payment-identifier', () => {
  eachInANewWorld();

  it('the same id, call and payer with a new signature get the stored answer, uncharged', async () => {
    const payer = Keypair.generate();
    const first = await world.redeem(world.payment({ payer, identifier: ID }));
    const again = await world.redeem(world.payment({ payer, identifier: ID }));
    expect(asSent(again)).to.deep.equal(asSent(first));
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('the same id with another body gets a 400, uncharged', async () => {
    const payer = Keypair.generate();
    await world.redeem(world.payment({ payer, identifier: ID }));
    const outcome = await world.redeem(world.payment({ payer, identifier: ID }), { text: 'another' });
    expect(outcome).to.include({ kind: 'invalid' });
    expect(world.facilitator.settles).to.equal(1);
  });

  it('the same id waits while the first call is being worked on, and gets a 503 with a receipt while the settlement is unresolved', async () => {
    const payer = Keypair.generate();
    const gate = new Gate();
    const first = world.redeem(world.payment({ payer, identifier: ID }), {
      work: () => gate.wait(answer('{}')),
    });
    await gate.reached;
    const second = world.redeem(world.payment({ payer, identifier: ID }));
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    gate.open();
    expectPending(await first);
    expectPending(await second);
    expectPending(await world.redeem(world.payment({ payer, identifier: ID })));
    expect(world.facilitator.settles).to.equal(1);
  });

  it('the same id whose answer is no longer kept gets an error that asks for a new id, uncharged', async () => {
    const payer = Keypair.generate();
    await world.redeem(world.payment({ payer, identifier: ID }));
    world.now += 25 * 60 * MINUTE;
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2000, height: 1900 });
    const outcome = await world.redeem(world.payment({ payer, identifier: ID }));
    expect(outcome).to.include({ kind: 'invalid' });
    expect(outcome)
      .to.have.property('error')
      .match(/no longer kept.*new id/);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('two payers who use the same id make two sales', async () => {
    await world.redeem(world.payment({ identifier: ID }));
    expect(bodyOf(await world.redeem(world.payment({ identifier: ID })))).to.equal('{"summary":"run 2"}');
    expect(world.facilitator.settles).to.equal(2);
  });

  it('another id is always a new sale', async () => {
    const payer = Keypair.generate();
    await world.redeem(world.payment({ payer, identifier: ID }));
    await world.redeem(world.payment({ payer, identifier: `${ID}2` }));
    expect(world.facilitator.settles).to.equal(2);
  });

  it('a payment with an id is redeemed only with that same id, during its run and after', async () => {
    const { transaction } = craftPayment(RECIPE);
    const withId = world.checkedPayment(v2Header(ACCEPTED, transaction, withIdentifier(ID)));
    const thieves = [
      world.checkedPayment(v2Header(ACCEPTED, transaction)),
      world.checkedPayment(v1Header(DEVNET_V1, transaction)),
      world.checkedPayment(v2Header(ACCEPTED, transaction, withIdentifier(`${ID}2`))),
    ];
    const gate = new Gate();
    const first = world.redeem(withId, { work: () => gate.wait(answer('{}')) });
    await gate.reached;
    for (const thief of thieves) expectRefused(await world.redeem(thief), /only with that same id/, false);
    gate.open();
    await first;
    for (const thief of thieves) expectRefused(await world.redeem(thief), /only with that same id/, false);
    expect((await world.redeem(withId)).kind).to.equal('sold');
  });

  it('a stranger who sends the payment without its id does not get the key of the answer', async () => {
    const { transaction } = craftPayment(RECIPE);
    const withId = world.checkedPayment(v2Header(ACCEPTED, transaction, withIdentifier(ID)));
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    expect(await world.redeem(withId)).to.have.deep.property('kept', { id: withId.checked.id, number: 1 });
    const stranger = world.checkedPayment(v2Header(ACCEPTED, transaction));
    const sentAway = await world.charge.turnAway(stranger, 'The server is busy', 1);
    expectPending(sentAway);
    expect(sentAway).not.to.have.property('kept');
  });
});
