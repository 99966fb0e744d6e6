import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { expect } from 'chai';
import type { Listing } from '../src/ledger/books.js';
import { MOVES, STATES, mayMove, sourcesOf } from '../src/ledger/states.js';
import type { State } from '../src/ledger/states.js';
import { CALLER_LIVE_MS, openBooks, openLedger } from '../src/ledger/store.js';
import type { ClaimRequest, Ledger, LedgerOptions, Payment } from '../src/ledger/store.js';
import {
  OWNER,
  claim as claimWhole,
  claimed,
  delivered,
  faultOf,
  payment,
  settles,
} from './support/ledgers.js';
import { aRefund, PLACES, sqlitePlace } from './support/places.js';
import type { Place } from './support/places.js';

/** PostgreSQL's own clock goes on while a test stands still. */
const SLOW_MS = 10_000;

describe('ledger: states', () => {
  it('allows exactly the eight legal moves', () => {
    const legal = STATES.flatMap(from =>
      STATES.filter(to =>
        (['work', 'chain', 'operator'] as const).some(ground => mayMove(from, to, ground)),
      ).map(to => `${from} → ${to}`),
    );
    expect(legal).to.have.members([
      'claimed → settling',
      'settling → released',
      'settling → delivered',
      'settling → owed',
      'released → delivered',
      'released → owed',
      'owed → delivered',
      'owed → refunded',
    ]);
    expect(MOVES).to.have.length(8);
  });

  it('revives a released payment by chain proof only, and refunds by the operator only', () => {
    expect(sourcesOf('delivered', 'work')).to.have.members(['settling', 'owed']);
    expect(sourcesOf('delivered', 'chain')).to.have.members(['settling', 'owed', 'released']);
    expect(sourcesOf('refunded', 'work')).to.deep.equal([]);
    expect(sourcesOf('refunded', 'operator')).to.deep.equal(['owed']);
  });
});

for (const { name, make } of PLACES) {
  if (make) describe(`ledger on ${name}`, () => promises(make));
  else
    describe.skip(`ledger on ${name} (set TEST_DATABASE_URL=postgres://… to run these)`, () =>
      promises(sqlitePlace));
}

