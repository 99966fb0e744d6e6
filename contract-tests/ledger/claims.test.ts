import { expect } from 'chai';
import { CALLER_LIVE_MS } from '../../src/ledger/store.js';
import { OWNER, claim as claimWhole, claimed, delivered, payment, settles } from '../support/ledgers.js';
import { SLOW_MS, eachWithANewLedger, ledger, time } from '../support/ledger-suite.js';
import { aRefund, onEachEngine, PAYER } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

onEachEngine('ledger', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  describe('claims', () => {
    it('give one payment to one of 500 concurrent claims', async () => {
      const request = payment();
      const results = await Promise.all(Array.from({ length: 500 }, () => ledger.claim(request)));
      const kinds = results.map(result => result.kind);
      expect(kinds.filter(kind => kind === 'claimed')).to.have.length(1);
      expect(kinds.filter(kind => kind === 'known')).to.have.length(499);
    });

    it('tell the later caller that the payment is being worked on, and that another caller is waiting for it', async () => {
      const request = payment();
      await ledger.claim(request);
      const later = await ledger.claim({ ...request, requestHash: 'b'.repeat(64) });
      if (later.kind !== 'known') throw new Error(`expected it to be known, got ${later.kind}`);
      expect(later.seen.row).to.include({ requestHash: request.requestHash, leased: true, attended: true });
      time.now += 10_000;
      expect((await ledger.lookUp(request.id, request.payer)).row).to.include({
        leased: true,
        attended: false,
      });
      time.now += 50_000 + SLOW_MS;
      expect((await ledger.find(request.id))?.leased).to.equal(false);
    });

    it('take over a payment that nobody is working on any more, even for another call; earlier callers no longer wait', async () => {
      const request = payment({ after: 1_000, position: 900 });
      const first = await claimWhole(ledger, request);
      await ledger.freeClaim(request.id, first.claim, { keepRun: false });
      const before = await ledger.find(request.id);
      const other = {
        ...request,
        operation: 'textToSpeech',
        requestHash: 'b'.repeat(64),
        after: 2_000,
        position: 1_100,
      };
      const second = await claimWhole(ledger, other);
      expect(second).to.deep.include({ run: 1, caller: { id: request.id, number: 2 } });
      expect(await ledger.find(request.id)).to.include({
        operation: 'textToSpeech',
        requestHash: 'b'.repeat(64),
        callers: 2,
        createdAt: before!.createdAt,
        after: 1_000,
        position: 1_100,
      });
      expect(await ledger.renewCallers([first.caller, second.caller])).to.deep.equal([second.caller]);
      await ledger.freeClaim(request.id, second.claim, { keepRun: false });
      await claimed(ledger, { ...other, position: 500 });
      expect((await ledger.find(request.id))?.position, 'never lower').to.equal(1_100);
    });

    it('take over a freed payment for a request that is waiting for it, which keeps its caller number', async () => {
      const request = payment();
      const first = await claimWhole(ledger, request);
      const copy = await ledger.addCaller(request.id, { proven: false });
      expect((await ledger.claim(request, copy!.caller)).kind, 'while it is worked on').to.equal('known');
      await ledger.freeClaim(request.id, first.claim, { keepRun: true });
      const other = await ledger.claim({ ...request, requestHash: 'b'.repeat(64) }, copy!.caller);
      expect(other.kind, 'another call').to.equal('known');
      const again = await ledger.claim(request, copy!.caller);
      expect(again).to.deep.include({ kind: 'claimed', run: 2, caller: { id: request.id, number: 2 } });
      expect((await ledger.find(request.id))?.callers).to.equal(2);
      time.now += 60_000 + SLOW_MS;
      expect((await ledger.claim(request, copy!.caller)).kind, 'nobody waits').to.equal('known');
    });

    it('keep every field of a payment', async () => {
      const request = payment({
        identifier: 'order-1',
        flow: 'upfront',
        request: '{"n":5}',
        after: 77n,
        position: 66n,
      });
      const claim = await claimed(ledger, request);
      const found = (await ledger.find(request.id))!;
      expect(found.createdAt).to.be.within(time.now, time.now + SLOW_MS);
      expect(found.leaseUntil).to.be.within(time.now + 60_000, time.now + 60_000 + SLOW_MS);
      expect(found.callerUntil).to.be.within(time.now, time.now + CALLER_LIVE_MS + SLOW_MS);
      expect({ ...found, createdAt: 0, leaseUntil: 0, callerUntil: 0 }).to.deep.equal({
        id: request.id,
        operation: 'summarize',
        requestHash: request.requestHash,
        request: '{"n":5}',
        payer: PAYER,
        amount: 10_000n,
        network: OWNER.network,
        method: 'x402-v2',
        evidence: 'AAAA',
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
        after: 77,
        position: 66,
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
        repaid: 0n,
        repaying: 0n,
        repaidBy: null,
        requestId: null,
      });
    });

    it('never take over a payment that was settling', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      time.now += 10 ** 9;
      const again = await ledger.claim(request);
      expect(again.kind).to.equal('known');
      if (again.kind === 'known') expect(again.seen.row?.state).to.equal('settling');
    });

    it('refuse invalid ids and amounts without affecting the others in the same commit', async () => {
      const [bad, huge, good] = await Promise.allSettled([
        ledger.claim(payment({ id: 'nonsense' })),
        ledger.claim(payment({ amount: 10n ** 17n })),
        ledger.claim(payment()),
      ]);
      expect([bad.status, huge.status, good.status]).to.deep.equal(['rejected', 'rejected', 'fulfilled']);
    });
  });

  describe('fencing', () => {
    it('does not let a server that slept through its lease change anything', async () => {
      const request = payment();
      const old = await claimed(ledger, request);
      time.now += 60_000 + SLOW_MS;
      const next = await claimed(ledger, request);
      expect(next).to.be.greaterThan(old);
      const answer = { status: 200, headers: {}, body: Buffer.from('stale') };
      expect(await ledger.saveAnswer(request.id, old, answer)).to.equal(false);
      expect(await settles(ledger, request.id, old)).to.equal(false);
      expect(await ledger.freeClaim(request.id, old, { keepRun: false })).to.equal(false);
      expect(await ledger.extendLease(request.id, old, 99_000)).to.equal(false);
      expect(await ledger.deleteClaim(request.id, old)).to.equal(false);
      expect(await settles(ledger, request.id, next)).to.equal(true);
      expect(await ledger.deliver(request.id, old, { settlement: 's', answerExpiresAt: time.now })).to.equal(
        false,
      );
      expect(await ledger.release(request.id, old, 'no')).to.equal(false);
      expect((await ledger.find(request.id))?.state).to.equal('settling');
      expect(await ledger.answer(request.id)).to.equal(undefined);
    });

    it('gives no old claim number to a row that was deleted and claimed again', async () => {
      const request = payment();
      const old = await claimed(ledger, request);
      expect(await ledger.deleteClaim(request.id, old)).to.equal(true);
      expect(await ledger.find(request.id)).to.equal(undefined);
      expect(await claimed(ledger, request)).to.be.greaterThan(old);
      expect(await settles(ledger, request.id, old)).to.equal(false);
    });

    it('hands an unresolved payment to one of its adopters, and only when nobody is holding it', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      expect(await ledger.adopt(request.id, 1_000)).to.equal(undefined);
      time.now += 60_000 + SLOW_MS;
      const adopters = await Promise.all(Array.from({ length: 20 }, () => ledger.adopt(request.id, 1_000)));
      const winners = adopters.filter(each => each !== undefined);
      expect(winners).to.have.length(1);
      expect(await ledger.owe(request.id, claim, { settlement: 's' })).to.equal(false);
      expect(await ledger.owe(request.id, winners[0]?.claim ?? 0, { settlement: 's' })).to.equal(true);
    });

    it('extends a lease with `hold`, which does not renew callers', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      time.now += 59_000;
      expect(await ledger.extendLease(request.id, claim, 60_000)).to.equal(true);
      time.now += 59_000;
      expect(await ledger.find(request.id)).to.include({ leased: true, attended: false });
      expect((await ledger.claim(request)).kind).to.equal('known');
      expect(await ledger.extendLease(request.id, claim, 0)).to.equal(true);
      time.now += SLOW_MS;
      expect((await ledger.claim(request)).kind).to.equal('claimed');
    });

    it('ends a claim and keeps its row, with its runs and without its answer', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.from('answer') });
      expect(await ledger.freeClaim(request.id, claim, { keepRun: false })).to.equal(true);
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

  describe('identifiers', () => {
    it('lead to the other payment with the same payer and identifier', async () => {
      const first = payment({ identifier: 'x' });
      await delivered(ledger, first);
      const second = await ledger.claim(payment({ identifier: 'x' }));
      expect(second.kind).to.equal('identifier');
      if (second.kind === 'identifier') expect(second.payment.id).to.equal(first.id);
      expect((await ledger.claim(payment({ identifier: 'x', payer: 'Another' }))).kind).to.equal('claimed');
      expect((await ledger.claim(payment({ identifier: 'y' }))).kind).to.equal('claimed');
    });

    it('can be used again, by one payment, once the payment that had them was refunded', async () => {
      const first = payment({ identifier: 'x' });
      const { claim } = await claimWhole(ledger, first);
      await settles(ledger, first.id, claim);
      await ledger.owe(first.id, claim, { settlement: 'sig' });
      expect((await ledger.claim(payment({ identifier: 'x' }))).kind, 'owed').to.equal('identifier');
      expect(await ledger.refund(first.id, aRefund())).to.equal('refunded');
      const second = payment({ identifier: 'x' });
      await delivered(ledger, second);
      expect((await ledger.find(second.id))?.state).to.equal('delivered');
      const third = await ledger.claim(payment({ identifier: 'x' }));
      expect(third).to.have.nested.property('payment.id', second.id);
    });

    it('admit only one of many payments with the same identifier', async () => {
      const results = await Promise.all(
        Array.from({ length: 30 }, () => ledger.claim(payment({ identifier: 'same' }))),
      );
      expect(results.filter(result => result.kind === 'claimed')).to.have.length(1);
      expect(results.filter(result => result.kind === 'identifier')).to.have.length(29);
    });

    it("are not blocked by an ended claim, which can't come back once a new one has the identifier", async () => {
      const first = payment({ identifier: 'x' });
      await claimed(ledger, first);
      time.now += 60_000 + SLOW_MS;
      await claimed(ledger, payment({ identifier: 'x' }));
      expect((await ledger.claim(first)).kind).to.equal('identifier');
    });
  });
}
