import { randomBytes } from 'node:crypto';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { expect } from 'chai';
import pg from 'pg';
import { copyLedger } from '../src/ledger/copy.js';
import type { LedgerFault } from '../src/ledger/fault.js';
import type { Listing } from '../src/ledger/books.js';
import { MOVES, STATES, mayMove, sourcesOf } from '../src/ledger/states.js';
import type { State } from '../src/ledger/states.js';
import { openBooks, openLedger } from '../src/ledger/store.js';
import type { ClaimRequest, Ledger, LedgerOptions, Payment } from '../src/ledger/store.js';
import { until } from './support/faults.js';
import { aRefund, PLACES, sqlitePlace } from './support/places.js';
import type { Place } from './support/places.js';

const OWNER = { payTo: 'Receiver111', network: 'solana:test' };

function payment(overrides: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    id: randomBytes(32).toString('hex'),
    operation: 'summarize',
    requestHash: 'a'.repeat(64),
    payer: 'Payer111',
    amount: 10_000n,
    network: OWNER.network,
    x402Version: 2,
    transaction: 'AAAA',
    flow: 'authorization',
    slot: 1_000,
    height: 900,
    leaseMs: 60_000,
    limits: { maxUnsettledPerPayer: 1_000, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 },
    ...overrides,
  };
}

async function claimed(ledger: Ledger, request: ClaimRequest): Promise<number> {
  const result = await ledger.claim(request);
  if (result.kind !== 'claimed') throw new Error(`expected a claim, got ${result.kind}`);
  return result.claim;
}

async function delivered(ledger: Ledger, request: ClaimRequest, answerExpiresAt = Infinity): Promise<number> {
  const claim = await claimed(ledger, request);
  await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.from('{}') });
  expect(await ledger.settling(request.id, claim)).to.equal(true);
  const expires = Math.min(answerExpiresAt, Number.MAX_SAFE_INTEGER);
  const how = { settlement: 'sig', answerExpiresAt: expires };
  expect(await ledger.deliver(request.id, claim, how)).to.equal(true);
  return claim;
}

/** The sale that a newly signed payment for this call would redeem. */
async function earlierOf(
  ledger: Ledger,
  call: Pick<ClaimRequest, 'payer' | 'operation' | 'requestHash'>,
): Promise<Payment | undefined> {
  const asked = payment(call);
  const result = await ledger.claim(asked);
  if (result.kind !== 'claimed') throw new Error(`expected a claim, got ${result.kind}`);
  await ledger.free(asked.id, result.claim, { keepRun: false });
  return result.earlier;
}