function promises(make: () => Promise<Place>): void {
  let place: Place;
  let ledger: Ledger;
  let clock: number;
  const opened: { close: () => Promise<void> }[] = [];

  const open = async (options: Partial<LedgerOptions> = {}): Promise<Ledger> => {
    const result = await openLedger({ url: place.url, ...OWNER, now: () => clock, ...options });
    opened.push(result);
    return result;
  };
  const reopen = async (options: Partial<LedgerOptions> = {}): Promise<Ledger> => {
    await ledger.close();
    return (ledger = await open(options));
  };

  beforeEach(async () => {
    clock = 1_800_000_000_000;
    place = await make();
    ledger = await open();
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map(each => each.close()));
    await place.remove();
  });

  describe('claims', () => {
    it('gives one payment to one of 500 concurrent claims', async () => {
      const request = payment();
      const results = await Promise.all(Array.from({ length: 500 }, () => ledger.claim(request)));
      const kinds = results.map(result => result.kind);
      expect(kinds.filter(kind => kind === 'claimed')).to.have.length(1);
      expect(kinds.filter(kind => kind === 'known')).to.have.length(499);
    });

    it('tells the later caller what is being worked on, and that somebody waits for it', async () => {
      const request = payment();
      await ledger.claim(request);
      const later = await ledger.claim({ ...request, requestHash: 'b'.repeat(64) });
      if (later.kind !== 'known') throw new Error(`expected it to be known, got ${later.kind}`);
      expect(later.seen.row).to.include({ requestHash: request.requestHash, leased: true, attended: true });
      clock += 10_000;
      expect((await ledger.look(request.id, request.payer)).row).to.include({
        leased: true,
        attended: false,
      });
      clock += 50_000 + SLOW_MS;
      expect((await ledger.find(request.id))?.leased).to.equal(false);
    });

    it('takes again what nobody works on any more, also for another call; who waited then waits no more', async () => {
      const request = payment({ slot: 1_000, height: 900 });
      const first = await claimWhole(ledger, request);
      await ledger.free(request.id, first.claim, { keepRun: false });
      const before = await ledger.find(request.id);
      const other = {
        ...request,
        operation: 'textToSpeech',
        requestHash: 'b'.repeat(64),
        slot: 2_000,
        height: 1_100,
      };
      const second = await claimWhole(ledger, other);
      expect(second).to.deep.include({ run: 1, caller: { id: request.id, number: 2 } });
      expect(await ledger.find(request.id)).to.include({
        operation: 'textToSpeech',
        requestHash: 'b'.repeat(64),
        callers: 2,
        createdAt: before!.createdAt,
        claimSlot: 1_000,
        claimHeight: 1_100,
      });
      expect(await ledger.renew([first.caller, second.caller])).to.deep.equal([second.caller]);
      await ledger.free(request.id, second.claim, { keepRun: false });
      await claimed(ledger, { ...other, height: 500 });
      expect((await ledger.find(request.id))?.claimHeight, 'never lower').to.equal(1_100);
    });

    it('takes again for a request that waits: the same call, and it stays the caller that it was', async () => {
      const request = payment();
      const first = await claimWhole(ledger, request);
      const copy = await ledger.watch(request.id, { proven: false });
      expect((await ledger.claim(request, copy!.caller)).kind, 'while it is worked on').to.equal('known');
      await ledger.free(request.id, first.claim, { keepRun: true });
      const other = await ledger.claim({ ...request, requestHash: 'b'.repeat(64) }, copy!.caller);
      expect(other.kind, 'another call').to.equal('known');
      const again = await ledger.claim(request, copy!.caller);
      expect(again).to.deep.include({ kind: 'claimed', run: 2, caller: { id: request.id, number: 2 } });
      expect((await ledger.find(request.id))?.callers).to.equal(2);
      clock += 60_000 + SLOW_MS;
      expect((await ledger.claim(request, copy!.caller)).kind, 'nobody waits').to.equal('known');
    });

    it('keeps every field of a payment', async () => {
      const request = payment({
        identifier: 'order-1',
        flow: 'upfront',
        request: '{"n":5}',
        slot: 77n,
        height: 66n,
      });
      const claim = await claimed(ledger, request);
      const found = (await ledger.find(request.id))!;
      expect(found.createdAt).to.be.within(clock, clock + SLOW_MS);
      expect(found.leaseUntil).to.be.within(clock + 60_000, clock + 60_000 + SLOW_MS);
      expect(found.callerUntil).to.be.within(clock + CALLER_LIVE_MS, clock + CALLER_LIVE_MS + SLOW_MS);
      expect({ ...found, createdAt: 0, leaseUntil: 0, callerUntil: 0 }).to.deep.equal({
        id: request.id,
        operation: 'summarize',
        requestHash: request.requestHash,
        request: '{"n":5}',
        payer: 'Payer111',
        amount: 10_000n,
        network: OWNER.network,
        x402Version: 2,
        transaction: 'AAAA',
        identifier: 'order-1',
        flow: 'upfront',
        state: 'claimed',
        claim,
        owner: ledger.owner,
        leaseUntil: 0,
        leased: true,
        callers: 1,
        callerUntil: 0,
        attended: true,
        runs: 1,
        asks: 0,
        claimSlot: 77,
        claimHeight: 66,
        settlement: null,
        reason: null,
        aliasOf: null,
        createdAt: 0,
        settlingAt: null,
        settledAt: null,
        decidedAt: null,
        writtenTo: null,
        writtenAt: null,
        auditedAt: null,
        answerExpiresAt: null,
      });
    });

    it('never claims again what was settling', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      clock += 10 ** 9;
      const again = await ledger.claim(request);
      expect(again.kind).to.equal('known');
      if (again.kind === 'known') expect(again.seen.row?.state).to.equal('settling');
    });

    it('refuses ids and amounts that no payment has, without disturbing the others of the same turn', async () => {
      const [bad, huge, good] = await Promise.allSettled([
        ledger.claim(payment({ id: 'nonsense' })),
        ledger.claim(payment({ amount: 10n ** 17n })),
        ledger.claim(payment()),
      ]);
      expect([bad.status, huge.status, good.status]).to.deep.equal(['rejected', 'rejected', 'fulfilled']);
    });
  });

  describe('fencing', () => {
    it('lets a server that slept through its lease change nothing', async () => {
      const request = payment();
      const old = await claimed(ledger, request);
      clock += 60_000 + SLOW_MS;
      const next = await claimed(ledger, request);
      expect(next).to.be.greaterThan(old);
      const answer = { status: 200, headers: {}, body: Buffer.from('stale') };
      expect(await ledger.saveAnswer(request.id, old, answer)).to.equal(false);
      expect(await settles(ledger, request.id, old)).to.equal(false);
      expect(await ledger.free(request.id, old, { keepRun: false })).to.equal(false);
      expect(await ledger.hold(request.id, old, 99_000)).to.equal(false);
      expect(await ledger.forget(request.id, old)).to.equal(false);
      expect(await settles(ledger, request.id, next)).to.equal(true);
      expect(await ledger.deliver(request.id, old, { settlement: 's', answerExpiresAt: clock })).to.equal(
        false,
      );
      expect(await ledger.release(request.id, old, 'no')).to.equal(false);
      expect((await ledger.find(request.id))?.state).to.equal('settling');
      expect(await ledger.answer(request.id)).to.equal(undefined);
    });

    it('gives no old claim number to a row that was deleted and claimed anew', async () => {
      const request = payment();
      const old = await claimed(ledger, request);
      expect(await ledger.forget(request.id, old)).to.equal(true);
      expect(await ledger.find(request.id)).to.equal(undefined);
      expect(await claimed(ledger, request)).to.be.greaterThan(old);
      expect(await settles(ledger, request.id, old)).to.equal(false);
    });

    it('hands an undecided payment to one of its adopters, and only when nobody holds it', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      expect(await ledger.adopt(request.id, 1_000)).to.equal(undefined);
      clock += 60_000 + SLOW_MS;
      const adopters = await Promise.all(Array.from({ length: 20 }, () => ledger.adopt(request.id, 1_000)));
      const winners = adopters.filter(each => each !== undefined);
      expect(winners).to.have.length(1);
      expect(await ledger.owe(request.id, claim, { settlement: 's' })).to.equal(false);
      expect(await ledger.owe(request.id, winners[0]?.claim ?? 0, { settlement: 's' })).to.equal(true);
    });

    it('extends a lease with hold, which says nothing of callers', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      clock += 59_000;
      expect(await ledger.hold(request.id, claim, 60_000)).to.equal(true);
      clock += 59_000;
      expect(await ledger.find(request.id)).to.include({ leased: true, attended: false });
      expect((await ledger.claim(request)).kind).to.equal('known');
      expect(await ledger.hold(request.id, claim, 0)).to.equal(true);
      clock += SLOW_MS;
      expect((await ledger.claim(request)).kind).to.equal('claimed');
    });

    it('ends a claim and keeps its row, with its runs and without its answer', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.from('answer') });
      expect(await ledger.free(request.id, claim, { keepRun: false })).to.equal(true);
      expect(await ledger.find(request.id)).to.include({
        state: 'claimed',
        leased: false,
        attended: true,
        runs: 0,
      });
      expect(await ledger.answer(request.id)).to.equal(undefined);
      expect(ledger.answerBytes()).to.equal(0);
      expect(await settles(ledger, request.id, claim), 'ended').to.equal(false);
    });
  });

  describe('moves', () => {
    type Moves = Record<'settling' | 'delivered' | 'owed' | 'released' | 'refunded', () => Promise<unknown>>;

    const movesOf = (id: string, claim: number): Moves => ({
      settling: () => settles(ledger, id, claim),
      delivered: () => ledger.deliver(id, claim, { settlement: 's', answerExpiresAt: clock + 1 }),
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
        for (const to of Object.keys(movesOf('', 0)) as (keyof Moves)[]) {
          const request = payment({ id: randomBytes(32).toString('hex') });
          const moves = movesOf(request.id, await claimed(ledger, request));
          for (const step of paths[from]) expect(await moves[step](), `${from}: ${step}`).to.equal(true);
          const legal = mayMove(from, to, to === 'refunded' ? 'operator' : 'work');
          expect(await moves[to](), `${from} → ${to}`).to.equal(legal);
          expect((await ledger.find(request.id))?.state).to.equal(legal ? to : from);
        }
      });

    it('revives a released payment when its transfer is found on chain', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      await ledger.release(request.id, claim, 'absent');
      expect(await ledger.owe(request.id, claim, { settlement: 'sig' })).to.equal(false);
      expect(await ledger.owe(request.id, claim, { settlement: 'sig', foundOnChain: true })).to.equal(true);
      const owed = (await ledger.find(request.id))!;
      expect(owed).to.include({ state: 'owed', settlement: 'sig' });
      expect(owed.settledAt).to.be.within(clock, clock + SLOW_MS);
    });

    it('keeps a signature known before sending, and asks a second time, once, when nobody works on it', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      expect(await ledger.askAgain(request.id, 1_000), 'never asked').to.equal(undefined);
      const sent = { newestLocal: 1, settlement: 'early signature', transaction: 'BBBB' };
      expect(await ledger.settle(request.id, claim, sent)).to.deep.equal({ kind: 'settling' });
      expect(await ledger.askAgain(request.id, 1_000), 'worked on').to.equal(undefined);
      clock += 60_000 + SLOW_MS;
      const asked = await Promise.all([1, 2, 3].map(() => ledger.askAgain(request.id, 1_000)));
      const [won, ...others] = asked.filter(each => each !== undefined);
      expect(others).to.deep.equal([]);
      expect(won).to.include({ asks: 2, leased: true, settlement: 'early signature', transaction: 'BBBB' });
      await ledger.hold(request.id, won!.claim, 0);
      expect(await ledger.askAgain(request.id, 1_000), 'a third time').to.equal(undefined);
      expect(await ledger.owe(request.id, claim, { settlement: 's' }), 'the first claim').to.equal(false);
      clock += 60_000 + SLOW_MS;
      expect(await ledger.askAgain(request.id, 1_000), 'a third time').to.equal(undefined);
      expect(await ledger.owe(request.id, won!.claim, { settlement: 's' })).to.equal(true);
    });

    it('takes one transaction for the refund of one payment only, however many are recorded at once', async () => {
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
      expect(await ledger.hold(request.id, claim, 1_000), 'its worker').to.equal(false);
      expect(await ledger.deliver(request.id, claim, { settlement: 's', answerExpiresAt: 1 })).to.equal(
        false,
      );
      expect(await ledger.find(request.id)).to.include({
        state: 'refunded',
        reason: `transaction ${paidBack.signature}`,
      });
    });
  });

  describe('limits', () => {
    it('counts unsettled payments inside the claim, however many come at once', async () => {
      const limits = { maxUnsettledPerPayer: 7, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 };
      const results = await Promise.all(Array.from({ length: 40 }, () => ledger.claim(payment({ limits }))));
      expect(results.filter(result => result.kind === 'claimed')).to.have.length(7);
      expect(results.find(result => result.kind !== 'claimed')).to.deep.equal({
        kind: 'limit',
        reason: 'payments',
      });
      expect((await ledger.claim(payment({ limits, payer: 'Another' }))).kind).to.equal('claimed');
    });

    it('knows a copy of what is worked on, or was settled, though its payer has no room left', async () => {
      const limits = { maxUnsettledPerPayer: 1, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 };
      const request = payment({ limits });
      const claim = await claimed(ledger, request);
      expect((await ledger.claim(request)).kind, 'worked on').to.equal('known');
      await settles(ledger, request.id, claim);
      await ledger.hold(request.id, claim, 0);
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
      clock += 60_000 + SLOW_MS;
      const third = payment({ limits });
      await settles(ledger, third.id, await claimed(ledger, third));
      clock += 60_000 + SLOW_MS;
      expect((await ledger.claim(payment({ limits }))).kind).to.equal('limit');
    });

    it('gives a payment three runs of its work', async () => {
      const request = payment();
      for (const run of [1, 2, 3]) {
        const result = await ledger.claim(request);
        expect(result).to.include({ kind: 'claimed', run });
        if (result.kind === 'claimed') await ledger.free(request.id, result.claim, { keepRun: true });
      }
      expect(await ledger.claim(request)).to.deep.equal({ kind: 'limit', reason: 'runs' });
    });

    it('does not forget former runs when a later one is taken back', async () => {
      const request = payment();
      await ledger.free(request.id, await claimed(ledger, request), { keepRun: true });
      await ledger.free(request.id, await claimed(ledger, request), { keepRun: false });
      expect(await ledger.claim(request)).to.include({ kind: 'claimed', run: 2 });
    });

    it('claims nothing while the stored answers fill their budget, and goes on when they expire', async () => {
      ledger = await reopen({ answerBudgetBytes: 1_000 });
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
      ledger = await reopen({ answerBudgetBytes: 1_000 });
      expect(await ledger.claim(payment())).to.deep.equal({ kind: 'limit', reason: 'answers' });
      clock += 60_000 + SLOW_MS;
      while ((await ledger.dead({ height: 1_201 })) > 0);
      expect((await ledger.claim(payment())).kind).to.equal('claimed');
    });
  });

  describe('identifiers', () => {
    it('finds the other payment of the same payer and identifier', async () => {
      const first = payment({ identifier: 'x' });
      await delivered(ledger, first);
      const second = await ledger.claim(payment({ identifier: 'x' }));
      expect(second.kind).to.equal('identifier');
      if (second.kind === 'identifier') expect(second.payment.id).to.equal(first.id);
      expect((await ledger.claim(payment({ identifier: 'x', payer: 'Another' }))).kind).to.equal('claimed');
      expect((await ledger.claim(payment({ identifier: 'y' }))).kind).to.equal('claimed');
    });

    it('lets one of many payments with one identifier through', async () => {
      const results = await Promise.all(
        Array.from({ length: 30 }, () => ledger.claim(payment({ identifier: 'same' }))),
      );
      expect(results.filter(result => result.kind === 'claimed')).to.have.length(1);
      expect(results.filter(result => result.kind === 'identifier')).to.have.length(29);
    });

    it('is not held up by an ended claim, which then can not come back beside the new one', async () => {
      const first = payment({ identifier: 'x' });
      await claimed(ledger, first);
      clock += 60_000 + SLOW_MS;
      await claimed(ledger, payment({ identifier: 'x' }));
      expect((await ledger.claim(first)).kind).to.equal('identifier');
    });
  });

  describe('answers', () => {
    it('come back byte for byte', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      const body = Buffer.concat([Buffer.from([0, 255, 0, 128]), randomBytes(300_000)]);
      const headers = { 'content-type': 'audio/wav', 'x-tts-voice-id': 'ünï"\\\n' };
      expect(await ledger.saveAnswer(request.id, claim, { status: 200, headers, body })).to.equal(true);
      await settles(ledger, request.id, claim);
      await ledger.deliver(request.id, claim, { settlement: 's', answerExpiresAt: clock + 1_000 });
      ledger = await reopen();
      const answer = await ledger.answer(request.id);
      expect(answer?.headers).to.deep.equal(headers);
      expect(answer?.status).to.equal(200);
      expect(answer?.expiresAt).to.equal(clock + 1_000);
      expect(answer?.body.equals(body)).to.equal(true);
    });

    it('are kept while undecided, however long, and pruned after they expired', async () => {
      const settling = payment();
      const claim = await claimed(ledger, settling);
      await ledger.saveAnswer(settling.id, claim, { status: 200, headers: {}, body: Buffer.from('kept') });
      await settles(ledger, settling.id, claim);
      const done = payment();
      await delivered(ledger, done, clock + 1_000);
      expect(await ledger.prune()).to.equal(0);
      clock += 10 ** 9;
      expect(await ledger.answer(done.id)).to.equal(undefined);
      expect(await ledger.prune()).to.equal(1);
      expect(await ledger.prune()).to.equal(0);
      expect((await ledger.answer(settling.id))?.body.toString()).to.equal('kept');
      expect(ledger.answerBytes()).to.equal(4);
      expect((await ledger.find(done.id))?.state).to.equal('delivered');
    });

    it('are replaced by a later run, and the budget knows', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.alloc(500) });
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.from('second') });
      expect((await ledger.answer(request.id))?.body.toString()).to.equal('second');
      expect(ledger.answerBytes()).to.equal(6);
      await ledger.free(request.id, claim, { keepRun: false });
      expect(ledger.answerBytes()).to.equal(0);
    });
  });

  describe('payers', () => {
    it('are known after a delivery, until one of their payments is refused', async () => {
      await ledger.refused('Payer111');
      expect(await ledger.payerKnown('Payer111')).to.equal(false);
      await delivered(ledger, payment());
      expect(await ledger.payerKnown('Payer111')).to.equal(true);
      expect(await ledger.claim(payment())).to.include({ kind: 'claimed', payerKnown: true });
      await ledger.refused('Payer111');
      expect(await ledger.claim(payment())).to.include({ kind: 'claimed', payerKnown: false });
      await delivered(ledger, payment());
      expect(await ledger.payerKnown('Payer111')).to.equal(true);
    });
  });

  describe('upkeep', () => {
    it('deletes what never settled and is dead, in slices, and nothing else', async () => {
      const requests = Array.from({ length: 250 }, () => payment());
      await Promise.all(requests.map(request => ledger.claim(request)));
      const settling = payment();
      await settles(ledger, settling.id, await claimed(ledger, settling));
      expect(await ledger.dead({ height: 5_000 })).to.equal(0);
      clock += 60_000 + SLOW_MS;
      expect(await ledger.dead({ height: 1_200 })).to.equal(0);
      const slices: number[] = [];
      for (let deleted = -1; deleted !== 0; slices.push(deleted))
        deleted = await ledger.dead({ height: 1_201 });
      expect(slices).to.deep.equal([100, 100, 50, 0]);
      expect((await ledger.find(settling.id))?.state).to.equal('settling');
    });

    it('lists by state in pages and sums per state', async () => {
      for (let made = 0; made < 3; made += 1) {
        await delivered(ledger, payment({ amount: 25_000n }));
        clock += 1;
      }
      await claimed(ledger, payment());
      const page = await ledger.list({ state: 'delivered', limit: 2 });
      const [, last] = page;
      if (!last) throw new Error('expected two payments');
      const rest = await ledger.list({ state: 'delivered', after: last });
      expect(new Set([...page, ...rest].map(each => each.id)).size).to.equal(3);
      const counts = await ledger.counts();
      expect(counts.delivered).to.deep.equal({ payments: 3, amount: 75_000n });
      expect(counts.claimed).to.deep.equal({ payments: 1, amount: 10_000n });
      expect(counts.owed).to.deep.equal({ payments: 0, amount: 0n });
    });

    /** Three of a state to a millisecond, in every state, of two payers and operations, with leases of two lengths. */
    async function variety(): Promise<Payment[]> {
      const made: Payment[] = [];
      for (let n = 0; n < 48; n += 1) {
        clock += n % 3 === 0 ? 1 : 0;
        const payer = `Payer${n % 2}`;
        const operation = n % 4 < 2 ? 'summarize' : 'textToSpeech';
        const request = payment({ flow: 'upfront', payer, operation, leaseMs: n % 5 === 0 ? 10 : 60_000 });
        await reach(STATES[Math.floor(n / 3) % STATES.length]!, request);
        made.push((await ledger.find(request.id))!);
      }
      return made.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    }

    async function reach(state: State, request: ClaimRequest): Promise<void> {
      const { id } = request;
      const claim = await claimed(ledger, request);
      if (state === 'claimed') return;
      await settles(ledger, id, claim);
      if (state === 'released') await ledger.release(id, claim, 'absent');
      if (state === 'delivered') await ledger.deliver(id, claim, { settlement: 's', answerExpiresAt: clock });
      if (state === 'owed' || state === 'refunded') await ledger.owe(id, claim, { settlement: 's' });
      if (state === 'refunded') await ledger.refund(id, aRefund());
    }

    it('lists what was asked for: every condition and order, alone and together', async () => {
      const all = await variety();
      clock += 100;
      const after = all[25]!;
      const booked = { from: after.createdAt - 3, to: after.createdAt + 4 };
      const places: { listing: Listing; holds: (each: Payment) => boolean }[] = [
        { listing: {}, holds: () => true },
        { listing: { newest: true }, holds: () => true },
        { listing: { after }, holds: each => all.indexOf(each) > 25 },
        {
          listing: { booked },
          holds: ({ settlingAt, settledAt, createdAt }) => {
            const day = settledAt ?? createdAt;
            return settlingAt !== null && createdAt < booked.to && day >= booked.from && day < booked.to;
          },
        },
      ];
      const filters: Pick<Listing, 'state' | 'payer' | 'operation'>[] = [
        {},
        ...STATES.map(state => ({ state })),
      ]
        .flatMap(each => [each, { ...each, payer: 'Payer1' }, { ...each, payer: 'Nobody' }])
        .flatMap(each => [each, { ...each, operation: 'summarize' }]);
      for (const filter of filters)
        for (const { listing, holds } of places)
          for (const idle of [false, true]) {
            const expected = all
              .filter(each => Object.entries(filter).every(([key, value]) => each[key as 'state'] === value))
              .filter(each => holds(each) && (!idle || each.leaseUntil <= clock));
            if (listing.newest) expected.reverse();
            const found = await ledger.list({ ...filter, ...listing, idle, limit: 5 });
            const ids = (payments: Payment[]): string[] => payments.map(({ id }) => id);
            expect(ids(found), inspect({ ...filter, ...listing, idle })).to.deep.equal(
              ids(expected.slice(0, 5)),
            );
          }
    });

    it('lists settlements until they are audited', async () => {
      const request = payment();
      await delivered(ledger, request);
      const before = clock + SLOW_MS;
      expect((await ledger.unaudited(10, before)).map(each => each.id)).to.deep.equal([request.id]);
      expect(await ledger.audited(request.id)).to.equal(true);
      expect(await ledger.unaudited(10, before)).to.deep.equal([]);
    });

    it('remembers texts across openings', async () => {
      expect(await ledger.getMeta('supported')).to.equal(undefined);
      await ledger.setMeta('supported', '{"kinds":1}');
      await ledger.setMeta('supported', '{"kinds":2}');
      ledger = await reopen();
      expect(await ledger.getMeta('supported')).to.equal('{"kinds":2}');
    });

    it('lists what is to be audited page by page, each settled payment once', async () => {
      const requests = Array.from({ length: 7 }, () => payment());
      // Three were settled in one millisecond.
      for (const [n, request] of requests.entries()) {
        clock += n % 3 === 0 ? 1 : 0;
        await delivered(ledger, request, clock + 100_000);
      }
      const seen: string[] = [];
      let page = await ledger.unaudited(2);
      while (page.length > 0) {
        seen.push(...page.map(({ id }) => id));
        const last = page.at(-1)!;
        page = await ledger.unaudited(2, clock + SLOW_MS, { settledAt: last.settledAt!, id: last.id });
      }
      expect(seen.toSorted()).to.deep.equal(requests.map(({ id }) => id).toSorted());
    });

    it('is read and refunded beside a running server', async () => {
      const request = payment({ flow: 'upfront' });
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      await ledger.owe(request.id, claim, { settlement: 's' });
      const books = await openBooks({ url: place.url });
      opened.push(books);
      expect((await books.list({ state: 'owed' })).map(each => each.id)).to.deep.equal([request.id]);
      expect(await books.refund(request.id, aRefund())).to.equal('refunded');
      expect((await ledger.find(request.id))?.state).to.equal('refunded');
      await claimed(ledger, payment());
      expect((await books.counts()).claimed.payments).to.equal(1);
    });
  });

  describe('one turn of the event loop', () => {
    it('lets a write that can not be done fail alone', async () => {
      const requests = Array.from({ length: 20 }, () => payment());
      const writes = requests.map(request => ledger.claim(request));
      const bad = faultOf(ledger.setMeta('key', null as unknown as string));
      writes.push(...requests.map(request => ledger.claim(request)));
      expect((await bad).code).to.equal('failed');
      const kinds = (await Promise.all(writes)).map(result => result.kind);
      expect(kinds.filter(kind => kind === 'claimed')).to.have.length(20);
      expect((await ledger.counts()).claimed.payments).to.equal(20);
    });

    it('bounds what waits, and does what it accepted', async () => {
      const results = await Promise.allSettled(
        Array.from({ length: 9_000 }, (_, index) => ledger.written({ id: String(index), number: 1 }, 0)),
      );
      const refused = results.filter(result => result.status === 'rejected');
      expect(refused).to.not.have.length(0);
      for (const { reason } of refused) expect(reason).to.include({ name: 'LedgerFault', code: 'busy' });
      expect((await ledger.claim(payment())).kind).to.equal('claimed');
    });
  });

  describe('opening', () => {
    it('changes nothing the second time', async () => {
      const request = payment();
      await delivered(ledger, request);
      const before = await ledger.find(request.id);
      ledger = await reopen();
      ledger = await reopen();
      const still = { leaseUntil: 0, callerUntil: 0, leased: false, attended: false };
      expect({ ...(await ledger.find(request.id)), ...still }).to.deep.equal({ ...before, ...still });
    });

    for (const wrong of [{ payTo: 'Somebody' }, { network: 'solana:other' }])
      it(`refuses a ledger of another ${Object.keys(wrong)[0]} and names both`, async () => {
        await ledger.close();
        const fault = await faultOf(open(wrong));
        expect(fault.code).to.equal('open');
        expect(fault.message)
          .to.include(OWNER.payTo)
          .and.include(Object.values(wrong)[0])
          .and.include('STATE_DIR');
        ledger = await open();
      });

    it('shows no books where there is no ledger', async () => {
      if (!place.url.startsWith('file:')) return;
      const fault = await faultOf(openBooks({ url: place.url.replace('ledger.db', 'missing.db') }));
      expect(fault.message).to.include('missing.db').and.include('start the server once');
    });

    it('begins no empty ledger in a folder that is not there', async () => {
      if (!place.url.startsWith('file:')) return;
      const fault = await faultOf(open({ url: place.url.replace('ledger.db', 'misspelt/ledger.db') }));
      expect(fault.message).to.include('misspelt').and.include('its folder exists');
    });

    it('refuses a URL it does not know', async () => {
      expect((await faultOf(open({ url: 'mysql://x' }))).message).to.include('postgres://');
    });

    it('fails calls after it was closed, with a fault', async () => {
      await ledger.close();
      expect((await faultOf(ledger.claim(payment()))).name).to.equal('LedgerFault');
    });
  });
}
