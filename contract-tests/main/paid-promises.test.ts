import { expect } from 'chai';
import { runHandler, type HandlerParts } from '../../src/http/run-handler.js';
import type { Payment } from '../../src/sale/check-payment.js';
import { requirementsOf } from '../../src/methods/x402/requirements.js';
import { OrderWorker } from '../../src/sale/order-worker.js';
import type { Answer, Outcome } from '../../src/sale/outcome.js';
import { Routes } from '../../src/contract/routes.js';
import {
  bodyOf,
  eachInANewWorld,
  expectPending,
  failed,
  FEE_PAYER,
  MINUTE,
  operation,
  RECIPE,
  SIGNATURE,
  SUMMARIZE,
  TERMS,
  world,
} from '../support/charge-world.js';
import { craftPayment, v2Header } from '../support/craft.js';
import { RELEASED } from '../support/sold.js';

const silent = { info: () => {}, warn: () => {}, error: () => {} };
const BRAND = operation('brandFeedback');

describe('an answer that violates the contract is never settled', () => {
  eachInANewWorld();

  for (const [name, reply] of Object.entries({
    'a body without what is required': { status: 200, body: { summry: 'misspelt' } },
    'a header that can not be sent': { status: 200, body: { summary: 's' }, headers: { 'X-Note': 'a\nb' } },
    'an undeclared status': { status: 201, body: { summary: 's' } },
  })) {
    it(`${name}: 502, not charged, even for a known payer`, async () => {
      const routes = await Routes.create(RELEASED);
      const handlers = { summarize: { call: async () => reply } } as unknown as HandlerParts['handlers'];
      routes.register(handlers);
      const work = (signal: AbortSignal): Promise<Answer> =>
        runHandler({ handlers, routes, log: silent }, SUMMARIZE.id, {
          params: {},
          query: {},
          body: {},
          signal,
          caller: 'c',
        });
      const payer = await world.knownPayer();
      for (const payment of [world.payment(), world.payment({ payer })]) {
        const outcome = await world.redeem(payment, { work });
        expect(outcome).to.have.nested.property('answer.status', 502);
        expect(outcome).to.not.have.property('receipt');
        expect(bodyOf(outcome)).to.match(/unusable answer\. You were not charged/);
      }
      expect(world.facilitator.settles).to.equal(0);
    });
  }
});

describe('what is paid and owed stays owed until there is an answer', () => {
  eachInANewWorld();

  async function owed(): Promise<Payment> {
    const payment = world.payment();
    const { id } = payment.checked;
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    expectPending(await world.redeem(payment));
    const row = await world.ledger.adopt(id, MINUTE);
    if (!row) throw new Error('somebody works on it');
    await world.ledger.owe(id, row.claim, { settlement: SIGNATURE, foundOnChain: true });
    await world.ledger.extendLease(id, row.claim, 0);
    return payment;
  }

  it('work that is repeated and fails delivers nothing: the answer is a 502 with the receipt, and the next try is answered', async () => {
    const payment = await owed();
    const outcome = await world.redeem(payment, { work: async () => failed(502) });
    expect(outcome).to.have.nested.property('answer.status', 502);
    expect(outcome).to.have.nested.property('receipt.success', true);
    expect(bodyOf(outcome)).to.match(/paid and stays owed/);
    expect(await world.stateOf(payment)).to.equal('owed');
    expect(bodyOf(await world.redeem(payment))).to.equal('{"summary":"run 2"}');
    expect(await world.stateOf(payment)).to.equal('delivered');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('work that is repeated and fails is limited: between attempts the answer is a 503 with Retry-After, and in the end the buyer gets its answer', async () => {
    const payment = await owed();
    let attempts = 0;
    const work = async (): Promise<Answer> => {
      attempts += 1;
      return failed(502);
    };
    for (let resends = 0; resends < 40; resends++) {
      const outcome = await world.redeem(payment, { work });
      expect(outcome).to.have.nested.property('receipt.success', true);
      if (outcome.kind === 'unavailable') {
        expect(outcome.reportedBy).to.equal('limit');
        expect(outcome.retryAfterSeconds).to.be.within(1, 300);
      }
      const said = outcome.kind === 'unavailable' ? outcome.error : bodyOf(outcome);
      expect(said).to.contain('paid and stays owed').and.not.to.contain('not charged');
    }
    expect(attempts).to.be.within(5, 12);
    world.now += 5 * MINUTE;
    expect(bodyOf(await world.redeem(payment))).to.match(/summary/);
    expect(await world.stateOf(payment)).to.equal('delivered');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('is worked on again even while strangers have used up the limit for unsold work', async () => {
    const payment = await owed();
    world.charge = world.newCharge({ unsoldPerHour: 2 });
    const fail = { work: async (): Promise<Answer> => failed(400), limitedSource: '203.0.113.7' };
    for (let n = 0; n < 60; n++) await world.redeem(world.payment(), { ...fail, text: `${n}` });
    const source = { limitedSource: '203.0.113.7' };
    expect((await world.redeem(world.payment(), source)).kind, 'unpaid work').to.equal('unavailable');
    const made = await world.redeem(payment, source);
    expect(made.kind, 'paid work').to.equal('sold');
    expect(await world.stateOf(payment)).to.equal('delivered');
  });
});

describe('money that a facilitator reports is believed only as far as it was seen', () => {
  eachInANewWorld();

  /**
   * Buys an order with a charge that repeats its settle request immediately. Calls that took an uncertain result for a
   * certain one would fail.
   */
  function order(change: Parameters<typeof world.newCharge>[0]): Promise<Outcome> {
    const work = {
      wanted: () => 1,
      work: async () => ({ kind: 'failed' as const, error: 'nobody was to be asked.' }),
    };
    const orders = new OrderWorker({ ledger: world.ledger, work, log: silent, attemptMs: MINUTE });
    world.charge = world.newCharge({ orders, askAgainAfterMs: 0, ...change });
    const { transaction } = craftPayment({ ...RECIPE, amount: BRAND.price.atomic });
    const payment = world.checkedPayment(v2Header(requirementsOf(BRAND, TERMS, FEE_PAYER), transaction));
    const upfront = { request: '{}', ready: async () => undefined };
    return world.redeem(payment, { operation: BRAND, upfront });
  }

  it('an order whose transfer was not seen is unresolved, and no respondent is asked', async () => {
    const outcome = await order({ confirm: async () => false });
    expectPending(outcome);
    expect(await world.ledger.list({ state: 'owed' })).to.deep.equal([]);
    expect(await world.ledger.list({ state: 'settling' })).to.have.length(1);
  });

  it('an order that could not be marked as owed is unresolved, and its money is not requested again', async () => {
    const ledger = { ...world.ledger, owe: async () => false };
    const outcome = await order({ ledger, confirm: async () => true });
    expectPending(outcome);
    expect(outcome).to.have.nested.property('receipt.transaction', SIGNATURE);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('after a false report, the answer waits for the chain', async () => {
    const trust = { lied: () => true };
    world.charge = world.newCharge({ trust, confirm: async () => false });
    const payment = world.payment();
    expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
    world.charge = world.newCharge({ trust, confirm: async () => true });
    expect((await world.redeem(world.payment())).kind).to.equal('sold');
  });

  it('a success reported for the second settle request counts only once the transfer was seen', async () => {
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    world.charge = world.newCharge({ confirm: async () => false, askAgainAfterMs: 0 });
    const payment = world.payment();
    expectPending(await world.redeem(payment));
    world.facilitator.onSettle = () => ({ kind: 'settled', signature: SIGNATURE });
    expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
    expect(world.facilitator.settles).to.equal(2);
  });
});
