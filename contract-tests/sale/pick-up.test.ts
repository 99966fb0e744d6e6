import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Caller, Payment as Row } from '../../src/ledger/store.js';
import type { Charge } from '../../src/sale/charge.js';
import type { Payment } from '../../src/sale/check-payment.js';
import type { SettleResult } from '../../src/rails/rail.js';
import { OrderWorker } from '../../src/sale/order-worker.js';
import type { Outcome, Success } from '../../src/sale/outcome.js';
import {
  answer,
  eachInANewWorld,
  expectUnavailable,
  failed,
  Gate,
  ID,
  MINUTE,
  SIGNATURE,
  SUMMARIZE,
  world,
} from '../support/charge-world.js';
import { until } from '../support/faults.js';
import { SeededRandom } from '../support/seeded-random.js';

const HOUR = 60 * MINUTE;
const keptOf = (outcome: Outcome): Caller | undefined => outcome.kept;

/** The bytes of an answer. */
function bodyOf(outcome: Outcome): Buffer {
  if (!('answer' in outcome)) throw new Error(`no answer: ${JSON.stringify(outcome)}`);
  return outcome.answer.body;
}

/** Marks a payment as owed, as if it had been found on the chain after its answer had been dropped. */
async function owe(id: string): Promise<void> {
  const row = await world.ledger.adopt(id, MINUTE);
  expect(await world.ledger.owe(id, row?.claim ?? 0, { settlement: SIGNATURE, foundOnChain: true })).to.equal(
    true,
  );
  await world.ledger.extendLease(id, row?.claim ?? 0, 0);
}

const SETTLEMENTS = [
  [5, { kind: 'settled', signature: SIGNATURE }],
  [2, { kind: 'unknown', reason: 'status 502', signature: '' }],
  [1, { kind: 'refused', reason: 'insufficient_funds' }],
] as const satisfies readonly [number, SettleResult][];

/**
 * Makes four calls for one buyer, with copies, new signatures, hang-ups and timeouts, at two servers whose facilitator
 * and work may fail.
 */
async function everyWay(random: SeededRandom, charges: readonly Charge[]): Promise<Outcome[]> {
  const payer = Keypair.generate();
  const identifier = random.roll('identifier') < 0.3 ? { identifier: `order-${random.seed}-00000000` } : {};
  const flow = random.roll('flow') < 0.3 ? 'upfront' : 'authorization';
  const sent: Payment[] = [];
  const send = async (n: string): Promise<Outcome> => {
    const { [Math.floor(random.roll('which', n) * sent.length)]: earlier } = sent;
    const payment =
      random.roll('copy', n) < 0.5 && earlier ? earlier : world.payment({ payer, ...identifier });
    sent.push(payment);
    const gone = new AbortController();
    if (random.roll('gone', n) < 0.2) setImmediate(() => gone.abort());
    const call = world.call(payment, {
      operation: { ...SUMMARIZE, flow },
      gone: gone.signal,
      holdMs: random.roll('hold', n) < 0.3 ? 0 : 100,
      work: async () => (random.roll('work', n) < 0.2 ? failed(502) : answer(`{"n":"${n}"}`)),
      upfront: { request: '{}', ready: async () => undefined },
    });
    return (random.roll('server', n) < 0.5 ? charges[0] : charges[1])!.process(call);
  };
  const outcomes = [await send('first'), ...(await Promise.all([send('second'), send('third')]))];
  return [...outcomes, await send('fourth')];
}

/** Fetches with the key that an outcome gave. */
async function fetched(outcome: Outcome): Promise<Outcome> {
  const kept = keptOf(outcome);
  if (!kept) throw new Error(`no key in ${JSON.stringify(outcome)}`);
  const found = await world.charge.pickUp(kept);
  if (found.kind === 'nothing') throw new Error(found.error);
  return found.outcome;
}

