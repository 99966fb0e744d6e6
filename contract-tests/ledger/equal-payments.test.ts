import { expect } from 'chai';
import { faultOf, payment } from '../support/ledgers.js';
import { eachWithANewLedger, ledger, reopen, SLOW_MS, time } from '../support/ledger-suite.js';
import { aRefund, onEachEngine } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';
import { LAPSED, MARGIN, copyOf, deliver, abandoned, held, settle, sold } from '../support/held-payments.js';
import type { Held } from '../support/held-payments.js';

onEachEngine('who waits for a payment,', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  describe('an equal payment whose only caller is present', () => {
    it('is a sale of its own once its caller was seen again after the other payment came', async () => {
      const first = await held(ledger);
      time.now += 1_000;
      const second = await held(ledger);
      const { id } = first.request;
      expect(await settle(ledger, second), 'not seen since').to.deep.equal({ kind: 'wait', unseen: [id] });
      expect(await ledger.find(second.request.id), 'nothing has changed').to.include({
        state: 'claimed',
        asks: 0,
        leased: true,
      });
      time.now += MARGIN;
      await ledger.renewCallers([first.caller, second.caller]);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      expect(await settle(ledger, first)).to.deep.equal({ kind: 'settling' });
    });

    it('counts as gone if it has not been seen for too long; then the other payment settles and binds it', async () => {
      const first = await held(ledger);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('wait');
      time.now += LAPSED;
      await ledger.renewCallers([second.caller]);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      expect(await ledger.find(first.request.id)).to.include({
        aliasOf: second.request.id,
        attended: false,
        leased: false,
      });
      expect(await ledger.renewCallers([first.caller]), 'the dead socket').to.deep.equal([]);
      expect(await settle(ledger, first)).to.deep.equal({ kind: 'gone' });
    });

    for (const state of ['settling', 'owed', 'delivered'] as const)
      it(`also keeps another payment from settling while it is ${state}, until its answer has been written`, async () => {
        const first = await held(ledger);
        await settle(ledger, first);
        if (state === 'owed') await ledger.owe(first.request.id, first.claim, { settlement: 's' });
        if (state === 'delivered') await deliver(ledger, first, time.now + 10 ** 9);
        const second = await held(ledger);
        expect(second.earlier).to.equal(false);
        expect((await settle(ledger, second)).kind).to.equal('wait');
        if (state === 'delivered') await ledger.markWritten(first.caller, 0);
        else {
          time.now += MARGIN;
          await ledger.renewCallers([first.caller, second.caller]);
        }
        expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      });

    it('does not match a payment with another payer, operation or body, or with an identifier', async () => {
      await abandoned();
      await held(ledger);
      for (const other of [
        { payer: 'Another' },
        { operation: 'textToSpeech' },
        { requestHash: 'b'.repeat(64) },
        { identifier: 'mine' },
      ]) {
        const one = await held(ledger, other);
        expect(one.earlier).to.equal(false);
        expect(await settle(ledger, one)).to.deep.equal({ kind: 'settling' });
      }
    });
  });

  describe('a newly signed payment', () => {
    for (const state of ['settling', 'owed', 'delivered'] as const)
      it(`redeems an equal one that is ${state} if its answer was not written and its caller left, and is never settled itself`, async () => {
        const first = await held(ledger);
        await settle(ledger, first);
        if (state === 'owed') await ledger.owe(first.request.id, first.claim, { settlement: 's' });
        if (state === 'delivered') await deliver(ledger, first, time.now + 10 ** 9);
        await ledger.removeCaller(first.caller);
        const second = await held(ledger);
        expect(second.earlier).to.equal(true);
        const result = await settle(ledger, second);
        expect(result).to.deep.include({ kind: 'attached', caller: { id: first.request.id, number: 2 } });
        expect(result).to.deep.nested.include({
          'target.id': first.request.id,
          'target.attended': true,
          'target.callers': 2,
        });
        expect(await ledger.find(second.request.id)).to.include({
          state: 'claimed',
          aliasOf: first.request.id,
          leased: false,
          attended: false,
          asks: 0,
        });
        expect(await settle(ledger, second), 'again').to.deep.equal({ kind: 'gone' });
        const known = await ledger.claim(second.request);
        expect(known).to.deep.nested.include({ kind: 'known', 'seen.target.id': first.request.id });
      });

    it('redeems nothing that was bought with an identifier', async () => {
      const marked = await sold({ identifier: 'mine' });
      await ledger.removeCaller(marked.caller);
      const second = await held(ledger);
      expect(second.earlier).to.equal(false);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
    });

    it('also gets the answer of an equal payment that was sent twice', async () => {
      const first = await sold();
      await copyOf(first);
      const second = await held(ledger);
      expect(second.earlier).to.equal(true);
      expect((await settle(ledger, second)).kind).to.equal('attached');
    });

    it("leaves its caller behind if the caller's newest request waits elsewhere", async () => {
      const target = await abandoned();
      const second = await held(ledger);
      await copyOf(second);
      const result = await settle(ledger, second, { newestLocal: 1 });
      expect(result).to.deep.include({ kind: 'attached', caller: undefined });
      expect(await ledger.find(target.request.id)).to.include({ callers: 1, attended: false });
      expect(await ledger.renewCallers([{ id: second.request.id, number: 2 }])).to.deep.equal([]);
    });

    it('is a new sale if the earlier answer was written to its only caller, has expired, or was refunded', async () => {
      const written = await sold();
      await ledger.markWritten(written.caller, 0);
      const second = await held(ledger);
      expect(second.earlier).to.equal(false);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      await ledger.owe(second.request.id, second.claim, { settlement: 's' });
      await ledger.refund(second.request.id, aRefund());
      const third = await held(ledger);
      expect(third.earlier).to.equal(false);
      expect(await settle(ledger, third)).to.deep.equal({ kind: 'settling' });
      await deliver(ledger, third, time.now + 60_000);
      await ledger.removeCaller(third.caller);
      time.now += 61_000;
      const fourth = await held(ledger);
      expect(fourth.earlier).to.equal(false);
      expect(await settle(ledger, fourth)).to.deep.equal({ kind: 'settling' });
    });

    for (const [when, kind] of [
      ['before', 'attached'],
      ['after', 'settling'],
    ] as const)
      it(`is ${kind} if it was signed ${when} an answer went to the last of several callers`, async () => {
        const first = await held(ledger);
        const copy = await copyOf(first);
        expect(await settle(ledger, first, { newestLocal: 2 })).to.deep.equal({ kind: 'settling' });
        await deliver(ledger, first, time.now + 10 ** 9);
        time.now += 1_000;
        const early = when === 'before' ? await held(ledger) : undefined;
        time.now += 1_000;
        await ledger.markWritten(copy, 0);
        time.now += 1_000;
        const second = early ?? (await held(ledger));
        expect(second.earlier).to.equal(when === 'before');
        expect((await settle(ledger, second)).kind).to.equal(kind);
      });

    const REFUNDS = {
      'a part of it was refunded': [
        true,
        (id, amount) => ledger.refund(id, aRefund({ amount: amount - 1n })),
      ],
      'all of it was refunded': [false, (id, amount) => ledger.refund(id, aRefund({ amount }))],
      'all of it is being refunded': [
        false,
        (payment, amount) => ledger.startRepayment({ payment, amount, way: 'key', after: 1 }),
      ],
    } satisfies Record<string, [redeems: boolean, (id: string, amount: bigint) => Promise<unknown>]>;
    for (const [which, [redeems, refund]] of Object.entries(REFUNDS))
      it(`${redeems ? 'redeems' : 'is a new sale and does not redeem'} one that was delivered and not written if ${which}`, async () => {
        const first = await abandoned();
        await refund(first.request.id, first.request.amount);
        const second = await held(ledger);
        expect(second.earlier).to.equal(redeems);
        expect((await settle(ledger, second)).kind).to.equal(redeems ? 'attached' : 'settling');
      });

    it('redeems one that a stranger marked as unwritten, because that looks like a buyer who lost the answer', async () => {
      const first = await sold();
      await ledger.markWritten(first.caller, 0);
      await copyOf(first);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('attached');
    });

    it('checks before its work whether it can redeem another payment: it then attaches to that one, waits, or may be sold', async () => {
      const lonely = await held(ledger);
      expect(await settle(ledger, lonely, { attachOnly: true })).to.deep.equal({ kind: 'sell' });
      expect(await ledger.find(lonely.request.id)).to.include({ state: 'claimed', asks: 0, leased: true });
      const second = await held(ledger);
      expect((await settle(ledger, second, { attachOnly: true })).kind).to.equal('wait');
      time.now += MARGIN;
      await ledger.renewCallers([lonely.caller, second.caller]);
      expect(await settle(ledger, second, { attachOnly: true })).to.deep.equal({ kind: 'sell' });
      expect(await settle(ledger, lonely)).to.deep.equal({ kind: 'settling' });
      await ledger.removeCaller(lonely.caller);
      expect((await settle(ledger, second, { attachOnly: true })).kind).to.equal('attached');
    });

    it('redeems the oldest of several', async () => {
      const first = await held(ledger);
      time.now += 1_000;
      const second = await held(ledger);
      time.now += MARGIN;
      await ledger.renewCallers([first.caller, second.caller]);
      for (const one of [second, first])
        expect(await settle(ledger, one)).to.deep.equal({ kind: 'settling' });
      for (const one of [first, second]) await ledger.removeCaller(one.caller);
      const third = await held(ledger);
      expect(await settle(ledger, third)).to.have.nested.property('target.id', first.request.id);
    });
  });

  describe('the payment that settles or attaches', () => {
    it('binds every equal claim that is not a sale of its own, even an abandoned one or one that a copy waits for', async () => {
      const freed = await held(ledger);
      await ledger.freeClaim(freed.request.id, freed.claim, { keepRun: false });
      await ledger.removeCaller(freed.caller);
      const shared = await held(ledger);
      const copy = await copyOf(shared);
      const winner = await held(ledger);
      expect(await settle(ledger, winner)).to.deep.equal({ kind: 'settling' });
      for (const { request } of [freed, shared])
        expect(await ledger.find(request.id)).to.include({ aliasOf: winner.request.id, attended: false });
      expect(await ledger.renewCallers([copy])).to.deep.equal([]);
      const known = await ledger.claim(freed.request);
      expect(known).to.deep.nested.include({ kind: 'known', 'seen.target.id': winner.request.id });
    });

    it('binds equal claims to the payment that it redeems itself, so that aliases are one level deep', async () => {
      const target = await abandoned();
      const shared = await held(ledger);
      await copyOf(shared);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('attached');
      for (const { request } of [shared, second])
        expect((await ledger.find(request.id))?.aliasOf).to.equal(target.request.id);
    });

    it('changes nothing if the earlier sale has 32 aliases: the claim fails before any work, and leaves nothing behind', async () => {
      const target = await abandoned();
      for (let n = 0; n < 31; n += 1)
        expect((await settle(ledger, await held(ledger), { newestLocal: 0 })).kind, `${n}`).to.equal(
          'attached',
        );
      const last = await held(ledger);
      const tooLate = await held(ledger);
      time.now += MARGIN;
      await ledger.renewCallers([last.caller, tooLate.caller]);
      expect((await settle(ledger, last, { newestLocal: 0 })).kind).to.equal('attached');
      expect(await settle(ledger, tooLate)).to.deep.equal({ kind: 'limit' });
      expect(await ledger.find(tooLate.request.id)).to.include({
        state: 'claimed',
        aliasOf: null,
        leased: true,
      });
      const late = payment();
      expect(await ledger.claim(late)).to.deep.equal({ kind: 'limit', reason: 'aliases' });
      expect(await ledger.find(late.id)).to.equal(undefined);
      expect((await ledger.claim(payment({ identifier: 'another sale' }))).kind).to.equal('claimed');
      expect((await ledger.find(target.request.id))?.state).to.equal('delivered');
    });

    it('also counts the claims that it would bind: with 31 aliases, one more claim is one too many', async () => {
      await abandoned();
      for (let n = 0; n < 31; n += 1) await settle(ledger, await held(ledger), { newestLocal: 0 });
      const given = await held(ledger);
      const last = await held(ledger);
      await ledger.removeCaller(given.caller);
      expect(await settle(ledger, last)).to.deep.equal({ kind: 'limit' });
      for (const { request } of [given, last])
        expect(await ledger.find(request.id)).to.include({ state: 'claimed', aliasOf: null });
    });

    it('does not settle if it would bind 33 claims', async () => {
      const claims: Held[] = [];
      for (let n = 0; n < 33; n += 1) claims.push(await held(ledger));
      for (const { caller } of claims) await ledger.removeCaller(caller);
      const last = await held(ledger);
      expect(await settle(ledger, last)).to.deep.equal({ kind: 'limit' });
      expect(await ledger.find(last.request.id)).to.include({ state: 'claimed', asks: 0, leased: true });
      for (const { request } of claims) expect((await ledger.find(request.id))?.aliasOf).to.equal(null);
    });

    it('does not settle if there are 512 equal payments, even if it is the oldest, because no more than 512 are read', async function () {
      this.timeout(SLOW_MS * 3);
      const oldest = await held(ledger);
      time.now += 1;
      for (let n = 0; n < 512; n += 8) await Promise.all(Array.from({ length: 8 }, () => held(ledger)));
      await ledger.renewCallers([oldest.caller]);
      expect(await settle(ledger, oldest)).to.deep.equal({ kind: 'limit' });
      expect(await ledger.find(oldest.request.id)).to.include({ state: 'claimed', asks: 0 });
    });

    it('leaves aliases unchanged while there is something to redeem', async () => {
      const first = await held(ledger);
      await settle(ledger, first);
      await deliver(ledger, first, time.now + 100_000);
      await ledger.removeCaller(first.caller);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('attached');
      time.now += 60_000;
      expect(await ledger.deleteExpiredClaims({ before: 9_549 })).to.equal(0);
      time.now += 100_000;
      await ledger.prune();
      expect(await ledger.deleteExpiredClaims({ before: 9_549 })).to.equal(1);
      expect(await ledger.find(second.request.id)).to.equal(undefined);
    });
  });
  describe('an equal claim that nobody is waiting for', () => {
    it('is left as it was if the answer store is too full to settle the payment that would bind it', async () => {
      await reopen({ answerBudgetBytes: 10 });
      const first = await held(ledger);
      expect(await ledger.removeCaller(first.caller)).to.equal(true);
      const second = await held(ledger);
      const answer = { status: 200, headers: {}, body: Buffer.alloc(100) };
      expect((await faultOf(settle(ledger, second, { answer }))).code).to.equal('full');
      expect(await ledger.find(first.request.id)).to.include({ state: 'claimed', aliasOf: null });
      expect(await ledger.find(second.request.id)).to.include({ state: 'claimed', aliasOf: null });
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      expect(await ledger.find(first.request.id)).to.include({ aliasOf: second.request.id });
    });
  });
}
