import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Payment } from '../../src/sale/check-payment.js';
import type { Outcome } from '../../src/sale/outcome.js';
import { pickUp } from '../../src/sale/pick-up.js';
import { bodyOf, eachInANewWorld, ID, SIGNATURE, world } from '../support/charge-world.js';
import { aRefund, paymentIn } from '../support/ledger-places.js';

/** Makes a payment owed, as after a failed call, and refunds it as the operator does. */
async function refund(payment: Payment): Promise<void> {
  const { operation, requestHash } = world.call(payment);
  const { id, payer } = payment.checked;
  const { identifier } = payment;
  const owed = { id, payer, requestHash, identifier, operation: operation.id, flow: operation.flow };
  await paymentIn(world.ledger, 'owed', { ...owed, settlement: SIGNATURE });
  expect(await world.ledger.refund(id, aRefund({ signature: 'its refund' }))).to.equal('refunded');
}

const receiptOf = (outcome: Outcome): object | undefined => outcome.receipt;

describe('charge: a payment that the operator refunded', () => {
  eachInANewWorld();

  it('has a receipt that reports the refund in a form that programs can read, and no link to an answer', async () => {
    const payment = world.payment();
    await refund(payment);
    const outcome = await world.redeem(payment);
    expect(outcome).to.have.nested.property('answer.status', 502);
    expect(bodyOf(outcome)).to.include('This payment was refunded (transaction its refund): sign a new one');
    const receipt = {
      success: false,
      errorReason: 'refunded',
      transaction: SIGNATURE,
      payer: payment.checked.payer,
      refunded: { amount: '500000', transaction: 'its refund' },
    };
    expect(receiptOf(outcome)).to.deep.equal(receipt);
    expect(outcome).not.to.have.property('kept');
    const { ledger, offers } = world;
    const callers = { fetching: () => undefined };
    const answers = { get: () => Promise.reject(new Error('nothing is kept')) };
    const picked = await pickUp({ ledger, offers, answers, callers } as never, {
      id: payment.checked.id,
      number: 1,
    });
    expect(picked).to.have.nested.property('outcome.receipt.errorReason', 'refunded');
  });

  it('keeps its answer if it was delivered, and the receipt says what was refunded', async () => {
    const payment = world.payment();
    const first = await world.redeem(payment);
    expect(receiptOf(first)).not.to.have.property('refunded');
    await world.ledger.refund(payment.checked.id, aRefund({ signature: 'a part', amount: 7n }));
    const again = await world.redeem(payment);
    expect(bodyOf(again)).to.equal(bodyOf(first));
    expect(receiptOf(again)).to.deep.include({ refunded: { amount: '7', transaction: 'a part' } });
  });

  it('is not worked on while all of it is being refunded, and the answer reports this', async () => {
    const payment = world.payment();
    const { operation, requestHash } = world.call(payment);
    const { id, payer } = payment.checked;
    const owed = { id, payer, requestHash, operation: operation.id, flow: operation.flow, amount: 500_000n };
    await paymentIn(world.ledger, 'owed', { ...owed, settlement: SIGNATURE });
    const back = { payment: id, amount: 500_000n, way: 'wallet', after: 1 } as const;
    expect((await world.ledger.startRepayment(back)).kind).to.equal('started');
    const outcome = await world.redeem(payment);
    expect(outcome.kind).to.equal('unavailable');
    expect(outcome).to.have.property('error').that.includes('the money is being sent back');
    expect(receiptOf(outcome)).to.include({ success: true, transaction: SIGNATURE });
    const callers = { fetching: () => undefined };
    const picked = await pickUp({ ledger: world.ledger, callers } as never, { id, number: 1 });
    expect(picked).to.have.nested.property('outcome.error').that.includes('the money is being sent back');
  });

  it('frees its payment-identifier, so that new signatures with it make one new sale', async () => {
    const payer = Keypair.generate();
    await refund(world.payment({ payer, identifier: ID }));
    const bought = await world.redeem(world.payment({ payer, identifier: ID }));
    expect(bodyOf(bought)).to.equal('{"summary":"run 1"}');
    const again = await world.redeem(world.payment({ payer, identifier: ID }));
    expect(bodyOf(again)).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('does not prevent a new sale of the same call if it had no identifier', async () => {
    const payer = Keypair.generate();
    await refund(world.payment({ payer }));
    expect(bodyOf(await world.redeem(world.payment({ payer })))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });
});
