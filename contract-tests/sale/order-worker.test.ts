import { expect } from 'chai';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { openLedger, type Ledger, type Order } from '../../src/ledger/store.js';
import { UNOBSERVED, type Event } from '../../src/observe/observer.js';
import { OrderLease } from '../../src/sale/order-lease.js';
import { OrderWorker, type Attempt, type OrderResult } from '../../src/sale/order-worker.js';
import { onEachEngine, paymentIn, type LedgerPlace, forServer } from '../support/ledger-places.js';

const terms = { payTo: 'Receiver', network: 'solana:test' };
const log = { info: () => {}, warn: () => {}, error: () => {} };
const ANSWER: OrderResult = { kind: 'answer', answer: { status: 200, headers: {}, body: Buffer.from('{}') } };
const ATTEMPT_MS = 60_000;
const SOON_MS = 6_000;
const LEASE_MS = 600;

/** An attempt at a server, which the test ends by calling `end`. */
type Work = { attempt: Attempt; signal: AbortSignal; end: (result: OrderResult) => void };

onEachEngine('orders of two servers on one ledger', make => {
  let place: LedgerPlace;
  let ledgers: Ledger[];
  let workers: OrderWorker[];

  beforeEach(async () => {
    place = await make();
    ledgers = [];
    workers = [];
  });
  afterEach(async () => {
    await Promise.all(workers.map(worker => worker.stop()));
    await Promise.all(ledgers.map(ledger => ledger.close()));
    await place.remove();
  });

  /** SQLite allows only one server per file, so on SQLite all servers of a test share one ledger. */
  async function ledgerOf(): Promise<Ledger> {
    const [first] = ledgers;
    if (first && place.url.startsWith('file:')) return first;
    const opened = await openLedger({ ...forServer(place.url), ...terms });
    ledgers.push(opened);
    return opened;
  }
  /** Starts a server. @returns the attempts that it has begun */
  function server(ledger: Ledger, leaseMs?: number): Work[] {
    const begun: Work[] = [];
    const work = (attempt: Attempt, signal: AbortSignal) =>
      new Promise<OrderResult>(end => begun.push({ attempt, signal, end }));
    const worker = new OrderWorker({
      ledger,
      work: { wanted: () => 1, work },
      log,
      attemptMs: ATTEMPT_MS,
      leaseMs,
    });
    worker.start();
    workers.push(worker);
    return begun;
  }
  async function soon<T>(read: () => T | undefined | Promise<T | undefined>): Promise<T> {
    for (const until = Date.now() + SOON_MS; Date.now() < until; await pause(20)) {
      const value = await read();
      if (value !== undefined) return value;
    }
    throw new Error('it did not happen');
  }
  const orderOf = async (ledger: Ledger, id: string): Promise<Order> => {
    const order = await ledger.order(id);
    if (!order) throw new Error('no order');
    return order;
  };
  /**
   * Two servers that both believe that they hold one order, because the first could not reach the ledger for longer
   * than its lease.
   */
  async function both(): Promise<{ id: string; ledger: Ledger; first: Work; second: Work }> {
    const ledger = await ledgerOf();
    const id = await paymentIn(ledger, 'owed');
    const first = server(ledger);
    const one = await soon(() => first[0]);
    await ledger.extendLease(id, (await ledger.find(id))?.claim ?? 0, 0);
    const second = server(await ledgerOf());
    return { id, ledger, first: one, second: await soon(() => second[0]) };
  }

  it('a server that lost the order extends nothing and stops, and its successor can extend the order', async () => {
    const { id, ledger, first, second } = await both();
    expect(await first.attempt.extend()).to.equal(undefined);
    expect(first.signal.aborted).to.equal(true);
    expect(await orderOf(ledger, id)).to.include({ attempts: 1 });
    first.end({ kind: 'failed', error: 'Nobody answered.' });
    expect(await second.attempt.extend()).to.include({ attempt: 2 });
    second.end(ANSWER);
    await soon(async () => ((await ledger.find(id))?.state === 'delivered' ? true : undefined));
  });

  it('a server that is cut off from its ledger for longer than its lease stops its work, and does not write the result', async () => {
    const ledger = await ledgerOf();
    const id = await paymentIn(ledger, 'owed');
    let cut = false;
    /** Neither answers nor fails, like a lost connection. */
    const orCut = <T>(asked: Promise<T>): Promise<T> => (cut ? new Promise<T>(() => {}) : asked);
    const away: Ledger = {
      ...ledger,
      extendLease: (...lease) => orCut(cut ? Promise.resolve(false) : ledger.extendLease(...lease)),
      list: (...listed) => orCut(ledger.list(...listed)),
    };
    const first = server(away, LEASE_MS);
    const one = await soon(() => first[0]);
    await pause(2 * LEASE_MS);
    expect(one.signal.aborted, 'while it renews its lease').to.equal(false);
    cut = true;
    await once(one.signal, 'abort');
    const second = server(await ledgerOf(), LEASE_MS);
    const two = await soon(() => second[0]);
    cut = false;
    one.end({ kind: 'answer', answer: { status: 200, headers: {}, body: Buffer.from('"late"') } });
    await pause(100);
    expect(await ledger.find(id), 'after the work of the first').to.include({ state: 'owed' });
    expect(two.signal.aborted).to.equal(false);
    two.end(ANSWER);
    await soon(async () => ((await ledger.find(id))?.state === 'delivered' ? true : undefined));
    expect((await ledger.answer(id))?.body.toString()).to.equal('{}');
  });

  it('a lease that has ended is not renewed, even if no other server took the order over', async () => {
    const ledger = await ledgerOf();
    const id = await paymentIn(ledger, 'owed');
    let cut = false;
    const away: Ledger = {
      ...ledger,
      extendLease: async (...lease) => {
        if (cut) throw new Error('the ledger is away');
        return ledger.extendLease(...lease);
      },
    };
    const begun = server(away, LEASE_MS);
    const { signal, end } = await soon(() => begun[0]);
    cut = true;
    await once(signal, 'abort');
    cut = false;
    end(ANSWER);
    (await soon(() => begun[1])).end({ kind: 'failed', error: 'Nobody answered.' });
    await soon(async () => (await orderOf(ledger, id)).failure ?? undefined);
    expect(await ledger.find(id)).to.include({ state: 'owed' });
  });

  it('a failed attempt counts once it has ended, whichever server begins the next one', async () => {
    const ledger = await ledgerOf();
    const row = await ledger.find(await paymentIn(ledger, 'owed'));
    if (!row) throw new Error('no payment');
    const begun: Work[] = [];
    const on = (on: Ledger): OrderWorker => {
      const work = (attempt: Attempt, signal: AbortSignal) =>
        new Promise<OrderResult>(end => begun.push({ attempt, signal, end }));
      const limits = { maxAttempts: 3, firstPauseMs: 0 };
      const worker = new OrderWorker({
        ledger: on,
        work: { wanted: () => 1, work },
        log,
        attemptMs: 1,
        ...limits,
      });
      workers.push(worker);
      return worker;
    };
    const both = [on(ledger), on(await ledgerOf())];
    for (let tries = 1; tries <= 3; tries++) {
      await Promise.all([...both, ...both].map(each => each.take(row)));
      (await soon(() => begun[tries - 1])).end({ kind: 'failed', error: 'Nobody answered.' });
      await soon(async () => (await orderOf(ledger, row.id)).finishedAt ?? undefined);
      await Promise.all(both.map(each => soon(async () => await each.whyIdle(row.id))));
    }
    for (const each of both)
      expect((await each.take(row))?.error).to.match(
        /^Nobody answered\. All 3 attempts are used up\..*due for a refund/,
      );
    expect(begun).to.have.length(3);
    await both[1]?.retry(row);
    (await soon(() => begun[3])).end(ANSWER);
    await soon(async () => ((await ledger.find(row.id))?.state === 'delivered' ? true : undefined));
  });

  it('an attempt cut short because its server stops does not count, and another server starts it again immediately', async () => {
    const ledger = await ledgerOf();
    const id = await paymentIn(ledger, 'owed');
    let deadline: number | undefined;
    for (let stops = 0; stops < 5; stops++) {
      const begun = server(ledger);
      const one = await soon(() => begun[0]);
      deadline ??= one.attempt.deadline;
      expect(one.attempt).to.include({ deadline, attempt: 1 });
      one.signal.addEventListener('abort', () => one.end({ kind: 'failed', error: 'Cancelled.' }));
      await workers.at(-1)?.stop();
      const { nextAttemptAt, finishedAt } = await orderOf(ledger, id);
      expect({ nextAttemptAt, finishedAt }).to.deep.equal({ nextAttemptAt: 0, finishedAt: null });
    }
  });

  it('a renewal that is under way when the work ends is completed before the lease is given back', async () => {
    const ledger = await ledgerOf();
    const id = await paymentIn(ledger, 'owed');
    let renewing: (() => void) | undefined;
    const slow: Ledger = {
      ...ledger,
      extendLease: async (payment, claim, ms) => {
        if (ms > 0 && !renewing) await new Promise<void>(resolve => (renewing = resolve));
        return ledger.extendLease(payment, claim, ms);
      },
    };
    const taken = await OrderLease.take(slow, id, LEASE_MS);
    await soon(() => renewing);
    const ended = taken?.lease.end();
    await pause(50);
    renewing?.();
    await ended;
    await pause(50);
    expect(await ledger.find(id)).to.include({ leased: false });
  });

  it('a retry reports to the operator whether another attempt was started', async () => {
    const ledger = await ledgerOf();
    const row = await ledger.find(await paymentIn(ledger, 'owed'));
    if (!row) throw new Error('no payment');
    const begun = server(ledger);
    const one = await soon(() => begun[0]);
    expect(await workers[0]?.retry(row), 'while a server works on it').to.equal(false);
    one.end({ kind: 'failed', error: 'Nobody answered.' });
    await soon(async () => (await orderOf(ledger, row.id)).finishedAt ?? undefined);
    expect(await workers[0]?.retry(row)).to.equal(true);
    (await soon(() => begun[1])).end(ANSWER);
  });

  it('a caller held at one server is answered by the attempt that succeeds at the other', async () => {
    const ledger = await ledgerOf();
    const id = await paymentIn(ledger, 'owed');
    const begun = server(ledger);
    const { end } = await soon(() => begun[0]);
    server(await ledgerOf());
    const waiting = workers[1]?.wait(id, 60_000, new AbortController().signal);
    end(ANSWER);
    expect(await waiting).to.equal(undefined);
    expect(await ledger.find(id)).to.include({ state: 'delivered' });
  });

  it('an extension that another server began is continued, not skipped', async () => {
    const { id, ledger, second } = await both();
    const extended = await ledger.extendOrder(id, 1, Date.now() + 2 * ATTEMPT_MS);
    expect(await second.attempt.extend()).to.deep.equal({ attempt: 2, deadline: extended?.deadline });
    expect(await second.attempt.extend(), 'once').to.equal(undefined);
    second.end({ kind: 'failed', error: 'Nobody answered.' });
    await soon(async () => (await orderOf(ledger, id)).finishedAt ?? undefined);
  });

  it('the events of an order name the last request for it', async () => {
    const ledger = await ledgerOf();
    const row = await ledger.find(await paymentIn(ledger, 'owed'));
    if (!row) throw new Error('no payment');
    const told: Event[] = [];
    const ends: ((result: OrderResult) => void)[] = [];
    const work = () => new Promise<OrderResult>(end => ends.push(end));
    const observer = { ...UNOBSERVED, tell: (event: Event) => void told.push(event) };
    const worker = new OrderWorker({
      ledger,
      work: { wanted: () => 1, work },
      log,
      observer,
      attemptMs: ATTEMPT_MS,
      firstPauseMs: 0,
    });
    workers.push(worker);
    await worker.take(row, 'r1');
    (await soon(() => ends.shift()))({ kind: 'failed', error: 'Nobody answered.' });
    await soon(async () => ((await worker.whyIdle(row.id))?.seconds === 0 ? true : undefined));
    await worker.take(row, 'r2');
    (await soon(() => ends.shift()))(ANSWER);
    await soon(() => told[1]);
    expect(told.map(event => (event.kind === 'order' ? [event.change, event.requestId] : []))).to.deep.equal([
      ['failed', 'r1'],
      ['delivered', 'r2'],
    ]);
  });

  it('a server that lost the order does not end the attempt of its successor', async () => {
    const { id, ledger, first, second } = await both();
    first.end({ kind: 'failed', error: 'My backend is down.' });
    await pause(300);
    expect(await orderOf(ledger, id)).to.include({ finishedAt: null });
    second.end(ANSWER);
    await soon(async () => ((await ledger.find(id))?.state === 'delivered' ? true : undefined));
  });

  it('a failure of the ledger while the order is extended is not a failure of the order, which is worked on again', async () => {
    const ledger = await ledgerOf();
    const id = await paymentIn(ledger, 'owed');
    let faults = 1;
    const failing: Ledger = {
      ...ledger,
      extendOrder: async (...asked) => {
        if (faults-- > 0) throw new Error('the ledger is away');
        return ledger.extendOrder(...asked);
      },
    };
    const begun = server(failing);
    const { attempt, end } = await soon(() => begun[0]);
    await attempt.extend().catch(() => {});
    end({ kind: 'failed', error: 'The backend failed.' });
    const again = await soon(() => begun[1]);
    expect(await orderOf(ledger, id)).to.include({ attempts: 1, finishedAt: null });
    expect(await again.attempt.extend()).to.include({ attempt: 2 });
    again.end(ANSWER);
    await soon(async () => ((await ledger.find(id))?.state === 'delivered' ? true : undefined));
  });
});
