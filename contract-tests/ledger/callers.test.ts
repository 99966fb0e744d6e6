import { expect } from 'chai';
import pg from 'pg';
import { CHANNEL } from '../../src/ledger/queries/server-presence.js';
import { CALLER_LIVE_MS } from '../../src/ledger/store.js';
import { claim, payment } from '../support/ledgers.js';
import { eachWithANewLedger, ledger, open, place, reopen, time } from '../support/ledger-suite.js';
import {
  aRefund,
  isBehindPooler,
  onEachEngine,
  PLACES,
  THESE_SESSIONS,
  PAYER,
} from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';
import {
  LAPSED,
  copyOf,
  deliver,
  abandoned,
  held,
  settle,
  sold,
  type Held,
} from '../support/held-payments.js';

onEachEngine('who waits for a payment,', promises);

for (const { name, make } of PLACES.filter(({ name }) => name === 'PostgreSQL'))
  (make ? describe : describe.skip)(`callers on ${name}`, () => {
    eachWithANewLedger(make!);

    it('are renewed 64 per statement, without waiting for rows that another transaction is changing', async () => {
      let writes = 0;
      await reopen({ watch: { committed: () => (writes += 1), failed: () => {} } });
      const all = await Promise.all(Array.from({ length: 200 }, () => held(ledger)));
      const callers = all.map(({ caller }) => caller);
      const attended = async (): Promise<number> => {
        const rows = await Promise.all(callers.map(({ id }) => ledger.find(id)));
        return rows.filter(row => row!.attended).length;
      };
      time.now += LAPSED;
      writes = 0;
      expect(await ledger.renewCallers(callers)).to.have.length(200);
      expect(writes).to.equal(4);

      time.now += LAPSED;
      const other = new pg.Client({ connectionString: place.url });
      await other.connect();
      await other.query('begin');
      await other.query('select 1 from payments where id = $1 for update', [
        Buffer.from(callers[5]!.id, 'hex'),
      ]);
      const renewed = ledger.renewCallers(callers);
      while ((await attended()) < 199) await new Promise(setImmediate);
      expect((await ledger.find(callers[5]!.id))?.attended).to.equal(false);
      await other.query('commit');
      await other.end();
      expect(await renewed).to.deep.equal(callers);
      expect(await attended()).to.equal(200);
    });

    const outcomes: Record<string, (one: Held) => Promise<unknown>> = {
      delivered: one => deliver(ledger, one, time.now + 10 ** 9),
      owed: ({ request, claim }) => ledger.owe(request.id, claim, { settlement: 'sig' }),
      released: ({ request, claim }) => ledger.release(request.id, claim, 'refused'),
    };
    for (const [name, decide] of Object.entries(outcomes))
      it(`that wait at another server are notified when their payment is ${name}`, async () => {
        const other = await open();
        const one = await held(ledger);
        await copyOf(one);
        await settle(ledger, one, { newestLocal: 2 });
        const notified = other.changeOf(one.request.id, 24 * 60 * 60_000);
        await decide(one);
        await notified;
      });

    it('are renewed while all other connections of their server wait for a payer that another server has locked', async function () {
      // The tests' pooler lends only five connections, but nine must be waiting here.
      if (isBehindPooler) this.skip();
      const one = await held(ledger);
      const two = await held(ledger, { requestHash: 'b'.repeat(64) });
      time.now += LAPSED;
      const other = new pg.Client({ connectionString: place.url });
      await other.connect();
      const payers = Array.from({ length: 12 }, (_, n) => `Payer of claim ${n}`);
      await other.query('begin');
      await other.query(
        'select pg_advisory_xact_lock(hashtextextended(payer, 0)) from unnest($1::text[]) as payer',
        [payers],
      );
      const claims = payers.map(payer => ledger.claim(payment({ payer })));
      // On another connection, because a transaction sees pg_stat_activity as it was when first read.
      const watching = new pg.Client({ connectionString: place.url });
      await watching.connect();
      const waiting = async (): Promise<number> => {
        const { rows } = await watching.query<{ n: number }>(
          `select count(*)::int as n from pg_stat_activity where ${THESE_SESSIONS} and wait_event = 'advisory'`,
        );
        return rows[0]!.n;
      };
      while ((await waiting()) < 9) await new Promise(setImmediate);
      await watching.end();
      const callers = [one.caller, two.caller];
      expect(await ledger.renewCallers(callers)).to.deep.equal(callers);
      await other.query('commit');
      await other.end();
      expect((await Promise.all(claims)).map(({ kind }) => kind)).to.deep.equal(payers.map(() => 'claimed'));
    });

    it('are notified of a payment only if another request is waiting for it', async () => {
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      const notified: (string | undefined)[] = [];
      client.on('notification', ({ payload }) => notified.push(payload));
      const { rows } = await client.query<{ channel: string }>(`select ${CHANNEL} as channel`);
      await client.query(`listen ${client.escapeIdentifier(rows[0]!.channel)}`);
      const alone = await held(ledger);
      const shared = await held(ledger, { requestHash: 'b'.repeat(64) });
      await copyOf(shared);
      for (const one of [alone, shared]) {
        await settle(ledger, one, { newestLocal: 2 });
        await deliver(ledger, one, time.now + 10 ** 9);
      }
      while (notified.length === 0) await client.query('select 1');
      await client.end();
      expect(notified).to.deep.equal([shared.request.id]);
    });
  });

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  describe('callers', () => {
    it('are numbered, and only the newest can renew, leave and be written to', async () => {
      const one = await held(ledger);
      const second = await copyOf(one);
      expect([one.caller.number, second.number]).to.deep.equal([1, 2]);
      expect(await ledger.renewCallers([one.caller, second])).to.deep.equal([second]);
      expect(await ledger.removeCaller(one.caller)).to.equal(false);
      expect((await ledger.find(one.request.id))?.attended).to.equal(true);
      expect(await settle(ledger, one, { newestLocal: 2 })).to.deep.equal({ kind: 'settling' });
      await deliver(ledger, one, time.now + 10 ** 9);
      expect(await ledger.markWritten(one.caller, 0)).to.equal(false);
      expect(await ledger.markWritten(second, 40)).to.equal(true);
      const row = (await ledger.find(one.request.id))!;
      expect(row).to.include({ callers: 2, writtenTo: 2, attended: false });
      expect(row.writtenAt).to.be.within(time.now - 40, time.now + CALLER_LIVE_MS);
    });

    it('expire after five seconds, and are present again when they renew', async () => {
      const one = await held(ledger);
      time.now += LAPSED;
      expect((await ledger.find(one.request.id))?.attended).to.equal(false);
      expect(await ledger.renewCallers([one.caller])).to.deep.equal([one.caller]);
      expect((await ledger.find(one.request.id))?.attended).to.equal(true);
    });

    it('are renewed as of the time when they were seen, however long the renewal waited', async () => {
      const one = await held(ledger);
      const renewed = ledger.renewCallers([one.caller]);
      const until = performance.now() + 80;
      while (performance.now() < until);
      expect(await renewed).to.deep.equal([one.caller]);
      const row = (await ledger.find(one.request.id))!;
      expect(row.callerUntil).to.be.at.most(time.now + CALLER_LIVE_MS - 80);
    });

    it('are renewed many at a time, except those that left or were replaced by a newer one', async () => {
      const all = await Promise.all(Array.from({ length: 300 }, () => held(ledger)));
      const newer = await copyOf(all[7]!);
      await ledger.removeCaller(all[150]!.caller);
      time.now += LAPSED;
      const callers = [...all.map(({ caller }) => caller), newer];
      const gone = [all[7]!.caller, all[150]!.caller];
      expect(await ledger.renewCallers(callers)).to.deep.equal(callers.filter(each => !gone.includes(each)));
      const rows = await Promise.all(all.map(({ request }) => ledger.find(request.id)));
      expect(rows.filter(row => !row!.attended).map(row => row!.id)).to.deep.equal([all[150]!.request.id]);
    });

    it('that left or were sent away are never renewed, not even through a dead socket', async () => {
      const one = await held(ledger);
      expect(await ledger.removeCaller(one.caller)).to.equal(true);
      expect(await ledger.renewCallers([one.caller])).to.deep.equal([]);
      const second = await copyOf(one);
      expect(second.number, 'a new one may come').to.equal(2);
      expect(await ledger.renewCallers([one.caller, second])).to.deep.equal([second]);
    });

    it('that come once the payment may be public prove nothing: they can only mark the answer as unwritten', async () => {
      const one = await sold();
      expect(await ledger.markWritten(one.caller, 0)).to.equal(true);
      const stranger = await copyOf(one);
      expect(stranger).to.deep.equal({ id: one.request.id, number: 0 });
      expect(await ledger.find(one.request.id)).to.include({ callers: 2, writtenTo: 1, attended: true });
      expect(await ledger.renewCallers([stranger])).to.deep.equal([]);
      expect(await ledger.removeCaller(stranger)).to.equal(false);
      expect(await ledger.markWritten(stranger, 0)).to.equal(false);
      expect(await ledger.find(one.request.id)).to.include({ callers: 2, writtenTo: 1, attended: true });
    });

    it('that come with a payment of their own always get a number', async () => {
      const one = await sold();
      const proven = await copyOf(one, true);
      expect(proven.number).to.equal(2);
      expect(await ledger.markWritten(proven, 0)).to.equal(true);
    });

    it("can fetch the answer with their keys, but only the newest caller's fetch counts, and only once", async () => {
      const one = await abandoned();
      const { id } = one.request;
      expect(await ledger.markFetched({ id, number: 0 }, 0), 'a stranger’s key').to.equal(false);
      const second = await copyOf(one, true);
      expect(await ledger.markFetched(one.caller, 0), 'an older caller’s key').to.equal(false);
      expect(await ledger.markFetched(second, 40)).to.equal(true);
      expect(await ledger.find(id)).to.include({ callers: 3, writtenTo: 3, attended: false });
      expect(await ledger.markFetched(second, 0)).to.equal(false);
      const unpaid = await held(ledger, { requestHash: 'b'.repeat(64) });
      expect(await ledger.markFetched(unpaid.caller, 0), 'nothing is there').to.equal(false);
    });

    it('that fetched the answer with their key make a later payment a new sale, but an earlier payment still redeems the answer', async () => {
      const one = await abandoned();
      const before = await held(ledger);
      time.now += 1_000;
      expect(await ledger.markFetched(one.caller, 0)).to.equal(true);
      time.now += 1_000;
      const later = await held(ledger);
      expect(later.earlier).to.equal(false);
      expect(await settle(ledger, before)).to.have.nested.property('target.id', one.request.id);
      expect((await settle(ledger, later)).kind).not.to.equal('settling');
    });

    it("can't wait for a payment that is released, refunded, an alias or missing", async () => {
      const released = await held(ledger, { requestHash: 'b'.repeat(64) });
      await settle(ledger, released);
      await ledger.release(released.request.id, released.claim, 'refused');
      const refunded = await held(ledger, { requestHash: 'c'.repeat(64) });
      await settle(ledger, refunded);
      await ledger.owe(refunded.request.id, refunded.claim, { settlement: 's' });
      await ledger.refund(refunded.request.id, aRefund());
      await abandoned();
      const alias = await held(ledger);
      await settle(ledger, alias);
      for (const { request } of [released, refunded, alias, { request: payment() }])
        expect(await ledger.addCaller(request.id, { proven: true })).to.equal(undefined);
      expect(await ledger.renewCallers([alias.caller])).to.deep.equal([]);
    });
  });

  describe('a lookup', () => {
    it('finds a payment, the payment it is an alias of, and the standing of its payer', async () => {
      const target = await abandoned();
      const alias = await held(ledger);
      await settle(ledger, alias);
      const seen = await ledger.lookUp(alias.request.id, PAYER);
      expect(seen.row).to.include({ id: alias.request.id, aliasOf: target.request.id });
      expect(seen.target).to.include({ id: target.request.id, state: 'delivered' });
      expect(seen.payerKnown).to.equal(true);
      const plain = await ledger.lookUp(target.request.id, 'Stranger');
      expect([plain.row?.id, plain.target, plain.payerKnown]).to.deep.equal([
        target.request.id,
        undefined,
        false,
      ]);
      const nothing = await ledger.lookUp('f'.repeat(64), PAYER);
      expect(nothing).to.deep.equal({ row: undefined, target: undefined, payerKnown: true });
    });
  });

  describe('the move to settling', () => {
    it('succeeds while the newest caller is present', async () => {
      const one = await held(ledger);
      time.now += CALLER_LIVE_MS - 1_000;
      expect(await settle(ledger, one)).to.deep.equal({ kind: 'settling' });
      expect(await ledger.find(one.request.id)).to.include({ state: 'settling', asks: 1 });
    });

    for (const [why, before] of [
      ['left', (one: Held) => ledger.removeCaller(one.caller)],
      [
        'lapsed',
        async () => {
          time.now += LAPSED;
        },
      ],
      [
        'left after a copy had come whose number it does not know',
        async (one: Held) => ledger.removeCaller(await copyOf(one)),
      ],
    ] as [string, (one: Held) => Promise<unknown>][])
      it(`requests no money once its caller ${why}, and releases the row`, async () => {
        const one = await held(ledger);
        await before(one);
        expect(await settle(ledger, one)).to.deep.equal({ kind: 'gone' });
        expect(await ledger.find(one.request.id)).to.include({ state: 'claimed', asks: 0, leased: false });
        expect((await ledger.claim(one.request)).kind, 'it may come again').to.equal('claimed');
      });

    it('is refused to a claim that another worker has taken over', async () => {
      const one = await held(ledger);
      time.now += 61_000;
      const next = await claim(ledger, one.request);
      expect(await settle(ledger, one)).to.deep.equal({ kind: 'gone' });
      expect(await ledger.find(one.request.id), 'the other keeps its lease').to.include({ leased: true });
      expect(await settle(ledger, { ...next, request: one.request })).to.deep.equal({ kind: 'settling' });
    });

    it('does not let a waiting caller claim the payment again as another kind of sale, with an identifier or without', async () => {
      const one = await held(ledger);
      await ledger.freeClaim(one.request.id, one.claim, { keepRun: true });
      const named = { ...one.request, identifier: 'order-0000000000001' };
      expect((await ledger.claim(named, one.caller)).kind).to.equal('known');
      expect((await ledger.claim(one.request, one.caller)).kind).to.equal('claimed');
    });

    it('is closed to a caller that left or lost its claim, and does not make its payment an alias of an earlier sale', async () => {
      await abandoned();
      const left = await held(ledger);
      await ledger.removeCaller(left.caller);
      expect(await settle(ledger, left)).to.deep.equal({ kind: 'gone' });
      const slept = await held(ledger);
      time.now += 61_000;
      await claim(ledger, slept.request);
      expect(await settle(ledger, slept)).to.deep.equal({ kind: 'gone' });
      for (const { request } of [left, slept])
        expect(await ledger.find(request.id)).to.have.property('aliasOf', null);
    });

    it('is closed to a payment if another one with the same identifier has moved first', async () => {
      const slow = await held(ledger, { identifier: 'x' });
      time.now += 61_000;
      const fast = await held(ledger, { identifier: 'x' });
      await copyOf(slow);
      expect(await settle(ledger, fast)).to.deep.equal({ kind: 'settling' });
      expect(await settle(ledger, slow, { newestLocal: 2 })).to.deep.equal({ kind: 'gone' });
    });

    it('stores the answer together with the move, and replaces an earlier answer', async () => {
      const one = await held(ledger);
      const answer = (text: string) => ({ status: 200, headers: { a: 'b' }, body: Buffer.from(text) });
      await ledger.saveAnswer(one.request.id, one.claim, answer('first'));
      expect(await settle(ledger, one, { answer: answer('second!') })).to.deep.equal({ kind: 'settling' });
      expect((await ledger.answer(one.request.id))?.body.toString()).to.equal('second!');
      expect(ledger.answerBytes()).to.equal(7);
    });
  });
}
