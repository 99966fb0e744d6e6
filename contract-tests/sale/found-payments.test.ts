import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Payment } from '../../src/sale/check-payment.js';
import {
  bodyOf,
  eachInANewWorld,
  ID,
  MINT_INFO,
  SIGNATURE,
  SUMMARIZE,
  TERMS,
  world,
} from '../support/charge-world.js';

describe('charge: a payment that the ledger had lost and that was found on the chain', () => {
  eachInANewWorld();

  const find = async ({ checked }: Payment, amount = SUMMARIZE.price.atomic): Promise<void> => {
    const { id, payer, evidence } = checked;
    const { network, payTo } = TERMS;
    const transfer = { settlement: SIGNATURE, slot: 900, paidAt: world.now - 60_000 };
    expect(await world.ledger.takeIn({ id, payer, evidence, amount, network, payTo, ...transfer })).to.equal(
      'taken',
    );
  };

  it('buys the call with which it is sent again, without a second charge, and that call only', async () => {
    const payment = world.payment();
    await find(payment);
    const first = await world.redeem(payment, { text: 'what I paid for' });
    expect(first.kind).to.equal('sold');
    expect(first.receipt).to.include({ success: true, transaction: SIGNATURE });
    expect(bodyOf(await world.redeem(payment, { text: 'what I paid for' }))).to.equal(bodyOf(first));
    const other = await world.redeem(payment, { text: 'something else' });
    expect(other.kind).to.equal('refused');
    expect(world.facilitator).to.include({ settles: 0, verifies: 0 });
    expect(world.runs).to.equal(1);
  });

  it('buys only one of several concurrent calls that contain it', async () => {
    const payment = world.payment();
    await find(payment);
    const outcomes = await Promise.all(['a', 'b', 'c'].map(text => world.redeem(payment, { text })));
    expect(outcomes.map(({ kind }) => kind).toSorted()).to.deep.equal(['refused', 'refused', 'sold']);
    expect(world.runs).to.equal(1);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('buys nothing that costs more, and stays owed', async () => {
    const payment = world.payment();
    await find(payment, SUMMARIZE.price.atomic - 1n);
    const refused = await world.redeem(payment);
    expect(refused).to.include({ kind: 'refused' });
    expect(refused).to.have.property('error').that.includes('cheaper call');
    expect(await world.ledger.find(payment.checked.id)).to.include({
      state: 'owed',
      operation: '(found on chain)',
    });
    expect(world.runs).to.equal(0);
  });

  it('is redeemed only with the payment-identifier with which it was sent', async () => {
    const payer = Keypair.generate();
    const payment = world.payment({ payer, identifier: ID });
    await find(payment);
    expect((await world.redeem(payment)).kind).to.equal('sold');
    expect((await world.redeem({ ...payment, identifier: null })).kind).to.equal('refused');
    expect((await world.redeem(world.payment({ payer, identifier: ID }))).kind, 'a new signature').to.equal(
      'sold',
    );
    expect(world.facilitator.settles).to.equal(0);
  });

  it('buys nothing once it has been refunded', async () => {
    const payment = world.payment();
    await find(payment);
    const back = { signature: 'back', amount: SUMMARIZE.price.atomic, slot: 950, refundedAt: world.now };
    expect(await world.ledger.refund(payment.checked.id, back)).to.equal('refunded');
    expect(await world.redeem(payment)).to.have.nested.property('receipt.errorReason', 'refunded');
    expect(world.runs).to.equal(0);
  });

  it('may also buy an operation with another price, if the amount is enough', async () => {
    const payment = world.payment();
    await find(
      payment,
      MINT_INFO.price.atomic > SUMMARIZE.price.atomic ? MINT_INFO.price.atomic : SUMMARIZE.price.atomic,
    );
    expect((await world.redeem(payment, { operation: MINT_INFO })).kind).to.equal('sold');
  });
});
