import { expect } from 'chai';
import { reportDone } from '../../src/ledger/operation-store.js';
import { openLedgerReader, openLedger } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { faultOf, OWNER } from '../support/ledgers.js';
import { aRefund, onEachEngine, paymentIn, forServer } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

/** PostgreSQL's own clock keeps running while a test is delayed. */
const SLOW_MS = 10_000;

onEachEngine('a ledger with orders', (make, engine) => promises(make, engine === 'PostgreSQL' ? 3 : 1));

function promises(make: () => Promise<LedgerPlace>, servers: number): void {
  let place: LedgerPlace;
  let ledger: Ledger;
  let all: Ledger[];
  let clock: number;

  const open = (): Promise<Ledger> => openLedger({ ...forServer(place.url), ...OWNER, now: () => clock });
  /** Opens an order for an owed payment. */
  const asked = async (wanted = 3): Promise<string> => {
    const payment = await paymentIn(ledger, 'owed');
    await ledger.openOrder({ payment, request: '{"brand":"Acme"}', wanted, deadline: clock + 60_000 });
    return payment;
  };

  beforeEach(async () => {
    clock = 1_800_000_000_000;
    place = await make();
    all = await Promise.all(Array.from({ length: servers }, open));
    [ledger] = all as [Ledger];
  });

  afterEach(async () => {
    await Promise.all(all.map(each => each.close()));
    await place.remove();
  });

  it('creates only one order, however many times it is opened, and keeps its first content', async () => {
    const payment = await paymentIn(ledger, 'owed');
    const orders = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        (all[index % all.length] ?? ledger).openOrder({
          payment,
          request: '{}',
          wanted: 5,
          deadline: clock + 1_000,
        }),
      ),
    );
    const expected = {
      payment,
      request: '{}',
      wanted: 5,
      done: 0,
      deadline: orders[0]!.deadline,
      attempts: 1,
      createdAt: orders[0]!.createdAt,
      finishedAt: null,
      nextAttemptAt: 0,
      tries: 1,
      failure: null,
    };
    expect(expected.createdAt).to.be.within(clock, clock + SLOW_MS);
    for (const order of orders) expect(order).to.deep.equal(expected);
    clock += SLOW_MS;
    const again = await ledger.openOrder({ payment, request: 'other', wanted: 9, deadline: clock + 9_000 });
    expect(again).to.deep.equal(expected);
    expect(await ledger.order(payment)).to.deep.equal(expected);
    expect(await ledger.order('f'.repeat(64))).to.equal(undefined);
  });

  it('opens no order for a payment that is not owed', async () => {
    for (const state of ['claimed', 'settling', 'released'] as const) {
      const payment = await paymentIn(ledger, state);
      const fault = await faultOf(ledger.openOrder({ payment, request: '{}', wanted: 1, deadline: clock }));
      expect(fault).to.include({ name: 'LedgerFault', code: 'failed' });
      expect(await ledger.order(payment), state).to.equal(undefined);
    }
    const missing = ledger.openOrder({ payment: 'f'.repeat(64), request: '{}', wanted: 1, deadline: clock });
    expect((await faultOf(missing)).message).to.include('not owed');
  });

  it('begins a new attempt only after the last one ended and while the payment is owed', async () => {
    const payment = await asked();
    expect(await ledger.reopenOrder(payment, clock + 1)).to.equal(undefined);
    expect(await ledger.finishOrder(payment)).to.equal(true);
    expect(await ledger.finishOrder(payment)).to.equal(false);
    clock += 10;
    expect(await ledger.reopenOrder(payment, clock + 7_000)).to.include({
      attempts: 2,
      deadline: clock + 7_000,
      finishedAt: null,
    });
    expect(await ledger.reopenOrder(payment, clock + 9_000)).to.equal(undefined);
    await ledger.finishOrder(payment);
    const adopted = await ledger.adopt(payment, 60_000);
    await ledger.deliver(payment, adopted?.claim ?? 0, { settlement: 'sig', answerExpiresAt: clock });
    expect(await ledger.reopenOrder(payment, clock + 9_000)).to.equal(undefined);
    const last = (await ledger.order(payment))!;
    expect(last.attempts).to.equal(2);
    expect(last.finishedAt).to.be.within(clock, clock + SLOW_MS);
  });

  it('begins no new attempt before it is due, and none after the last one unless the operator starts it', async () => {
    const payment = await asked();
    const { claim } = (await ledger.adopt(payment, 60_000))!;
    const failed = { attempt: 1, failure: 'It broke.', againMs: 60_000 };
    expect(await ledger.failOrder(payment, claim - 1, failed), 'under an earlier claim').to.equal(false);
    expect(await ledger.failOrder(payment, claim, failed)).to.equal(true);
    expect(await ledger.failOrder(payment, claim, failed), 'twice').to.equal(false);
    const due = (await ledger.order(payment))?.nextAttemptAt ?? 0;
    expect(due).to.be.within(clock + 60_000, clock + 60_000 + SLOW_MS);
    clock += 59_000 - SLOW_MS;
    expect(await ledger.reopenOrder(payment, clock + 1), 'before it is due').to.equal(undefined);
    clock = due;
    expect(await ledger.reopenOrder(payment, clock + 1)).to.include({ attempts: 2, tries: 2 });
    expect(await ledger.failOrder(payment, claim, { ...failed, attempt: 2, againMs: null })).to.equal(true);
    clock += 10 * 60_000;
    expect(await ledger.order(payment)).to.include({ nextAttemptAt: null, failure: 'It broke.' });
    expect(await ledger.reopenOrder(payment, clock + 1), 'by a call').to.equal(undefined);
    expect(await ledger.retryOrder(payment, clock + 1), 'by the operator').to.include({ tries: 3 });
    expect(await ledger.retryOrder(payment, clock + 1), 'while one is in progress').to.equal(undefined);
  });

  it('begins interrupted work again after growing pauses, and sets the deadline of an attempt once', async () => {
    const payment = await asked();
    const waits: number[] = [];
    const [attemptMs, began] = [50_000, clock];
    for (let start = 1; start <= 10; start++) {
      const attempt = { deadline: clock + attemptMs, attemptMs };
      expect(await ledger.beginOrder(payment, attempt), `start ${start}`).to.include({
        attempts: 1,
        tries: 1,
      });
      expect(await ledger.beginOrder(payment, attempt), `again after start ${start}`).to.equal(undefined);
      const next = (await ledger.order(payment))?.nextAttemptAt ?? 0;
      waits.push(Math.floor((next - clock) / 1_000));
      clock = next;
    }
    // Until the deadline has passed, each pause is at most a tenth of the attempt's duration.
    expect(waits.slice(0, 8)).to.deep.equal([1, 2, 4, 5, 5, 5, 5, 5]);
    expect(waits.at(-1)).to.be.at.least(5);
    const { deadline } = (await ledger.order(payment))!;
    expect(deadline).to.be.within(began + attemptMs, began + attemptMs + SLOW_MS);
    clock = deadline + SLOW_MS;
    const late = (await ledger.beginOrder(payment, { deadline: clock + attemptMs, attemptMs }))!;
    expect((late.nextAttemptAt ?? 0) - clock, 'after its deadline').to.be.within(1_024_000, 3_600_000);
    expect(late.deadline).to.equal(deadline);
    await ledger.finishOrder(payment);
    const ended = await ledger.beginOrder(payment, { deadline: clock, attemptMs });
    expect(ended, 'after its end').to.equal(undefined);
  });

  it('does not count a start that a server’s shutdown interrupts, keeps the deadline, and lets another server begin immediately', async () => {
    const payment = await asked();
    const attemptMs = 3_600_000;
    const first = await ledger.beginOrder(payment, { deadline: clock + attemptMs, attemptMs });
    for (let stops = 1; stops <= 12; stops++) {
      const { claim } = (await ledger.adopt(payment, 60_000))!;
      expect(await ledger.handOverOrder(payment, claim - 1), 'under an earlier claim').to.equal(false);
      expect((await ledger.order(payment))?.nextAttemptAt).to.be.greaterThan(clock);
      expect(await ledger.handOverOrder(payment, claim)).to.equal(true);
      await ledger.extendLease(payment, claim, 0);
      const next = await ledger.beginOrder(payment, { deadline: clock + 2 * attemptMs, attemptMs });
      expect(next, `after stop ${stops}`).to.include({ deadline: first?.deadline, attempts: 1, tries: 1 });
      const waits = (next?.nextAttemptAt ?? 0) - clock;
      expect(waits, `after stop ${stops}`).to.be.below(2_000 + SLOW_MS);
    }
    await ledger.finishOrder(payment);
    const { claim } = (await ledger.adopt(payment, 60_000))!;
    expect(await ledger.handOverOrder(payment, claim), 'after its end').to.equal(false);
  });

  it('lets the operator start another attempt while interrupted work is paused, but not while a server is working on it', async () => {
    const payment = await asked();
    const { claim } = (await ledger.adopt(payment, 3_600_000))!;
    const attemptMs = 3_600_000;
    await ledger.beginOrder(payment, { deadline: clock + attemptMs, attemptMs });
    await ledger.handOverOrder(payment, claim);
    await ledger.beginOrder(payment, { deadline: clock + attemptMs, attemptMs });
    for (let start = 1; start <= 6; start++) {
      clock = (await ledger.order(payment))?.nextAttemptAt ?? 0;
      await ledger.beginOrder(payment, { deadline: clock + attemptMs, attemptMs });
    }
    expect(await ledger.retryOrder(payment, clock + 1), 'while a server holds it').to.equal(undefined);
    await ledger.extendLease(payment, claim, 0);
    expect(await ledger.reopenOrder(payment, clock + 1), 'by a call').to.equal(undefined);
    expect(await ledger.retryOrder(payment, clock + 9_000)).to.include({ attempts: 2, nextAttemptAt: 0 });
    expect(await ledger.retryOrder(payment, clock + 9_000), 'twice').to.equal(undefined);
    const begun = await ledger.beginOrder(payment, { deadline: clock + 7_000, attemptMs });
    expect(begun).to.include({ attempts: 2, tries: 2, deadline: clock + 7_000 });
  });

  it('gives the new attempt to only one of many concurrent calls', async () => {
    const payment = await asked();
    await ledger.finishOrder(payment);
    const reopened = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        (all[index % all.length] ?? ledger).reopenOrder(payment, clock + 1),
      ),
    );
    expect(reopened.filter(each => each !== undefined)).to.have.length(1);
    expect((await ledger.order(payment))?.attempts).to.equal(2);
  });

  it('lets only one server extend an order, once until it is reopened, and never after it has ended', async () => {
    const payment = await asked();
    const extended = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        (all[index % all.length] ?? ledger).extendOrder(payment, 1, clock + 90_000),
      ),
    );
    expect(extended.filter(each => each !== undefined)).to.have.length(1);
    expect(await ledger.order(payment)).to.include({
      attempts: 2,
      deadline: clock + 90_000,
      finishedAt: null,
    });
    expect(await ledger.extendOrder(payment, 2, clock + 95_000), 'a second time').to.equal(undefined);
    expect(await ledger.finishOrder(payment, 1), 'by the attempt before it').to.equal(false);
    expect(await ledger.finishOrder(payment, 2)).to.equal(true);
    await ledger.reopenOrder(payment, clock + 1);
    await ledger.finishOrder(payment);
    expect(await ledger.extendOrder(payment, 3, clock + 2), 'after its end').to.equal(undefined);
    await ledger.reopenOrder(payment, clock + 1);
    expect(await ledger.extendOrder(payment, 3, clock + 2), 'by an earlier attempt').to.equal(undefined);
    expect(await ledger.extendOrder(payment, 4, clock + 2)).to.include({ attempts: 5 });
  });

  it('ends the order of a refunded payment, and never resumes it', async () => {
    const payment = await asked();
    const reader = await openLedgerReader({ url: place.url, now: () => clock });
    expect(await reader.refund(payment, aRefund())).to.equal('refunded');
    expect((await reader.order(payment))?.finishedAt).to.be.within(clock, clock + SLOW_MS);
    await reader.close();
    expect(await ledger.reopenOrder(payment, clock + 1)).to.equal(undefined);
    expect(await ledger.openOrders()).to.deep.equal([]);
  });

  it('lists the open orders, oldest first, with their progress, for one operation or for all', async () => {
    const first = await asked();
    clock += SLOW_MS;
    const second = await asked();
    const done = await asked();
    const other = await paymentIn(ledger, 'owed', { operation: 'brewTea' });
    await ledger.openOrder({ payment: other, request: '{}', wanted: 2, deadline: clock + 60_000 });
    await ledger.finishOrder(done);
    const store = await ledger.openStore({ name: 'tea', tables: {}, migrations: [] });
    await store.write(() => reportDone(second, 1));
    const open = async (operation?: string): Promise<unknown[]> =>
      (await ledger.openOrders(operation)).map(({ payment, done: parts }) => [payment, parts]);
    expect(await open('brandFeedback')).to.deep.equal([
      [first, 0],
      [second, 1],
    ]);
    expect(await open('brewTea')).to.deep.equal([[other, 0]]);
    expect(await open()).to.have.length(3);
  });

  it('does not list as open an order whose payment is delivered, even if a crash kept it from being ended', async () => {
    const payment = await asked();
    const row = await ledger.adopt(payment, 60_000);
    if (!row) throw new Error('nobody held it');
    const answer = { status: 200, headers: {}, body: Buffer.from('{}') };
    expect(await ledger.saveAnswer(payment, row.claim, answer)).to.equal(true);
    const how = { settlement: '5'.repeat(88), answerExpiresAt: clock + 1_000 };
    expect(await ledger.deliver(payment, row.claim, how)).to.equal(true);
    expect(await ledger.openOrders()).to.deep.equal([]);
  });

  it('keeps the orders of owed payments whatever maintenance deletes', async () => {
    const payment = await asked();
    clock += 10 ** 10;
    await ledger.deleteExpiredClaims({ before: 10 ** 9 });
    await ledger.prune();
    expect(await ledger.order(payment)).to.include({ payment, wanted: 3 });
  });
}
