import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { TRANSITIONS, STATES, mayTransition, sourcesOf } from '../../src/ledger/states.js';
import type { State } from '../../src/ledger/states.js';
import { claimed, delivered, faultOf, payment, settles } from '../support/ledgers.js';
import { SLOW_MS, eachWithANewLedger, ledger, reopen, time } from '../support/ledger-suite.js';
import { aRefund, onEachEngine } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

describe('ledger: states', () => {
  it('allows exactly the nine legal moves', () => {
    const legal = STATES.flatMap(from =>
      STATES.filter(to =>
        (['work', 'chain', 'operator'] as const).some(ground => mayTransition(from, to, ground)),
      ).map(to => `${from} → ${to}`),
    );
    expect(legal).to.have.members([
      'claimed → settling',
      'claimed → owed',
      'settling → released',
      'settling → delivered',
      'settling → owed',
      'released → delivered',
      'released → owed',
      'owed → delivered',
      'owed → refunded',
    ]);
    expect(TRANSITIONS).to.have.length(9);
  });

  it('lets only the chain revive a released payment, and only the operator refund one', () => {
    expect(sourcesOf('delivered', 'work')).to.have.members(['settling', 'owed']);
    expect(sourcesOf('delivered', 'chain')).to.have.members(['settling', 'owed', 'released']);
    expect(sourcesOf('refunded', 'work')).to.deep.equal([]);
    expect(sourcesOf('refunded', 'operator')).to.deep.equal(['owed']);
    expect(sourcesOf('owed', 'operator')).to.have.members(['claimed', 'settling', 'released']);
    expect(sourcesOf('owed', 'chain')).to.have.members(['settling', 'released']);
  });
});

