import { expect } from 'chai';
import type { Answer } from '../../src/sale/outcome.js';
import { answer, bodyOf, eachInANewWorld, Gate, SIGNATURE, world } from '../support/charge-world.js';
import { until } from '../support/faults.js';

/** Logged for each run that was counted and ended without a sale, because the same payment's work then runs again. */
const UNSOLD_RUN =
  'a run of a payment ended without a sale; if the same payment is sent again, its work runs again';

describe('charge: callers that hang up', () => {
  eachInANewWorld();

  it('if all callers hang up before the settlement, the work is aborted, nothing is settled, and the next attempt succeeds', async () => {
    const payment = world.payment();
    const callers = [new AbortController(), new AbortController()];
    const gate = new Gate();
    let signal: AbortSignal | undefined;
    const work = (given: AbortSignal): Promise<Answer> => {
      signal = given;
      return gate.wait(answer('{}'));
    };
    const outcomes = callers.map(({ signal: gone }) => world.redeem(payment, { work, gone }));
    await gate.reached;
    callers[0]?.abort();
    expect(signal?.aborted, 'one is still there').to.equal(false);
    callers[1]?.abort();
    await until('the work is told to stop', () => signal?.aborted === true);
    // Sent again before the first run has ended.
    const next = world.redeem(payment);
    await Promise.all(outcomes);
    gate.open();
    expect(bodyOf(await next)).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
    expect(world.logged).to.deep.equal([UNSOLD_RUN]);
  });

  it('if one of several hangs up, the others are not affected', async () => {
    const payment = world.payment();
    const gone = new AbortController();
    const gate = new Gate();
    const leaver = world.redeem(payment, { work: () => gate.wait(answer('{"n":1}')), gone: gone.signal });
    await gate.reached;
    const others = [1, 2, 3].map(() => world.redeem(payment));
    gone.abort();
    gate.open();
    for (const outcome of await Promise.all(others)) expect(bodyOf(outcome)).to.equal('{"n":1}');
    await leaver;
    expect(world.runs).to.equal(0);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('if all callers hang up before the work begins, no work is done, and no run is counted', async () => {
    const payment = world.payment();
    for (let time = 0; time < 5; time++) {
      const gone = new AbortController();
      const gate = new Gate();
      world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
      const outcome = world.redeem(payment, { gone: gone.signal });
      await gate.reached;
      gone.abort();
      gate.open();
      await outcome;
    }
    await world.redeem(payment, { gone: AbortSignal.abort() });
    expect(world.runs).to.equal(0);
    expect(world.facilitator).to.include({ verifies: 5, settles: 0 });
    expect(world.logged).to.deep.equal([]);
    world.facilitator.onVerify = () => ({ kind: 'valid' });
    expect((await world.redeem(payment)).kind).to.equal('sold');
  });

  it('if a known payer hangs up after the work but before verify has ended, nothing is settled, and the next attempt succeeds', async () => {
    const payer = await world.knownPayer();
    const payment = world.payment({ payer });
    const endOthers = await world.unverifiedRuns(payer);
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
    const first = world.redeem(payment, { gone: gone.signal });
    await gate.reached;
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(world.runs).to.equal(1);
    gone.abort();
    gate.open();
    await first;
    expect(world.facilitator.settles).to.equal(0);
    expect(bodyOf(await world.redeem(payment))).to.equal('{"summary":"run 2"}');
    expect(world.facilitator.settles).to.equal(1);
    await endOthers();
  });

  it('at most 512 callers can wait for a run that its first caller has left', async () => {
    const payment = world.payment();
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const first = world.redeem(payment, { gone: gone.signal });
    await gate.reached;
    gone.abort();
    const calls = Array.from({ length: 520 }, () => world.redeem(payment));
    const early: string[] = [];
    for (const call of calls) void call.then(({ kind }) => early.push(kind));
    const pause = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 20));
    for (let n = 0; n < 250 && early.length < 8; n++) await pause();
    await pause();
    expect(early).to.deep.equal(Array.from({ length: 8 }, () => 'unavailable'));
    gate.open();
    await first;
    const kinds = (await Promise.all(calls)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'sold')).to.have.length(512);
    expect(world.facilitator.settles).to.equal(1);
  });

  it('if the caller hangs up while the money is moving, the payment is settled anyway, and the answer is kept', async () => {
    const payment = world.payment();
    const gone = new AbortController();
    const gate = new Gate();
    world.facilitator.onSettle = () => gate.wait({ kind: 'settled', signature: SIGNATURE });
    const first = world.redeem(payment, { gone: gone.signal });
    await gate.reached;
    gone.abort();
    const again = world.redeem(payment);
    gate.open();
    await first;
    expect(bodyOf(await again)).to.equal('{"summary":"run 1"}');
    expect(world.facilitator.settles).to.equal(1);
    await world.charge.idle();
  });
});