async function faultOf(work: Promise<unknown>): Promise<LedgerFault> {
  try {
    await work;
  } catch (error) {
    return error as LedgerFault;
  }
  throw new Error('expected a fault');
}

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
  if (make)
    describe(`ledger on ${name}`, () => {
      promises(make);
      if (name === 'PostgreSQL') severalServers(make);
    });
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
      expect(kinds.filter(kind => kind === 'taken')).to.have.length(499);
    });

    it('tells the later caller what is being worked on and for how long', async () => {
      const request = payment();
      await ledger.claim(request);
      clock += 10_000;
      expect(await ledger.claim({ ...request, requestHash: 'b'.repeat(64) })).to.deep.equal({
        kind: 'taken',
        leaseMs: 50_000,
        requestHash: request.requestHash,
        operation: 'summarize',
      });
    });

    it('does not let a server that slept through its lease ask for the money: its caller may have paid anew', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      clock += request.leaseMs;
      expect(await ledger.settling(request.id, claim)).to.equal(false);
      expect(await ledger.find(request.id)).to.include({ state: 'claimed', asks: 0 });
      const next = await claimed(ledger, request);
      expect(await ledger.settling(request.id, next)).to.equal(true);
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
      expect(await ledger.find(request.id)).to.deep.equal({
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
        leaseUntil: clock + 60_000,
        callerUntil: clock + 60_000,
        runs: 1,
        asks: 0,
        claimSlot: 77,
        claimHeight: 66,
        settlement: null,
        reason: null,
        aliasOf: null,
        createdAt: clock,
        settlingAt: null,
        settledAt: null,
        decidedAt: null,
        writtenAt: null,
        auditedAt: null,
        answerExpiresAt: null,
      });
    });

    it('never claims again what was settling', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await ledger.settling(request.id, claim);
      clock += 10 ** 9;
      const again = await ledger.claim(request);
      expect(again.kind).to.equal('known');
      if (again.kind === 'known') expect(again.payment.state).to.equal('settling');
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
      clock += 60_001;
      const next = await claimed(ledger, request);
      expect(next).to.be.greaterThan(old);
      const answer = { status: 200, headers: {}, body: Buffer.from('stale') };
      expect(await ledger.saveAnswer(request.id, old, answer)).to.equal(false);
      expect(await ledger.settling(request.id, old)).to.equal(false);
      expect(await ledger.free(request.id, old, { keepRun: false })).to.equal(false);
      expect(await ledger.renew(request.id, old, 99_000)).to.equal(false);
      expect(await ledger.settling(request.id, next)).to.equal(true);
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
      await ledger.free(request.id, old, { keepRun: false });
      expect(await ledger.find(request.id)).to.equal(undefined);
      expect(await claimed(ledger, request)).to.be.greaterThan(old);
      expect(await ledger.settling(request.id, old)).to.equal(false);
    });

    it('hands an undecided payment to one of its adopters, and only when nobody holds it', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await ledger.settling(request.id, claim);
      expect(await ledger.adopt(request.id, 1_000)).to.equal(undefined);
      clock += 60_001;
      const adopters = await Promise.all(Array.from({ length: 20 }, () => ledger.adopt(request.id, 1_000)));
      const winners = adopters.filter(each => each !== undefined);
      expect(winners).to.have.length(1);
      expect(await ledger.owe(request.id, claim, { settlement: 's' })).to.equal(false);
      expect(await ledger.owe(request.id, winners[0]?.claim ?? 0, { settlement: 's' })).to.equal(true);
    });

    it('extends a lease with renew and ends it with leave', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      clock += 59_000;
      expect(await ledger.renew(request.id, claim, 60_000)).to.equal(true);
      clock += 59_000;
      expect((await ledger.claim(request)).kind).to.equal('taken');
      expect(await ledger.leave(request.id, claim)).to.equal(false);
      await ledger.settling(request.id, claim);
      expect(await ledger.leave(request.id, claim)).to.equal(true);
      expect(await ledger.adopt(request.id, 1_000)).to.not.equal(undefined);
    });
  });

  describe('moves', () => {
    type Moves = Record<'settling' | 'delivered' | 'owed' | 'released' | 'refunded', () => Promise<unknown>>;

    const movesOf = (id: string, claim: number): Moves => ({
      settling: () => ledger.settling(id, claim),
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
      await ledger.settling(request.id, claim);
      await ledger.release(request.id, claim, 'absent');
      expect(await ledger.owe(request.id, claim, { settlement: 'sig' })).to.equal(false);
      expect(await ledger.owe(request.id, claim, { settlement: 'sig', foundOnChain: true })).to.equal(true);
      expect(await ledger.find(request.id)).to.include({
        state: 'owed',
        settlement: 'sig',
        settledAt: clock,
      });
    });

    it('counts every ask and keeps a signature known before sending', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      expect(await ledger.askAgain(request.id, claim)).to.equal(false);
      await ledger.settling(request.id, claim, { settlement: 'early signature', transaction: 'BBBB' });
      expect(await ledger.askAgain(request.id, claim)).to.equal(true);
      expect(await ledger.find(request.id)).to.include({
        asks: 2,
        settlement: 'early signature',
        transaction: 'BBBB',
      });
    });

    it('records once that an answer was written', async () => {
      const request = payment();
      expect(await ledger.written(request.id)).to.equal(false);
      await delivered(ledger, request);
      expect(await ledger.written(request.id)).to.equal(true);
      clock += 5;
      expect(await ledger.written(request.id)).to.equal(false);
      expect((await ledger.find(request.id))?.writtenAt).to.equal(clock - 5);
    });

    it('takes one transaction for the refund of one payment only, however many are recorded at once', async () => {
      const requests = Array.from({ length: 5 }, () => payment({ id: randomBytes(32).toString('hex') }));
      for (const { id, ...rest } of requests) {
        const claim = await claimed(ledger, { id, ...rest });
        await ledger.settling(id, claim);
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
      await ledger.settling(request.id, claim);
      await ledger.owe(request.id, claim, { settlement: 's' });
      const paidBack = aRefund();
      expect(await ledger.refund(request.id, paidBack)).to.equal('refunded');
      expect(await ledger.refundOf(request.id)).to.deep.equal(paidBack);
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
      clock += 60_001;
      const third = payment({ limits });
      await ledger.settling(third.id, await claimed(ledger, third));
      clock += 60_001;
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
      clock += 60_001;
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
      clock += 60_001;
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
      await ledger.settling(request.id, claim);
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
      await ledger.settling(settling.id, claim);
      const done = payment();
      await delivered(ledger, done, clock + 1_000);
      expect(await ledger.prune()).to.equal(0);
      clock += 10 ** 9;
      expect(await ledger.answer(done.id)).to.equal(undefined);
      expect(await ledger.prune()).to.equal(1);
      expect(await ledger.prune()).to.equal(0);
      expect((await ledger.answer(settling.id))?.body.toString()).to.equal('kept');
      expect(ledger.answerBytes).to.equal(4);
      expect((await ledger.find(done.id))?.state).to.equal('delivered');
    });

    it('are replaced by a later run, and the budget knows', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.alloc(500) });
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.from('second') });
      expect((await ledger.answer(request.id))?.body.toString()).to.equal('second');
      expect(ledger.answerBytes).to.equal(6);
      await ledger.free(request.id, claim, { keepRun: false });
      expect(ledger.answerBytes).to.equal(0);
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

  describe('aliases', () => {
    const call = { payer: 'Payer111', operation: 'summarize', requestHash: 'a'.repeat(64) };

    it('attach a new signature to a paid call whose caller is gone, and are never settled', async () => {
      const first = payment();
      const claim = await claimed(ledger, first);
      await ledger.settling(first.id, claim);
      expect(await earlierOf(ledger, call)).to.equal(undefined);
      await ledger.leave(first.id, claim);
      expect((await earlierOf(ledger, call))?.id).to.equal(first.id);
      expect(await ledger.adopt(first.id, 30_000)).to.not.equal(undefined);
      expect((await earlierOf(ledger, call))?.id, 'while it is being looked up').to.equal(first.id);
      const second = payment();
      const alias = await claimed(ledger, second);
      expect(await ledger.attach(second.id, alias, first.id)).to.equal(true);
      expect(await ledger.settling(second.id, alias)).to.equal(false);
      const again = await ledger.claim(second);
      expect(again.kind).to.equal('known');
      if (again.kind === 'known') expect(again.payment.aliasOf).to.equal(first.id);
    });

    it('do not attach to what was written out, to another call, or beside an identifier', async () => {
      const first = payment();
      await delivered(ledger, first);
      clock += 60_001;
      expect((await earlierOf(ledger, call))?.id).to.equal(first.id);
      expect(await earlierOf(ledger, { ...call, requestHash: 'b' })).to.equal(undefined);
      const marked = payment({ identifier: 'new sale' });
      expect(await ledger.attach(marked.id, await claimed(ledger, marked), first.id)).to.equal(false);
      const other = payment({ requestHash: 'b'.repeat(64) });
      expect(await ledger.attach(other.id, await claimed(ledger, other), first.id)).to.equal(false);
      await ledger.written(first.id);
      expect(await earlierOf(ledger, call)).to.equal(undefined);
      const late = payment();
      expect(await ledger.attach(late.id, await claimed(ledger, late), first.id)).to.equal(false);
    });

    it('are 32 at most of one sale: beyond that a new signature is sent away, and nothing of it stays', async () => {
      const first = payment();
      const claim = await claimed(ledger, first);
      await ledger.settling(first.id, claim);
      await ledger.leave(first.id, claim);
      const early = payment();
      const waiting = await claimed(ledger, early);
      for (let n = 0; n < 32; n += 1) {
        const again = payment();
        expect(await ledger.attach(again.id, await claimed(ledger, again), first.id)).to.equal(true);
      }
      const late = payment();
      expect(await ledger.claim(late)).to.deep.equal({ kind: 'limit', reason: 'aliases' });
      expect(await ledger.find(late.id)).to.equal(undefined);
      expect(await ledger.attach(early.id, waiting, first.id), 'claimed before').to.equal(false);
      expect((await ledger.claim(payment({ identifier: 'another sale' }))).kind).to.equal('claimed');
      expect((await ledger.claim(payment({ requestHash: 'b'.repeat(64) }))).kind).to.equal('claimed');
    });

    it('outlive their blockhash as long as there is something to redeem', async () => {
      const first = payment();
      await delivered(ledger, first, clock + 100_000);
      clock += 60_001;
      const second = payment();
      await ledger.attach(second.id, await claimed(ledger, second), first.id);
      expect(await ledger.dead({ height: 9_999 })).to.equal(0);
      clock += 100_000;
      await ledger.prune();
      expect(await ledger.dead({ height: 9_999 })).to.equal(1);
      expect(await ledger.find(second.id)).to.equal(undefined);
    });
  });

  describe('upkeep', () => {
    it('deletes what never settled and is dead, in slices, and nothing else', async () => {
      const requests = Array.from({ length: 250 }, () => payment());
      await Promise.all(requests.map(request => ledger.claim(request)));
      const settling = payment();
      await ledger.settling(settling.id, await claimed(ledger, settling));
      expect(await ledger.dead({ height: 5_000 })).to.equal(0);
      clock += 60_001;
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
      await ledger.settling(id, claim);
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
          holds: ({ settlingAt, createdAt }) =>
            settlingAt !== null && createdAt >= booked.from && createdAt < booked.to,
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
            expect(found, inspect({ ...filter, ...listing, idle })).to.deep.equal(expected.slice(0, 5));
          }
    });

    it('lists settlements until they are audited', async () => {
      const request = payment();
      await delivered(ledger, request);
      expect((await ledger.unaudited(10)).map(each => each.id)).to.deep.equal([request.id]);
      expect(await ledger.audited(request.id)).to.equal(true);
      expect(await ledger.unaudited(10)).to.deep.equal([]);
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
        page = await ledger.unaudited(2, clock, { settledAt: last.settledAt!, id: last.id });
      }
      expect(seen.toSorted()).to.deep.equal(requests.map(({ id }) => id).toSorted());
    });

    it('is read and refunded beside a running server', async () => {
      const request = payment({ flow: 'upfront' });
      const claim = await claimed(ledger, request);
      await ledger.settling(request.id, claim);
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
        Array.from({ length: 9_000 }, (_, index) => ledger.written(String(index))),
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
      expect({ ...(await ledger.find(request.id)), leaseUntil: 0, callerUntil: 0 }).to.deep.equal({
        ...before,
        leaseUntil: 0,
        callerUntil: 0,
      });
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

function severalServers(make: () => Promise<Place>): void {
  describe('several servers', () => {
    let place: Place;
    let servers: Ledger[];

    beforeEach(async () => {
      place = await make();
      servers = await Promise.all([1, 2, 3, 4].map(() => openLedger({ url: place.url, ...OWNER })));
    });

    afterEach(async () => {
      await Promise.all(servers.map(server => server.close()));
      await place.remove();
    });

    it('give each of 50 payments to one of them', async () => {
      const requests = Array.from({ length: 50 }, () => payment());
      const results = await Promise.all(
        servers.flatMap(server => requests.map(async request => (await server.claim(request)).kind)),
      );
      expect(results.filter(kind => kind === 'claimed')).to.have.length(50);
      expect(results.filter(kind => kind === 'taken')).to.have.length(150);
    });

    it('count one limit together', async () => {
      const limits = { maxUnsettledPerPayer: 5, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 };
      const results = await Promise.all(
        servers.flatMap(server =>
          Array.from({ length: 10 }, async () => (await server.claim(payment({ limits }))).kind),
        ),
      );
      expect(results.filter(kind => kind === 'claimed')).to.have.length(5);
    });

    it('sell a payment-identifier once, whatever isolation the database has as its default', async () => {
      const url = new URL(place.url);
      const options = url.searchParams.get('options') ?? '';
      url.searchParams.set('options', `${options} -cdefault_transaction_isolation=repeatable\\ read`);
      const strict = await Promise.all([1, 2].map(() => openLedger({ url: url.href, ...OWNER })));
      const settlements = await Promise.all(
        Array.from({ length: 80 }, async (_, n) => {
          const server = strict[n % 2]!;
          const request = payment({ identifier: `purchase ${n % 20}` });
          const result = await server.claim(request);
          return result.kind === 'claimed' && (await server.settling(request.id, result.claim)) ? 1 : 0;
        }),
      ).finally(() => Promise.all(strict.map(server => server.close())));
      expect(settlements.reduce<number>((sum, each) => sum + each, 0)).to.equal(20);
    });

    it('know the callers of a server that is gone to be gone: a new signature attaches', async () => {
      const [first, second] = servers as [Ledger, Ledger];
      const call = { payer: 'Payer111', operation: 'summarize', requestHash: 'a'.repeat(64) };
      const sold = payment();
      const claim = await claimed(first, sold);
      await first.settling(sold.id, claim);
      expect(await earlierOf(second, call), 'while it lives').to.equal(undefined);
      const again = payment();
      const newer = await claimed(second, again);
      expect(await second.attach(again.id, newer, sold.id), 'while it lives').to.equal(false);
      await first.close();
      expect((await earlierOf(second, call))?.id).to.equal(sold.id);
      expect(await second.attach(again.id, newer, sold.id)).to.equal(true);
    });

    it('a caller that hangs up while a slow commit makes its payment settling: what it signs next is no second sale', async () => {
      const [first, second] = servers as [Ledger, Ledger];
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      await client.query(
        'create function stall() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return null; end $$;' +
          'create constraint trigger stall after update on payments deferrable initially deferred for each row ' +
          "when (new.state = 'settling' and old.state = 'claimed') execute function stall()",
      );
      await client.end();
      const call = { payer: 'Payer111', operation: 'summarize', requestHash: 'a'.repeat(64) };
      const sold = payment();
      const claim = await claimed(first, sold);
      const moved = first.settling(sold.id, claim, { call, wanted: () => true });
      await new Promise(resolve => setTimeout(resolve, 100));
      const noted = first.callerGone(sold.id);
      const again = payment();
      const newer = await claimed(second, again);
      // Claims of this payer wait for the commit, so that they see what it is.
      expect((await second.find(sold.id))?.state).to.equal('settling');
      await noted;
      expect(await moved).to.equal(true);
      const other = await second.settling(again.id, newer, { call, wanted: () => true });
      expect(other).to.have.nested.property('earlier.id', sold.id);
    });

    it('take over what a server left behind without its callers', async () => {
      const [first, second] = servers as [Ledger, Ledger];
      const sold = payment();
      const claim = await claimed(first, sold);
      await first.settling(sold.id, claim);
      await first.hold(sold.id, claim, 0);
      await first.close();
      await second.adopt(sold.id, 30_000);
      expect((await second.find(sold.id))?.callerUntil).to.equal(0);
    });

    it('close also where PostgreSQL went away without a word', async () => {
      const wire = await halfOpenWire(place.url);
      const server = await openLedger({ url: wire.url, ...OWNER });
      await server.counts();
      wire.stall();
      await server.close();
      await wire.close();
    });

    it('whose connection broke for one side only ask again, and leave no session behind that waits', async () => {
      const wire = await halfOpenWire(place.url);
      const server = await openLedger({ url: wire.url, ...OWNER });
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      const locks = async (granted: boolean): Promise<number> => {
        const { rows } = await client.query<{ locks: number }>(
          `select count(*)::int as locks from pg_locks where classid = 8404 and granted = $2
             and objid = (hashtext($1)::bigint & 4294967295)::oid`,
          [server.owner, granted],
        );
        return rows[0]?.locks ?? 0;
      };
      try {
        const before = wire.connections();
        wire.cutForUs();
        // PostgreSQL still believes in the old connection, and with it in its lock.
        await until('it has asked again', () => wire.connections() > before + 1);
        expect(await locks(false)).to.equal(0);
        expect(await locks(true)).to.equal(1);
        wire.cutForAll();
        await until('it has its lock again', async () => wire.open() === 1 && (await locks(true)) === 1);
      } finally {
        await server.close();
        await client.end();
        await wire.close();
      }
    }).timeout(60_000);

    for (const [what, change, sentence] of [
      [
        'may not be changed by its user',
        (role: string, schema: string) => `grant usage on schema ${schema} to ${role}`,
        /may not create tables.*grant usage, create on schema/,
      ],
      [
        'is read-only',
        (role: string) => `alter role ${role} set default_transaction_read_only = on`,
        /read-only.*primary/,
      ],
      ['has no schema', () => 'select 1', /no schema.*search_path/],
    ] as const)
      it(`do not start on a database that ${what}, and say what to do`, async () => {
        const role = `r${randomBytes(6).toString('hex')}`;
        const client = new pg.Client({ connectionString: place.url });
        await client.connect();
        await client.query(`create role ${role} login`);
        const { rows } = await client.query<{ schema: string }>('select current_schema() as schema');
        await client.query(change(role, rows[0]!.schema));
        const url = new URL(place.url);
        url.username = role;
        try {
          expect((await faultOf(openLedger({ url: url.href, ...OWNER }))).message).to.match(sentence);
        } finally {
          await client.query(`drop owned by ${role}`);
          await client.query(`drop role ${role}`);
          await client.end();
        }
      });

    it('survive the loss of their connections', async () => {
      const request = payment();
      await servers[0]?.claim(request);
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      await client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
      await client.end();
      let row;
      for (let attempt = 0; attempt < 20 && !row; attempt += 1)
        row = await servers[0]?.find(request.id).catch(() => undefined);
      expect(row?.state).to.equal('claimed');
    });

    it('are noticed by a copy, also after they lost their connections', async () => {
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      const ended = (await client.query<{ now: Date }>('select clock_timestamp() as now')).rows[0]?.now;
      await client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
      // Connections that are being ended still hold their locks for a moment.
      const present = async (): Promise<number> =>
        (
          await client.query(
            `select 1 from pg_locks join pg_stat_activity using (pid)
             where locktype = 'advisory' and mode = 'ShareLock' and backend_start > $1`,
            [ended],
          )
        ).rows.length;
      for (let attempt = 0; attempt < 150 && (await present()) < servers.length; attempt += 1)
        await new Promise(resolve => setTimeout(resolve, 100));
      await client.end();
      const target = await sqlitePlace();
      const copy = copyLedger({ from: place.url, to: target.url });
      expect((await faultOf(copy)).message).to.include('Stop every server');
      await target.remove();
    });

    it('leave the claims of a running server alone when another one starts', async () => {
      const request = payment();
      await servers[0]?.claim(request);
      const fifth = await openLedger({ url: place.url, ...OWNER });
      servers.push(fifth);
      expect((await fifth.claim(request)).kind).to.equal('taken');
    });
  });
}

type HalfOpenWire = {
  url: string;
  /** Connections that were made through it, and that are open on both sides. */
  connections: () => number;
  open: () => number;
  /** Breaks every connection on our side alone, as a network does that forgets it. */
  cutForUs: () => void;
  /** Passes nothing on any more, in neither direction. */
  stall: () => void;
  /** What PostgreSQL still holds of them ends, too. */
  cutForAll: () => void;
  close: () => Promise<void>;
};

async function halfOpenWire(target: string): Promise<HalfOpenWire> {
  const { hostname, port } = new URL(target);
  const pairs = new Map<Socket, Socket>();
  const orphans: Socket[] = [];
  let made = 0;
  const proxy = createServer(near => {
    made += 1;
    const far = connect(Number(port), hostname);
    pairs.set(near, far);
    near.pipe(far, { end: false });
    far.pipe(near);
    far.on('error', () => near.destroy());
    near.on('error', () => undefined);
    near.on('close', () => {
      pairs.delete(near);
      if (!orphans.includes(far)) far.end();
    });
  });
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((proxy.address() as AddressInfo).port);
  return {
    url: url.href,
    connections: () => made,
    open: () => pairs.size,
    cutForUs: () => {
      orphans.push(...pairs.values());
      for (const near of pairs.keys()) near.destroy();
    },
    stall: () => {
      for (const [near, far] of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
    cutForAll: () => {
      for (const far of orphans) far.destroy();
    },
    close: async () => {
      for (const end of [...pairs.keys(), ...pairs.values(), ...orphans]) end.destroy();
      await new Promise(resolve => proxy.close(resolve));
    },
  };
}