onEachEngine('ledger', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  describe('a ledger that moves payments between states', () => {
    type Moves = Record<'settling' | 'delivered' | 'owed' | 'released' | 'refunded', () => Promise<unknown>>;

    const transitionsOf = (id: string, claim: number): Moves => ({
      settling: () => settles(ledger, id, claim),
      delivered: () => ledger.deliver(id, claim, { settlement: 's', answerExpiresAt: time.now + 1 }),
      owed: () => ledger.owe(id, claim, { settlement: 's' }),
      released: () => ledger.release(id, claim, 'refused'),
      refunded: async () => (await ledger.refund(id, aRefund())) === 'refunded',
    });
    const paths: Record<State, (keyof Moves)[]> = {
      claimed: [],
      settling: ['settling'],
      released: ['settling', 'released'],
      delivered: ['settling', 'delivered'],
      owed: ['settling', 'owed'],
      refunded: ['settling', 'owed', 'refunded'],
    };

    for (const from of STATES)
      it(`makes no illegal move from ${from}`, async () => {
        for (const to of Object.keys(transitionsOf('', 0)) as (keyof Moves)[]) {
          const request = payment({ id: randomBytes(32).toString('hex') });
          const moves = transitionsOf(request.id, await claimed(ledger, request));
          for (const step of paths[from]) expect(await moves[step](), `${from}: ${step}`).to.equal(true);
          const legal = mayTransition(from, to, to === 'refunded' ? 'operator' : 'work');
          expect(await moves[to](), `${from} → ${to}`).to.equal(legal);
          expect((await ledger.find(request.id))?.state).to.equal(legal ? to : from);
        }
      });

    it('revives a released payment when its transfer is found on the chain', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      await ledger.release(request.id, claim, 'absent');
      expect(await ledger.owe(request.id, claim, { settlement: 'sig' })).to.equal(false);
      expect(await ledger.owe(request.id, claim, { settlement: 'sig', foundOnChain: true })).to.equal(true);
      const owed = (await ledger.find(request.id))!;
      expect(owed).to.include({ state: 'owed', settlement: 'sig' });
      expect(owed.settledAt).to.be.within(time.now, time.now + SLOW_MS);
    });

    it('keeps a signature that was known before sending, and makes exactly one more settle request when nobody is working on the payment', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      expect(await ledger.askAgain(request.id, 1_000), 'never asked').to.equal(undefined);
      const sent = { newestLocal: 1, settlement: 'early signature', evidence: 'BBBB' };
      expect(await ledger.settle(request.id, claim, sent)).to.deep.equal({ kind: 'settling' });
      expect(await ledger.askAgain(request.id, 1_000), 'worked on').to.equal(undefined);
      time.now += 60_000 + SLOW_MS;
      const asked = await Promise.all([1, 2, 3].map(() => ledger.askAgain(request.id, 1_000)));
      const [won, ...others] = asked.filter(each => each !== undefined);
      expect(others).to.deep.equal([]);
      expect(won).to.include({ asks: 2, leased: true, settlement: 'early signature', evidence: 'BBBB' });
      await ledger.extendLease(request.id, won!.claim, 0);
      expect(await ledger.askAgain(request.id, 1_000), 'a third time').to.equal(undefined);
      expect(await ledger.owe(request.id, claim, { settlement: 's' }), 'the first claim').to.equal(false);
      time.now += 60_000 + SLOW_MS;
      expect(await ledger.askAgain(request.id, 1_000), 'a third time').to.equal(undefined);
      expect(await ledger.owe(request.id, won!.claim, { settlement: 's' })).to.equal(true);
    });

    it('accepts one transaction for the refund of one payment only, however many are recorded at once', async () => {
      const requests = Array.from({ length: 5 }, () => payment({ id: randomBytes(32).toString('hex') }));
      for (const { id, ...rest } of requests) {
        const claim = await claimed(ledger, { id, ...rest });
        await settles(ledger, id, claim);
        await ledger.owe(id, claim, { settlement: 's' });
      }
      const paidBack = aRefund();
      const outcomes = await Promise.all(requests.map(({ id }) => ledger.refund(id, paidBack)));
      expect(outcomes.toSorted()).to.deep.equal(['refunded', 'used', 'used', 'used', 'used']);
      const states = await Promise.all(requests.map(async ({ id }) => (await ledger.find(id))?.state));
      expect(states.toSorted()).to.deep.equal(['owed', 'owed', 'owed', 'owed', 'refunded']);
      const last = requests[outcomes.indexOf('used')]!;
      expect(await ledger.refundOf(last.id)).to.equal(undefined);
      expect(await ledger.refund(last.id, aRefund())).to.equal('refunded');
    });

    it('takes an order from its worker when the operator refunds it', async () => {
      const request = payment({ flow: 'upfront' });
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      await ledger.owe(request.id, claim, { settlement: 's' });
      const paidBack = aRefund();
      expect(await ledger.refund(request.id, paidBack)).to.equal('refunded');
      expect(await ledger.refundOf(request.id)).to.deep.equal(paidBack);
      expect(await ledger.extendLease(request.id, claim, 1_000), 'its worker').to.equal(false);
      expect(await ledger.deliver(request.id, claim, { settlement: 's', answerExpiresAt: 1 })).to.equal(
        false,
      );
      expect(await ledger.find(request.id)).to.include({
        state: 'refunded',
        reason: `transaction ${paidBack.signature}`,
      });
    });
  });

  describe('a ledger with limits for unsettled payments', () => {
    it('counts unsettled payments inside the claim, however many come concurrently', async () => {
      const limits = { maxUnsettledPerPayer: 7, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 };
      const results = await Promise.all(Array.from({ length: 40 }, () => ledger.claim(payment({ limits }))));
      expect(results.filter(result => result.kind === 'claimed')).to.have.length(7);
      expect(results.find(result => result.kind !== 'claimed')).to.deep.equal({
        kind: 'limit',
        reason: 'payments',
      });
      expect((await ledger.claim(payment({ limits, payer: 'Another' }))).kind).to.equal('claimed');
    });

    it('recognizes a copy of a payment that is being worked on or settled, even if its payer is at its limit', async () => {
      const limits = { maxUnsettledPerPayer: 1, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 };
      const request = payment({ limits });
      const claim = await claimed(ledger, request);
      expect((await ledger.claim(request)).kind, 'worked on').to.equal('known');
      await settles(ledger, request.id, claim);
      await ledger.extendLease(request.id, claim, 0);
      expect((await ledger.claim(request)).kind, 'settling').to.equal('known');
    });

    it('counts unsettled money exactly', async () => {
      const limits = {
        maxUnsettledPerPayer: 99,
        maxUnsettledAmountPerPayer: 9_007_199_254_740_993n,
        maxRuns: 3,
      };
      await claimed(ledger, payment({ limits, amount: 9_007_199_254_740_992n }));
      expect(await ledger.claim(payment({ limits, amount: 2n }))).to.deep.equal({
        kind: 'limit',
        reason: 'amount',
      });
      expect((await ledger.claim(payment({ limits, amount: 1n }))).kind).to.equal('claimed');
    });

    it('counts settling payments, but neither ended claims nor finished payments', async () => {
      const limits = { maxUnsettledPerPayer: 1, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 };
      const first = payment({ limits });
      await delivered(ledger, first);
      const second = payment({ limits });
      await claimed(ledger, second);
      time.now += 60_000 + SLOW_MS;
      const third = payment({ limits });
      await settles(ledger, third.id, await claimed(ledger, third));
      time.now += 60_000 + SLOW_MS;
      expect((await ledger.claim(payment({ limits }))).kind).to.equal('limit');
    });

    it('runs the work of a payment at most three times', async () => {
      const request = payment();
      for (const run of [1, 2, 3]) {
        const result = await ledger.claim(request);
        expect(result).to.include({ kind: 'claimed', run });
        if (result.kind === 'claimed') await ledger.freeClaim(request.id, result.claim, { keepRun: true });
      }
      expect(await ledger.claim(request)).to.deep.equal({ kind: 'limit', reason: 'runs' });
    });

    it('keeps the count of earlier runs when a later one is undone', async () => {
      const request = payment();
      await ledger.freeClaim(request.id, await claimed(ledger, request), { keepRun: true });
      await ledger.freeClaim(request.id, await claimed(ledger, request), { keepRun: false });
      expect(await ledger.claim(request)).to.include({ kind: 'claimed', run: 2 });
    });

    it('claims nothing while the stored answers fill their budget, and continues when they expire', async () => {
      await reopen({ answerBudgetBytes: 1_000 });
      const first = payment();
      const claim = await claimed(ledger, first);
      const late = payment();
      const lateClaim = await claimed(ledger, late);
      await ledger.saveAnswer(first.id, claim, { status: 200, headers: {}, body: Buffer.alloc(1_000) });
      expect(await ledger.claim(payment())).to.deep.equal({ kind: 'limit', reason: 'answers' });
      const tooMuch = ledger.saveAnswer(late.id, lateClaim, {
        status: 200,
        headers: {},
        body: Buffer.alloc(1_001),
      });
      expect((await faultOf(tooMuch)).code).to.equal('full');
      await reopen({ answerBudgetBytes: 1_000 });
      expect(await ledger.claim(payment())).to.deep.equal({ kind: 'limit', reason: 'answers' });
      time.now += 60_000 + SLOW_MS;
      while ((await ledger.deleteExpiredClaims({ before: 901 })) > 0);
      expect((await ledger.claim(payment())).kind).to.equal('claimed');
    });
  });
}
