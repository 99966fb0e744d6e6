import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { expect } from 'chai';
import type { Listing } from '../../src/ledger/reader.js';
import { STATES } from '../../src/ledger/states.js';
import type { State } from '../../src/ledger/states.js';
import { openLedgerReader } from '../../src/ledger/store.js';
import type { ClaimRequest, Payment } from '../../src/ledger/store.js';
import { claimed, delivered, payment, settles } from '../support/ledgers.js';
import {
  SLOW_MS,
  closeLater,
  eachWithANewLedger,
  ledger,
  place,
  reopen,
  time,
} from '../support/ledger-suite.js';
import { aRefund, onEachEngine, paymentIn, PAYER } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

const BEGINNING = { since: 0, id: '' };

onEachEngine('ledger', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  describe('answers', () => {
    it('come back byte for byte', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      const body = Buffer.concat([Buffer.from([0, 255, 0, 128]), randomBytes(300_000)]);
      const headers = { 'content-type': 'audio/wav', 'x-tts-voice-id': 'ünï"\\\n' };
      expect(await ledger.saveAnswer(request.id, claim, { status: 200, headers, body })).to.equal(true);
      await settles(ledger, request.id, claim);
      await ledger.deliver(request.id, claim, { settlement: 's', answerExpiresAt: time.now + 1_000 });
      await reopen();
      const answer = await ledger.answer(request.id);
      expect(answer?.headers).to.deep.equal(headers);
      expect(answer?.status).to.equal(200);
      expect(answer?.expiresAt).to.equal(time.now + 1_000);
      expect(answer?.body.equals(body)).to.equal(true);
    });

    it('are kept while their payment is unresolved, however long that takes, and pruned after they have expired', async () => {
      const settling = payment();
      const claim = await claimed(ledger, settling);
      await ledger.saveAnswer(settling.id, claim, { status: 200, headers: {}, body: Buffer.from('kept') });
      await settles(ledger, settling.id, claim);
      const done = payment();
      await delivered(ledger, done, time.now + 1_000);
      expect(await ledger.prune()).to.equal(0);
      time.now += 10 ** 9;
      expect(await ledger.answer(done.id)).to.equal(undefined);
      expect(await ledger.prune()).to.equal(1);
      expect(await ledger.prune()).to.equal(0);
      expect((await ledger.answer(settling.id))?.body.toString()).to.equal('kept');
      expect(ledger.answerBytes()).to.equal(4);
      expect((await ledger.find(done.id))?.state).to.equal('delivered');
    });

    it('are replaced by a later run, and the budget is adjusted', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.alloc(500) });
      await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body: Buffer.from('second') });
      expect((await ledger.answer(request.id))?.body.toString()).to.equal('second');
      expect(ledger.answerBytes()).to.equal(6);
      await ledger.freeClaim(request.id, claim, { keepRun: false });
      expect(ledger.answerBytes()).to.equal(0);
    });

    it('are kept longer on request, but not while the store is more than half full, nor once they have expired', async () => {
      await reopen({ answerBudgetBytes: 1_000 });
      const { id } = payment();
      const sellOne = async (request: ClaimRequest, bytes: number): Promise<void> => {
        const claim = await claimed(ledger, request);
        const body = Buffer.alloc(bytes);
        await ledger.saveAnswer(request.id, claim, { status: 200, headers: {}, body });
        await settles(ledger, request.id, claim);
        await ledger.deliver(request.id, claim, { settlement: 's', answerExpiresAt: time.now + 1_000 });
      };
      const [one, other] = [payment({ id }), payment({ requestHash: 'b'.repeat(64) })];
      await sellOne(one, 400);
      expect(await ledger.keepAnswer(id, time.now + 5_000)).to.equal(time.now + 5_000);
      expect(await ledger.keepAnswer(id, time.now + 2_000), 'never for less').to.equal(time.now + 5_000);
      await sellOne(other, 400);
      expect(await ledger.keepAnswer(other.id, time.now + 5_000)).to.equal(time.now + 1_000);
      time.now += 2_000;
      expect(await ledger.keepAnswer(other.id, time.now + 5_000)).to.equal(undefined);
      await ledger.prune();
      expect([(await ledger.answer(id))?.body.length, await ledger.answer(other.id)]).to.deep.equal([
        400,
        undefined,
      ]);
    });
  });

  describe('payers', () => {
    const isKnown = async (payer: string): Promise<boolean> =>
      (await ledger.lookUp(payment().id, payer)).payerKnown;

    it('are known after a delivery, until one of their payments is refused', async () => {
      await ledger.recordRefusal(PAYER);
      expect(await isKnown(PAYER)).to.equal(false);
      await delivered(ledger, payment());
      expect(await isKnown(PAYER)).to.equal(true);
      expect(await ledger.claim(payment())).to.include({ kind: 'claimed', payerKnown: true });
      await ledger.recordRefusal(PAYER);
      expect(await ledger.claim(payment())).to.include({ kind: 'claimed', payerKnown: false });
      await delivered(ledger, payment());
      expect(await isKnown(PAYER)).to.equal(true);
    });
  });

  describe('maintenance', () => {
    it('deletes, in slices, only expired claims that never settled', async () => {
      const requests = Array.from({ length: 250 }, () => payment());
      await Promise.all(requests.map(request => ledger.claim(request)));
      const settling = payment();
      await settles(ledger, settling.id, await claimed(ledger, settling));
      expect(await ledger.deleteExpiredClaims({ before: 4_550 })).to.equal(0);
      time.now += 60_000 + SLOW_MS;
      expect(await ledger.deleteExpiredClaims({ before: 900 })).to.equal(0);
      const slices: number[] = [];
      for (let deleted = -1; deleted !== 0; slices.push(deleted))
        deleted = await ledger.deleteExpiredClaims({ before: 901 });
      expect(slices).to.deep.equal([100, 100, 50, 0]);
      expect((await ledger.find(settling.id))?.state).to.equal('settling');
    });

    it('lists payments by state in pages, and sums them by state', async () => {
      for (let made = 0; made < 3; made += 1) {
        await delivered(ledger, payment({ amount: 25_000n }));
        time.now += 1;
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

    /** Payments in every state, three of them in one millisecond, from two payers for two operations, with leases of two lengths. */
    async function variety(): Promise<Payment[]> {
      const made: Payment[] = [];
      for (let n = 0; n < 48; n += 1) {
        time.now += n % 3 === 0 ? 1 : 0;
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
      if (state === 'delivered')
        await ledger.deliver(id, claim, { settlement: 's', answerExpiresAt: time.now });
      if (state === 'owed' || state === 'refunded') await ledger.owe(id, claim, { settlement: 's' });
      if (state === 'refunded') await ledger.refund(id, aRefund());
    }

    it('filters and orders lists by every condition, alone and combined', async () => {
      const all = await variety();
      time.now += 100;
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
              .filter(each => holds(each) && (!idle || each.leaseUntil <= time.now));
            if (listing.newest) expected.reverse();
            const found = await ledger.list({ ...filter, ...listing, idle, limit: 5 });
            const ids = (payments: Payment[]): string[] => payments.map(({ id }) => id);
            expect(ids(found), inspect({ ...filter, ...listing, idle })).to.deep.equal(
              ids(expected.slice(0, 5)),
            );
          }
    });

    it('lists the payments whose outcome is open, up to a limit for each: settling without a worker, released, and settled', async () => {
      const open: string[] = [];
      for (const state of ['claimed', 'settling', 'released', 'owed', 'delivered'] as const)
        for (let n = 0; n < 2; n++) {
          time.now += 1;
          const id = await paymentIn(ledger, state);
          if (state !== 'claimed') open.push(id);
        }
      const working = payment();
      await settles(ledger, working.id, await claimed(ledger, working));
      const which = { settledBefore: time.now, limit: 10 };
      const listed = (await ledger.openFates(BEGINNING, which)).map(({ id }) => id);
      expect(listed.toSorted()).to.deep.equal(open.toSorted());
      const oldest = await ledger.openFates(BEGINNING, { ...which, limit: 1 });
      expect(oldest.map(({ state }) => state)).to.have.members(['settling', 'released', 'owed']);
      const [, , released = ''] = open;
      await ledger.audited(released, 'kept');
      expect((await ledger.openFates(BEGINNING, which)).map(({ id }) => id)).not.to.include(released);
    });

    it('lists settlements until they are audited', async () => {
      const request = payment();
      await delivered(ledger, request);
      const which = { settledBefore: time.now + SLOW_MS, limit: 10 };
      expect((await ledger.openFates(BEGINNING, which)).map(each => each.id)).to.deep.equal([request.id]);
      expect(await ledger.openFates(BEGINNING, { ...which, settledBefore: time.now - 1 })).to.deep.equal([]);
      expect(await ledger.audited(request.id, 'kept')).to.equal(true);
      expect(await ledger.openFates(BEGINNING, which)).to.deep.equal([]);
    });

    it('condenses the evidence of audited sales from earlier versions, slice by slice, once', async () => {
      const ids: string[] = [];
      for (let n = 0; n < 105; n += 1) {
        const request = payment({ evidence: `whole ${n}` });
        await delivered(ledger, request);
        ids.push(request.id);
      }
      const [open = '', ...rest] = ids;
      for (const [n, id] of rest.entries()) await ledger.audited(id, `whole ${n + 1}`);
      const condense = (evidence: string): string => evidence.replace('whole', 'kept');
      expect(await ledger.condenseSales(condense)).to.equal(true);
      await reopen();
      expect(await ledger.condenseSales(condense)).to.equal(false);
      const found = await ledger.list();
      expect(found.filter(({ evidence }) => !evidence.startsWith('kept')).map(({ id }) => id)).to.deep.equal([
        open,
      ]);
      await ledger.audited(open, 'whole, by an older server');
      await reopen();
      expect(await ledger.condenseSales(condense)).to.equal(false);
    });

    it('keeps notes when it is opened again', async () => {
      expect(await ledger.getMeta('supported')).to.equal(undefined);
      await ledger.setMeta('supported', '{"kinds":1}');
      await ledger.setMeta('supported', '{"kinds":2}');
      await reopen();
      expect(await ledger.getMeta('supported')).to.equal('{"kinds":2}');
    });

    it('lists what is to be audited page by page, each settled payment once', async () => {
      const requests = Array.from({ length: 7 }, () => payment());
      // In groups of three, they are settled in the same millisecond.
      for (const [n, request] of requests.entries()) {
        time.now += n % 3 === 0 ? 1 : 0;
        await delivered(ledger, request, time.now + 100_000);
      }
      const seen: string[] = [];
      const which = { settledBefore: time.now + SLOW_MS, limit: 2 };
      let page = await ledger.openFates(BEGINNING, which);
      while (page.length > 0) {
        seen.push(...page.map(({ id }) => id));
        const last = page.at(-1)!;
        page = await ledger.openFates({ since: last.settledAt!, id: last.id }, which);
      }
      expect(seen.toSorted()).to.deep.equal(requests.map(({ id }) => id).toSorted());
    });

    it('lets an operator read and refund while a server is running', async () => {
      const request = payment({ flow: 'upfront' });
      const claim = await claimed(ledger, request);
      await settles(ledger, request.id, claim);
      await ledger.owe(request.id, claim, { settlement: 's' });
      const reader = await openLedgerReader({ url: place.url });
      closeLater(reader);
      expect((await reader.list({ state: 'owed' })).map(each => each.id)).to.deep.equal([request.id]);
      expect(await reader.refund(request.id, aRefund())).to.equal('refunded');
      expect((await ledger.find(request.id))?.state).to.equal('refunded');
      await claimed(ledger, payment());
      expect((await reader.counts()).claimed.payments).to.equal(1);
    });
  });
}
