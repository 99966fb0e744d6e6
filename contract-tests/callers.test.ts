import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { CALLER_LIVE_MS } from '../src/ledger/store.js';
import type { Charge } from '../src/payments/charge.js';
import type { Payment } from '../src/payments/examine.js';
import { Orders, type OrderWork } from '../src/payments/orders.js';
import type { Answer, Outcome } from '../src/payments/outcome.js';
import { requirementsOf } from '../src/payments/offer.js';
import {
  ACCEPTED,
  answer,
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectRefused,
  expectUnavailable,
  failed,
  FEE_PAYER,
  Gate,
  ID,
  operation,
  RECIPE,
  SIGNATURE,
  SUMMARIZE,
  TERMS,
  world,
} from './support/charge-world.js';
import { craftPayment, v2Header } from './support/craft.js';
import { until } from './support/faults.js';

/** What a client does with its answer. */
function read(outcome: Outcome): string {
  const body = bodyOf(outcome);
  if ('sale' in outcome) outcome.sale.written();
  return body;
}

describe('who waits for a payment: signing anew is charged once, on whichever server', () => {
  eachInANewWorld(true);

  let other: Charge;
  let payer: Keypair;
  beforeEach(() => {
    other = world.newCharge();
    payer = Keypair.generate();
  });

  it('a proxy hides that the client gave up; the copy is told 503 elsewhere, the next signature is sold: the first is not settled', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    const hidden = world.redeem(first, { work: () => gate.wait(answer('{"summary":"to nobody"}')) });
    await gate.reached;
    expectUnavailable(await other.redeem(world.call(first, { holdMs: 50 })), /being worked on/);
    expect(read(await other.redeem(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 1"}');
    gate.open();
    expectUnavailable(await hidden, /being worked on/);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('told 503 at another server and heard of nowhere since: work that ends a moment later is not settled', async () => {
    const gate = new Gate();
    const payment = world.payment({ payer });
    const hidden = world.redeem(payment, { work: () => gate.wait(answer('{"summary":"to nobody"}')) });
    await gate.reached;
    expectUnavailable(await other.redeem(world.call(payment, { holdMs: 50 })), /being worked on/);
    gate.open();
    expectUnavailable(await hidden, /being worked on/);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('the same payment sent to another server waits there, and both get the one answer', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    const here = world.redeem(first, { work: () => gate.wait(answer('{"n":1}')) });
    await gate.reached;
    const there = other.redeem(world.call(first));
    gate.open();
    expect(await Promise.all([here, there]).then(all => all.map(bodyOf))).to.deep.equal([
      '{"n":1}',
      '{"n":1}',
    ]);
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('the caller hangs up here while its copy waits elsewhere: the work goes on, and is delivered there', async () => {
    const gate = new Gate();
    const gone = new AbortController();
    const first = world.payment({ payer });
    let signal: AbortSignal | undefined;
    const here = world.redeem(first, {
      gone: gone.signal,
      work: given => {
        signal = given;
        return gate.wait(answer('{"n":1}'));
      },
    });
    await gate.reached;
    const there = other.redeem(world.call(first));
    await until('the copy waits', async () => (await world.ledger.find(first.checked.id))?.callers === 2);
    gone.abort();
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(signal?.aborted).to.equal(false);
    gate.open();
    expect(bodyOf(await there)).to.equal('{"n":1}');
    await here;
    expect(world.facilitator.settles).to.equal(1);
  });

  it('a worker whose server died: a caller at another server does the work', async () => {
    const first = world.payment({ payer });
    const never = new Promise<never>(() => {});
    const dying = world.newCharge({ leaseMs: 300 });
    void dying.redeem(world.call(first, { work: () => never }));
    await until('it is claimed', async () => (await world.stateOf(first)) === 'claimed');
    expect(bodyOf(await other.redeem(world.call(first)))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('who hangs up and signs anew before the hang-up is noticed is charged once', async () => {
    const gone = new AbortController();
    const gate = new Gate();
    const first = world.redeem(world.payment({ payer }), {
      gone: gone.signal,
      work: () => gate.wait(answer('{"n":1}')),
    });
    await gate.reached;
    const anew = other.redeem(world.call(world.payment({ payer })));
    await new Promise(resolve => setTimeout(resolve, 50));
    gone.abort();
    gate.open();
    expect(read(await anew)).to.equal('{"summary":"run 1"}');
    await first;
    expect(world.facilitator.settles).to.equal(1);
  });

  it('two calls on purpose, both connected, are two sales', async () => {
    const calls = [
      world.redeem(world.payment({ payer })),
      other.redeem(world.call(world.payment({ payer }))),
    ];
    const bodies = (await Promise.all(calls)).map(read);
    expect(bodies.sort()).to.deep.equal(['{"summary":"run 1"}', '{"summary":"run 2"}']);
    expect(world.facilitator.settles).to.equal(2);
  });

  it('cut while the money moves, and a new signature at once: it redeems the first', async () => {
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const first = world.redeem(world.payment({ payer }), { gone: gone.signal });
    await gate.reached;
    gone.abort();
    const anew = other.redeem(world.call(world.payment({ payer })));
    gate.open();
    expect(bodyOf(await anew)).to.equal('{"summary":"run 1"}');
    await first;
    expect(world.facilitator.settles).to.equal(1);
  });

  it('once the answer was read, the next payment for the same call is a new sale', async () => {
    expect(read(await world.redeem(world.payment({ payer })))).to.equal('{"summary":"run 1"}');
    expect(read(await other.redeem(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 2"}');
    expect(world.facilitator.settles).to.equal(2);
  });

  it('a stranger replays the landed transaction and reads the answer: the buyer’s new signature is still not charged', async () => {
    const gone = new AbortController();
    const gate = new Gate();
    const first = world.payment({ payer });
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const cut = world.redeem(first, { gone: gone.signal });
    await gate.reached;
    gone.abort();
    gate.open();
    await cut;
    expect(read(await world.redeem(first))).to.equal('{"summary":"run 1"}');
    expect(read(await other.redeem(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('a server that has no view of the chain sends a copy away: the ledger knows, and the next signature is sold once', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    const hidden = world.redeem(first, { work: () => gate.wait(answer('{"n":1}')) });
    await gate.reached;
    expectUnavailable(await other.turnAway(first, 'The server is busy', 1), /busy/);
    expect(read(await other.redeem(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 1"}');
    gate.open();
    await hidden;
    expect(world.facilitator.settles).to.equal(1);
  });

  it('nobody is charged whose callers all hung up before the money was asked for', async () => {
    const gone = new AbortController();
    const gate = new Gate();
    const first = world.redeem(world.payment({ payer }), {
      gone: gone.signal,
      work: () => gate.wait(answer('{"n":1}')),
    });
    await gate.reached;
    gone.abort();
    gate.open();
    await first;
    await world.charge.idle();
    expect(world.facilitator.settles).to.equal(0);
  });

  it('a payment waits for another one with its payment-identifier, whose work fails elsewhere: it is sold itself', async () => {
    const gate = new Gate();
    const failing = world.redeem(world.payment({ payer, identifier: ID }), {
      work: () => gate.wait(failed(502)),
    });
    await gate.reached;
    const second = world.payment({ payer, identifier: ID });
    const answered = other.redeem(world.call(second));
    await until('it waits', async () => (await world.ledger.list({ limit: 1 }))[0]?.callers === 2);
    gate.open();
    expect(await failing).to.have.nested.property('answer.status', 502);
    const late = new Promise<undefined>(resolve => setTimeout(() => resolve(undefined), 3_000));
    const outcome = await Promise.race([answered, late]);
    expect(outcome && read(outcome), 'in time').to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
    const row = await world.ledger.find(second.checked.id);
    expect(row).to.include({ state: 'delivered', callers: 1 });
  });

  it('the newest caller hangs up just as its payment redeems an earlier one: an older one does not take its place', async () => {
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const gone = new AbortController();
    const first = world.payment({ payer });
    const earlier = world.redeem(first, { gone: gone.signal });
    await gate.reached;
    gone.abort();
    gate.open();
    await earlier;
    const hangsUp = new AbortController();
    const ledger = {
      ...world.ledger,
      settle: async (...how: Parameters<typeof world.ledger.settle>) => {
        const moved = await world.ledger.settle(...how);
        hangsUp.abort();
        return moved;
      },
    };
    const verifying = new Gate();
    world.facilitator.onVerify = () => verifying.wait({ kind: 'valid' });
    const charge = world.newCharge({ ledger });
    const anew = world.payment({ payer });
    const hidden = charge.redeem(world.call(anew));
    await verifying.reached;
    const newest = charge.redeem(world.call(anew, { gone: hangsUp.signal }));
    await until('it waits', async () => (await world.ledger.find(anew.checked.id))?.callers === 2);
    verifying.open();
    expectUnavailable(await hidden, /being worked on/);
    await newest;
  });

  it('a copy that waits long enough while the money moves is told that it may have moved', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const here = world.redeem(first);
    await gate.reached;
    expectPending(await world.redeem(first, { holdMs: 50 }));
    gate.open();
    expect(bodyOf(await here)).to.equal('{"summary":"run 1"}');
  });

  it('a copy that comes when the lease of a run here has ended waits for that run, and then its own begins', async () => {
    const gate = new Gate();
    world.charge = world.newCharge({ leaseMs: 200 });
    const first = world.payment({ payer });
    const gone = new AbortController();
    const slow = world.redeem(first, { gone: gone.signal, work: () => gate.wait(answer('{"n":1}')) });
    await gate.reached;
    await new Promise(resolve => setTimeout(resolve, 250));
    const copy = world.redeem(first);
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(await world.ledger.find(first.checked.id)).to.include({ claim: 1 });
    gate.open();
    await Promise.all([slow, copy]).then(all => all.map(bodyOf));
    expect(world.facilitator.settles).to.equal(1);
  });

  it('a caller that the ledger has not heard of for five seconds is not charged', async () => {
    const first = world.payment({ payer });
    const outcome = await world.redeem(first, {
      work: async () => {
        world.now += CALLER_LIVE_MS + 1;
        return answer('{"n":1}');
      },
    });
    expectUnavailable(outcome, /being worked on/);
    expect(world.facilitator.settles).to.equal(0);
  });
});

describe('a settlement that nobody knows is asked for once more, while somebody waits', () => {
  eachInANewWorld();

  const confirm = async (): Promise<boolean> => true;

  async function doubted(askAgainAfterMs: number): Promise<Payment> {
    world.charge = world.newCharge({ confirm, askAgainAfterMs });
    const payment = world.payment();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    expectPending(await world.redeem(payment));
    return payment;
  }

  it('by a copy of the payment that comes while its blockhash lives: of that ask only a success counts', async () => {
    const payment = await doubted(0);
    world.facilitator.onSettle = () => ({ kind: 'settled', signature: SIGNATURE });
    const outcome = await world.redeem(payment);
    expect(bodyOf(outcome)).to.equal('{"summary":"run 1"}');
    expect(outcome).to.have.nested.property('receipt.transaction', SIGNATURE);
    expect(world.facilitator.settles).to.equal(2);
    expect(world.runs).to.equal(1);
  });

  it('a refusal of the second ask proves nothing, and there is no third', async () => {
    const payment = await doubted(0);
    world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    for (let time = 0; time < 3; time++) expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
    expect(world.facilitator.settles).to.equal(2);
  });

  it('not before the first ask had time to land, nor once the blockhash is dead', async () => {
    const early = await doubted(60_000);
    expectPending(await world.redeem(early));
    world.charge = world.newCharge({ confirm, askAgainAfterMs: 0 });
    world.desk.setView({ blockhash: FEE_PAYER, slot: 2_000, height: 900 + 151 });
    expectPending(await world.redeem(early));
    expect(world.facilitator.settles).to.equal(1);
  });
});

describe('a server that stops says “not charged” only where the ledger does', () => {
  eachInANewWorld();

  const closing = AbortSignal.abort(new Error('shutting down'));

  it('unknown: 503, not charged', async () => {
    expectUnavailable(
      await world.redeem(world.payment(), { closing }),
      /shutting down. You were not charged/,
    );
    expect(world.facilitator.verifies).to.equal(0);
  });

  it('delivered: its answer', async () => {
    const payment = world.payment();
    const first = await world.redeem(payment);
    expect(bodyOf(await world.redeem(payment, { closing }))).to.equal(bodyOf(first));
  });

  it('settling: 503 with a pending receipt', async () => {
    const payment = world.payment();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    await world.redeem(payment);
    expectPending(await world.redeem(payment, { closing }));
    expectPending(await world.charge.turnAway(payment, 'The server is busy', 1));
  });

  it('an order that is worked on: 503 with the receipt of its payment', async () => {
    const work: OrderWork = { wanted: () => 1, work: () => new Promise(() => {}) };
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const orders = new Orders({ ledger: world.ledger, work, log, attemptMs: 60_000 });
    world.charge = world.newCharge({ orders, confirm: async () => true });
    const brand = operation('brandFeedback');
    const { transaction } = craftPayment({ ...RECIPE, amount: brand.price.atomic });
    const payment = world.examined(v2Header(requirementsOf(brand, TERMS, FEE_PAYER), transaction), brand);
    const upfront = { request: '{}', ready: async () => undefined };
    const call = { operation: brand, upfront, holdMs: 50 };
    for (const change of [{}, { closing }]) {
      const outcome = await world.redeem(payment, { ...call, ...change });
      expectUnavailable(outcome, /^Paid, and in progress/);
      expect(outcome).to.have.nested.property('receipt.success', true);
      expect(outcome).to.have.nested.property('receipt.amount', '500000');
    }
    expect(world.facilitator.settles).to.equal(1);
  });
});

describe('a price that changed judges unknown payments only', () => {
  eachInANewWorld();

  const dearer = { ...SUMMARIZE, price: { ...SUMMARIZE.price, atomic: 20_000n } };

  /** The payment as a server with another price reads it. */
  function under(header: string): Payment {
    const examined = world.charge.examine({ 'payment-signature': header }, dearer);
    if (examined.kind !== 'mismatch') throw new Error(examined.kind);
    expect(examined.error).to.match(/the price is 20000/);
    return examined.payment;
  }

  it('delivered before: the same answer, with the receipt of the price that was paid', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    const first = await world.redeem(world.examined(header));
    const again = await world.redeem(under(header), { operation: dearer });
    expect(bodyOf(again)).to.equal(bodyOf(first));
    expect(again).to.have.nested.property('receipt.amount', '10000');
  });

  it('settling before: still pending, never refused', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    await world.redeem(world.examined(header));
    expect(await world.charge.knows(under(header))).to.equal(true);
    expectPending(await world.redeem(under(header), { operation: dearer }));
  });

  it('another receiver: what was delivered is handed out', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    const first = await world.redeem(world.examined(header));
    const elsewhere = { ...TERMS, payTo: Keypair.generate().publicKey.toBase58() };
    const desk = world.newDesk(FEE_PAYER, elsewhere);
    const charge = world.newCharge({ desk });
    const examined = charge.examine({ 'payment-signature': header }, SUMMARIZE);
    if (examined.kind !== 'mismatch') throw new Error(examined.kind);
    expect(bodyOf(await charge.redeem(world.call(examined.payment)))).to.equal(bodyOf(first));
    desk.close();
  });

  it('unknown: refused by today’s price, also where its work failed before', async () => {
    const header = v2Header(ACCEPTED, craftPayment(RECIPE).transaction);
    expect(await world.charge.knows(under(header))).to.equal(false);
    await world.redeem(world.examined(header), { work: async () => failed(502) });
    expectRefused(await world.redeem(under(header), { operation: dearer }), /the price is 20000/, true);
    expect(world.facilitator.settles).to.equal(0);
    const row = await world.ledger.find(world.examined(header).checked.id);
    expect(row, 'sent away, and the ledger knows').to.include({ callers: 2, callerUntil: 0 });
  });

  it('an offer of the new price is sold at the new price', async () => {
    const { transaction } = craftPayment({ ...RECIPE, amount: 20_000n });
    const payment = world.examined(v2Header(requirementsOf(dearer, TERMS, FEE_PAYER), transaction), dearer);
    const outcome = await world.redeem(payment, { operation: dearer });
    expect(outcome).to.have.nested.property('receipt.amount', '20000');
  });
});

describe('work that is not paid for', () => {
  eachInANewWorld();

  it('a payer that lets work be done and hangs up is verified first from then on, and soon has to wait', async () => {
    const payer = await world.knownPayer();
    for (let n = 0; n < 10; n++) {
      const gone = new AbortController();
      const gate = new Gate();
      const work = world.redeem(world.payment({ payer, identifier: `${ID}${n}` }), {
        gone: gone.signal,
        work: () => gate.wait(answer('{}')),
      });
      await gate.reached;
      gone.abort();
      gate.open();
      await work;
      await world.charge.idle();
    }
    expect(await world.ledger.payerKnown(payer.publicKey.toBase58())).to.equal(false);
    world.runs = 0;
    expectUnavailable(await world.redeem(world.payment({ payer })), /not charged/);
    expect(world.runs).to.equal(0);
    expect((await world.redeem(world.payment())).kind, 'others are served').to.equal('answer');
    world.now += 60_000;
    world.desk.setView({ blockhash: FEE_PAYER, slot: 2_000, height: 950 });
    const later = await world.redeem(world.payment({ payer }), { text: 'another' });
    expect(later.kind, 'it is forgiven').to.equal('answer');
    expect(world.facilitator.settles).to.equal(2);
  });

  it('of a payer without standing ten runs may be under way at once, the others are told to wait', async () => {
    const payer = Keypair.generate();
    const gate = new Gate();
    const sent = Array.from({ length: 14 }, (_, n) =>
      world.redeem(world.payment({ payer, identifier: `${ID}${n}` }), {
        work: () => gate.wait(answer('{}')),
      }),
    );
    await gate.reached;
    await new Promise(resolve => setTimeout(resolve, 300));
    gate.open();
    const kinds = (await Promise.all(sent)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'unavailable')).to.have.length(4);
    expect(world.facilitator.settles).to.equal(10);
  });

  it('work beside too many equal payments counts among the runs of its payment', async () => {
    const ledger = { ...world.ledger, settle: async () => ({ kind: 'limit' as const }) };
    world.charge = world.newCharge({ ledger });
    const payment = world.payment();
    for (let n = 0; n < 3; n++) expectUnavailable(await world.redeem(payment), /Too many new signatures/);
    expectRefused(await world.redeem(payment), /failed 3 times and nothing was charged/, false);
    expect(world.runs).to.equal(3);
  });

  it('a settlement that nobody knows costs a payer its standing', async () => {
    const payer = await world.knownPayer();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    expectPending(await world.redeem(world.payment({ payer })));
    expect(await world.ledger.payerKnown(payer.publicKey.toBase58())).to.equal(false);
  });

  it('work that takes too long costs a payer its standing', async () => {
    const payer = await world.knownPayer();
    world.charge = world.newCharge({ workDeadlineMs: 50 });
    const work = (): Promise<Answer> => new Promise(() => {});
    const outcome = await world.redeem(world.payment({ payer }), { work });
    expect(outcome).to.have.nested.property('answer.status', 502);
    expect(await world.ledger.payerKnown(payer.publicKey.toBase58())).to.equal(false);
  });

  it('new payers whose verify was slow share a burst of work, however many came meanwhile', async () => {
    world.charge = world.newCharge({ unknownPayers: { rate: 10, burst: 3 } });
    const gate = new Gate();
    world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
    const buy = (n: number): Promise<Outcome> =>
      world.redeem(world.payment(), { source: `source ${n}`, text: `text ${n}` });
    const first = [0, 1, 2].map(buy);
    await until('the first are verified', () => world.facilitator.verifies === 3);
    await new Promise(resolve => setTimeout(resolve, 350));
    const second = [3, 4, 5].map(buy);
    await until('all are verified', () => world.facilitator.verifies === 6);
    gate.open();
    const refused = (await Promise.all([...first, ...second])).filter(({ kind }) => kind === 'unavailable');
    expect(refused).to.not.be.empty;
    expect(world.runs).to.equal(6 - refused.length);
    for (const outcome of refused) expectUnavailable(outcome, /Too many new payers.*not charged/);
  });

  it('new payers of one source leave room for those of another', async () => {
    world.charge = world.newCharge({ unknownPayers: { rate: 0, burst: 50 } });
    let refused = 0;
    for (let n = 0; n < 60; n++)
      if ((await world.redeem(world.payment(), { source: 'crowd' })).kind === 'unavailable') refused += 1;
    expect(refused).to.be.greaterThan(10);
    expect((await world.redeem(world.payment(), { source: 'somebody else' })).kind).to.equal('answer');
  });
});