describe('the key of an answer is always valid', () => {
  eachInANewWorld(true);

  let payer: Keypair;
  beforeEach(() => {
    payer = Keypair.generate();
  });

  it("a payment that redeems a sale by its payment-identifier has no row, so its key is that of the sale's row", async () => {
    const first = world.payment({ payer, identifier: ID });
    const sold = await world.redeem(first);
    const again = await world.redeem(world.payment({ payer, identifier: ID }));
    expect(keptOf(sold)).to.deep.equal({ id: first.checked.id, number: 1 });
    expect(keptOf(again)).to.deep.equal({ id: first.checked.id, number: 2 });
    expect(await fetched(again))
      .to.have.nested.property('answer.body')
      .that.deep.equals(bodyOf(sold));
  });

  it('a newly signed payment that redeems an earlier one leads to the answer of the earlier one', async () => {
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    const first = world.payment({ payer });
    const pending = await world.redeem(first);
    const anew = await world.redeem(world.payment({ payer }), { holdMs: 0 });
    expect([keptOf(pending)?.id, keptOf(anew)?.id]).to.deep.equal([first.checked.id, first.checked.id]);
    expectUnavailable(await fetched(anew), /not yet certain/);
  });

  it('a call that was only claimed gets no key, whether its work continues or not', async () => {
    const gate = new Gate();
    const payment = world.payment({ payer });
    const first = world.redeem(payment, { work: () => gate.wait(failed(502)) });
    await gate.reached;
    const copy = await world.newCharge().process(world.call(payment, { holdMs: 0 }));
    expectUnavailable(copy, /being worked on/);
    gate.open();
    for (const outcome of [copy, await first]) expect(keptOf(outcome)).to.equal(undefined);
  });

  it('an answer counts as sent again for callers that came after its delivery, but not for those that waited for it', async () => {
    const again: string[] = [];
    const counted = (name: string): { again: () => number } => ({
      again: () => {
        again.push(name);
        return 0;
      },
    });
    const gate = new Gate();
    const payment = world.payment({ payer });
    const work = (): Promise<Success> => gate.wait(answer('{"summary":"one"}'));
    const first = world.redeem(payment, { work, ...counted('the first') });
    await gate.reached;
    const waiting = world.newCharge().process(world.call(payment, counted('one that waits elsewhere')));
    await until('it waits', async () => (await world.ledger.find(payment.checked.id))?.callers === 2);
    gate.open();
    const late = await first.then(() => world.redeem(payment, counted('one that came later')));
    for (const outcome of [await first, await waiting, late])
      expect(bodyOf(outcome).toString()).to.equal('{"summary":"one"}');
    expect(again).to.deep.equal(['one that came later']);
  });

  it('every key given in hundreds of random calls leads to the answer or its receipt', async function () {
    this.timeout(60_000);
    const handed: Caller[] = [];
    const unpaid: Outcome[] = [];
    const orders = new OrderWorker({
      ledger: world.ledger,
      work: {
        wanted: () => 0,
        work: async ({ id }) =>
          id < '8' ? { kind: 'failed', error: 'Nobody answered.' } : { kind: 'answer', answer: answer('{}') },
      },
      log: { info: () => {}, warn: () => {}, error: () => {} },
      attemptMs: MINUTE,
    });
    const charges = [0, 1].map(() => world.newCharge({ orders, confirm: async () => true }));
    const random = new SeededRandom(1);
    world.facilitator.onSettle = () => random.pick<SettleResult>(SETTLEMENTS, world.facilitator.settles);
    const buyers = Array.from({ length: 80 }, (_, seed) => everyWay(new SeededRandom(seed), charges));
    for (const outcome of (await Promise.all(buyers)).flat()) {
      const kept = keptOf(outcome);
      if (kept) handed.push(kept);
      else unpaid.push(outcome);
    }
    await orders.stop();
    const nowhere: string[] = [];
    for (const kept of handed) {
      const found = await world.charge.pickUp(kept);
      const row = await world.ledger.find(kept.id);
      const promised = found.kind === 'nothing' && row?.state !== 'released';
      if (promised || row?.aliasOf !== null) nowhere.push(`${row?.state}: ${JSON.stringify(found)}`);
    }
    expect(nowhere).to.deep.equal([]);
    expect(handed.length).to.be.greaterThan(60);
    for (const outcome of unpaid)
      expect(
        (outcome as { receipt?: { success: boolean } }).receipt?.success,
        JSON.stringify(outcome),
      ).not.to.equal(true);
  });

  it('a paid call whose answer is lost, and which nobody is working on, gets an error that asks the buyer to send the payment again', async () => {
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    const payment = world.payment({ payer });
    const pending = await world.redeem(payment);
    await owe(payment.checked.id);
    const error = 'Paid, but the answer must be made again: send the same payment again.';
    expect(await fetched(pending)).to.deep.include({ kind: 'unavailable', error });
    expect(await world.charge.turnAway(payment, 'The server is busy', 1)).to.deep.include({ error });
    const gate = new Gate();
    const redone = world.redeem(payment, { work: () => gate.wait(answer('{"made":"again"}')) });
    await gate.reached;
    expectUnavailable(await fetched(pending), /^Paid, and in progress/);
    gate.open();
    expect(bodyOf(await redone).toString()).to.equal('{"made":"again"}');
    expect(bodyOf(await fetched(pending)).toString()).to.equal('{"made":"again"}');
  });
});

