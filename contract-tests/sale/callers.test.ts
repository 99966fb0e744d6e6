import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { CALLER_LIVE_MS } from '../../src/ledger/store.js';
import type { Charge } from '../../src/sale/charge.js';
import type { Payment } from '../../src/sale/check-payment.js';
import type { Answer, Outcome } from '../../src/sale/outcome.js';
import {
  answer,
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectUnavailable,
  failed,
  FEE_PAYER,
  Gate,
  ID,
  SIGNATURE,
  world,
} from '../support/charge-world.js';
import { until } from '../support/faults.js';

/** Reads an answer as a client does, so that it counts as written. */
function read(outcome: Outcome): string {
  const body = bodyOf(outcome);
  if ('sale' in outcome) outcome.sale.written();
  return body;
}

describe('callers that wait for a payment: signing again is charged once, on any server', () => {
  eachInANewWorld(true);

  let other: Charge;
  let payer: Keypair;
  beforeEach(() => {
    other = world.newCharge();
    payer = Keypair.generate();
  });

  it('if a proxy hides that the client gave up, and a copy of its payment gets a 503 elsewhere, the next signature buys the answer and the first payment is not settled', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    const hidden = world.redeem(first, { work: () => gate.wait(answer('{"summary":"to nobody"}')) });
    await gate.reached;
    expectUnavailable(await other.process(world.call(first, { holdMs: 50 })), /being worked on/);
    expect(read(await other.process(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 1"}');
    gate.open();
    expectUnavailable(await hidden, /being worked on/);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('a payment that verify refuses after another one has bought its call gets a 503 and no request for a new signature, because it redeems that sale', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    world.facilitator.onVerify = () => gate.wait({ kind: 'refused', reason: 'insufficient_funds' });
    const hidden = world.redeem(first);
    await gate.reached;
    expectUnavailable(await other.process(world.call(first, { holdMs: 50 })), /being worked on/);
    world.facilitator.onVerify = () => ({ kind: 'valid' });
    expect(read(await other.process(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 1"}');
    gate.open();
    expectUnavailable(await hidden, /being worked on/);
    expect(read(await world.redeem(first))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('work is not settled if its caller has got a 503 from another server and has not come back', async () => {
    const gate = new Gate();
    const payment = world.payment({ payer });
    const hidden = world.redeem(payment, { work: () => gate.wait(answer('{"summary":"to nobody"}')) });
    await gate.reached;
    expectUnavailable(await other.process(world.call(payment, { holdMs: 50 })), /being worked on/);
    gate.open();
    expectUnavailable(await hidden, /being worked on/);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('a request that is passed back and forth between two rows stops waiting once it has waited for as long as a call may be held', async () => {
    const [first, second] = [world.payment({ payer }), world.payment({ payer })];
    world.facilitator.onVerify = () => ({ kind: 'unavailable', detail: 'away' });
    for (const payment of [first, second]) expectUnavailable(await world.redeem(payment), /reached/);
    const [row, target] = await Promise.all(
      [first, second].map(async ({ checked }) => (await world.ledger.find(checked.id))!),
    );
    const alias = { ...row!, aliasOf: target!.id };
    world.ledger = { ...world.ledger, lookUp: async () => ({ row: alias, target, payerKnown: false }) };
    expectUnavailable(await world.newCharge().process(world.call(first, { holdMs: 1 })), /being worked on/);
  });

  it('the same payment sent to another server waits there, and both get the same answer', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    const here = world.redeem(first, { work: () => gate.wait(answer('{"n":1}')) });
    await gate.reached;
    const there = other.process(world.call(first));
    gate.open();
    expect(await Promise.all([here, there]).then(all => all.map(bodyOf))).to.deep.equal([
      '{"n":1}',
      '{"n":1}',
    ]);
    expect(world.facilitator).to.include({ verifies: 1, settles: 1 });
  });

  it('if the caller hangs up while a copy of its payment waits at another server, the work continues and the answer is delivered there', async () => {
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
    const there = other.process(world.call(first));
    await until('the copy waits', async () => (await world.ledger.find(first.checked.id))?.callers === 2);
    gone.abort();
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(signal?.aborted).to.equal(false);
    gate.open();
    expect(bodyOf(await there)).to.equal('{"n":1}');
    await here;
    expect(world.facilitator.settles).to.equal(1);
  });

  it("after the worker's server died, a caller at another server takes over the work", async () => {
    const first = world.payment({ payer });
    const never = new Promise<never>(() => {});
    const dying = world.newCharge({ leaseMs: 300 });
    void dying.process(world.call(first, { work: () => never }));
    await until('it is claimed', async () => (await world.stateOf(first)) === 'claimed');
    expect(bodyOf(await other.process(world.call(first)))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('a buyer who hangs up and signs again before the hang-up is noticed is charged once', async () => {
    const gone = new AbortController();
    const gate = new Gate();
    const first = world.redeem(world.payment({ payer }), {
      gone: gone.signal,
      work: () => gate.wait(answer('{"n":1}')),
    });
    await gate.reached;
    const anew = other.process(world.call(world.payment({ payer })));
    await new Promise(resolve => setTimeout(resolve, 50));
    gone.abort();
    gate.open();
    expect(read(await anew)).to.equal('{"summary":"run 1"}');
    await first;
    expect(world.facilitator.settles).to.equal(1);
  });

  it('two deliberate calls that are both still connected are two sales', async () => {
    const calls = [
      world.redeem(world.payment({ payer })),
      other.process(world.call(world.payment({ payer }))),
    ];
    const bodies = (await Promise.all(calls)).map(read);
    expect(bodies.sort()).to.deep.equal(['{"summary":"run 1"}', '{"summary":"run 2"}']);
    expect(world.facilitator.settles).to.equal(2);
  });

  it('a new signature, sent right after the connection was cut while the money moved, redeems the first payment', async () => {
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const first = world.redeem(world.payment({ payer }), { gone: gone.signal });
    await gate.reached;
    gone.abort();
    const anew = other.process(world.call(world.payment({ payer })));
    gate.open();
    expect(bodyOf(await anew)).to.equal('{"summary":"run 1"}');
    await first;
    expect(world.facilitator.settles).to.equal(1);
  });

  it('once the answer was read, the next payment for the same call is a new sale', async () => {
    expect(read(await world.redeem(world.payment({ payer })))).to.equal('{"summary":"run 1"}');
    expect(read(await other.process(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 2"}');
    expect(world.facilitator.settles).to.equal(2);
  });

  it("if a stranger sends the landed transaction and reads the answer, the buyer's new signature is still not charged", async () => {
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
    expect(read(await other.process(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('if a server without a view of the chain turns a copy away, the ledger records it, and the next signature buys once', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    const hidden = world.redeem(first, { work: () => gate.wait(answer('{"n":1}')) });
    await gate.reached;
    expectUnavailable(await other.turnAway(first, 'The server is busy', 1), /busy/);
    expect(read(await other.process(world.call(world.payment({ payer }))))).to.equal('{"summary":"run 1"}');
    gate.open();
    await hidden;
    expect(world.facilitator.settles).to.equal(1);
  });

  it('if a server that does not know the call turns away a copy of an alias, the sale that the alias redeems counts as unread again', async () => {
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const cut = world.redeem(world.payment({ payer }), { gone: gone.signal });
    await gate.reached;
    gone.abort();
    gate.open();
    await cut;
    const alias = world.payment({ payer });
    expect(read(await world.redeem(alias))).to.equal('{"summary":"run 1"}');
    expectUnavailable(await other.turnAway(alias, 'The server is busy', 1), /busy/);
    expect(read(await world.redeem(world.payment({ payer })))).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
  });

  it('a payment whose callers all hung up before the money was requested is not charged', async () => {
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

  it("a payment that waits for an earlier one with the same payment-identifier buys the answer itself if the earlier one's work fails on another server", async () => {
    const gate = new Gate();
    const failing = world.redeem(world.payment({ payer, identifier: ID }), {
      work: () => gate.wait(failed(502)),
    });
    await gate.reached;
    const second = world.payment({ payer, identifier: ID });
    const answered = other.process(world.call(second));
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

  it('a caller that continues with its own payment, because another one with the same identifier failed, no longer counts as waiting for that one', async () => {
    const gate = new Gate();
    const first = world.payment({ payer, identifier: ID });
    const failing = world.redeem(first, { work: () => gate.wait(failed(502)) });
    await gate.reached;
    const working = new Gate();
    const work = (): Promise<Answer> => working.wait(answer('{"n":2}'));
    const answered = other.process(world.call(world.payment({ payer, identifier: ID }), { work }));
    await until('it waits', async () => (await world.ledger.find(first.checked.id))?.callers === 2);
    gate.open();
    await failing;
    await working.reached;
    const left = await world.ledger.find(first.checked.id);
    working.open();
    expect(read(await answered)).to.equal('{"n":2}');
    expect(left).to.include({ state: 'claimed', attended: false });
  });

  it('a caller whose payment is overtaken by another one with the same payment-identifier waits for that one, and no longer for its own', async () => {
    const [failing, outrun, working] = [new Gate(), new Gate(), new Gate()];
    const first = world.payment({ payer, identifier: ID });
    const failed502 = world.redeem(first, { work: () => failing.wait(failed(502)) });
    await failing.reached;
    const { claim } = world.ledger;
    const ledger = {
      ...world.ledger,
      claim: async (...how: Parameters<typeof claim>) => claim(...(await outrun.wait(how))),
    };
    const copy = world.newCharge({ ledger }).process(world.call(first));
    await until('it waits', async () => (await world.ledger.find(first.checked.id))?.callers === 2);
    failing.open();
    await failed502;
    await outrun.reached;
    const work = (): Promise<Answer> => working.wait(answer('{"n":2}'));
    const second = world.payment({ payer, identifier: ID });
    const selling = other.process(world.call(second, { work }));
    await working.reached;
    outrun.open();
    await until('it waits', async () => (await world.ledger.find(second.checked.id))?.callers === 2);
    const left = await world.ledger.find(first.checked.id);
    working.open();
    expect([read(await selling), read(await copy)]).to.deep.equal(['{"n":2}', '{"n":2}']);
    expect(left).to.include({ state: 'claimed', attended: false });
    expect(world.facilitator.settles).to.equal(1);
  });

  it('if the newest caller hangs up just as its payment redeems an earlier one, an older caller does not take its place', async () => {
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
    const hidden = charge.process(world.call(anew));
    await verifying.reached;
    const newest = charge.process(world.call(anew, { gone: hangsUp.signal }));
    await until('it waits', async () => (await world.ledger.find(anew.checked.id))?.callers === 2);
    verifying.open();
    expectUnavailable(await hidden, /being worked on/);
    await newest;
  });

  it('a copy that waits long enough while the money is moving gets a 503 that says it may have moved', async () => {
    const gate = new Gate();
    const first = world.payment({ payer });
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const here = world.redeem(first);
    await gate.reached;
    expectPending(await world.redeem(first, { holdMs: 50 }));
    gate.open();
    expect(bodyOf(await here)).to.equal('{"summary":"run 1"}');
  });

  it('a copy that arrives after the lease of a run at this server has ended waits for that run before its own begins', async () => {
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

  it('a caller that the ledger has not seen for five seconds is not charged', async () => {
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

describe('a settlement of unknown outcome is requested once more while a caller waits', () => {
  eachInANewWorld();

  const confirm = async (): Promise<boolean> => true;

  async function doubted(askAgainAfterMs: number): Promise<Payment> {
    world.charge = world.newCharge({ confirm, askAgainAfterMs });
    const payment = world.payment();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    expectPending(await world.redeem(payment));
    return payment;
  }

  it('a copy of the payment that arrives before its blockhash expires causes the second request, which counts only if it succeeds', async () => {
    const payment = await doubted(0);
    world.facilitator.onSettle = () => ({ kind: 'settled', signature: SIGNATURE });
    const outcome = await world.redeem(payment);
    expect(bodyOf(outcome)).to.equal('{"summary":"run 1"}');
    expect(outcome).to.have.nested.property('receipt.transaction', SIGNATURE);
    expect(world.facilitator.settles).to.equal(2);
    expect(world.runs).to.equal(1);
  });

  it('a refusal of the second request proves nothing, and there is no third one', async () => {
    const payment = await doubted(0);
    world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    for (let time = 0; time < 3; time++) expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
    expect(world.facilitator.settles).to.equal(2);
  });

  it('there is no second request before the first one had time to land, nor after the blockhash has expired', async () => {
    const early = await doubted(60_000);
    expectPending(await world.redeem(early));
    world.charge = world.newCharge({ confirm, askAgainAfterMs: 0 });
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2_000, height: 900 + 151 });
    expectPending(await world.redeem(early));
    expect(world.facilitator.settles).to.equal(1);
  });
});