describe('an answer that is given as a link', () => {
  eachInANewWorld(true);

  let payer: Keypair;
  let payment: Payment;
  let sold: Outcome & { kind: 'sold' };
  beforeEach(async () => {
    payer = Keypair.generate();
    payment = world.payment({ payer });
    sold = (await world.redeem(payment)) as typeof sold;
  });

  const link = (outcome: Outcome): Promise<number | undefined> =>
    'sale' in outcome ? outcome.sale.linked() : Promise.reject(new Error('not sold'));
  const rowOf = async (): Promise<Row> => (await world.ledger.find(keptOf(sold)?.id ?? ''))!;
  /** Fetches the answer to its end, so that it counts as written. */
  const fetchAll = async (outcome: Outcome = sold): Promise<void> => {
    const got = await fetched(outcome);
    if ('sale' in got) got.sale.written();
  };

  it('is kept for a day, and its caller counts as gone', async () => {
    const now = world.now;
    expect(await link(sold)).to.be.within(now + 24 * HOUR, now + 24 * HOUR + MINUTE);
    expect(await rowOf()).to.include({ callerUntil: 0, writtenTo: null });
    world.now += 23 * HOUR;
    await world.ledger.prune();
    expect(bodyOf(await fetched(sold))).to.deep.equal(bodyOf(sold));
    world.now += 2 * HOUR;
    expect(await world.ledger.answer((await rowOf()).id)).to.equal(undefined);
  });

  it('does not count as written until it is fetched, so a newly signed payment for the same call redeems it', async () => {
    await link(sold);
    const again = await world.redeem(world.payment({ payer }));
    expect(bodyOf(again)).to.deep.equal(bodyOf(sold));
    expect(world.facilitator.settles).to.equal(1);
  });

  it('counts as written once it is fetched, so the next payment is a new sale', async () => {
    await link(sold);
    await fetchAll();
    await until('it is written', async () => (await rowOf()).writtenTo === 2);
    await world.redeem(world.payment({ payer }));
    expect(world.facilitator.settles).to.equal(2);
  });

  it('does not count as written if a stranger fetches it with the key from a replay of the landed transaction', async () => {
    await link(sold);
    const replayed = await world.redeem(payment);
    expect(keptOf(replayed)?.number).to.equal(0);
    await fetchAll(replayed);
    await fetchAll(sold);
    await world.redeem(world.payment({ payer }));
    expect(world.facilitator.settles, 'the buyer’s next payment redeems it').to.equal(1);
  });
});
