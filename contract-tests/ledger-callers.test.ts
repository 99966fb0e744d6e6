import { expect } from 'chai';
import pg from 'pg';
import { CALLER_LIVE_MS, HANG_UP_MARGIN_MS, openLedger } from '../src/ledger/store.js';
import type { Caller, Claim, ClaimRequest, Ledger, Sent, Settling } from '../src/ledger/store.js';
import { until } from './support/faults.js';
import { OWNER, callOf, claim, payment } from './support/ledgers.js';
import { aRefund, PLACES, sqlitePlace } from './support/places.js';
import type { Place } from './support/places.js';

/** A claim of a payment, and what its server knows of it. */
type Held = Claim & { request: ClaimRequest };

// A second more than needed: PostgreSQL's clock goes on while a test stands still.
const MARGIN = HANG_UP_MARGIN_MS + 1_000;
const LAPSED = CALLER_LIVE_MS + HANG_UP_MARGIN_MS + 1_000;

for (const { name, make } of PLACES) {
  if (make)
    describe(`who waits for a payment, on ${name}`, () => {
      promises(make);
      if (name === 'PostgreSQL') races(make);
    });
  else
    describe.skip(`who waits for a payment, on ${name} (set TEST_DATABASE_URL=postgres://… to run these)`, () =>
      promises(sqlitePlace));
}

async function held(ledger: Ledger, overrides: Partial<ClaimRequest> = {}): Promise<Held> {
  const request = payment(overrides);
  return { ...(await claim(ledger, request)), request };
}

/** @param newestLocal the newest request that waits for it at this server; by default the one that claimed */
function settle(
  ledger: Ledger,
  { request, claim: number, caller }: Held,
  sent: Partial<Sent> = {},
): Promise<Settling> {
  const call = request.identifier ? {} : { call: callOf(request) };
  return ledger.settle(request.id, number, { ...call, newestLocal: caller.number, ...sent });
}

async function deliver(
  ledger: Ledger,
  { request, claim: number }: Held,
  answerExpiresAt: number,
): Promise<void> {
  const how = { settlement: 'sig', answerExpiresAt };
  if (!(await ledger.deliver(request.id, number, how))) throw new Error('expected it to be delivered');
}

function promises(make: () => Promise<Place>): void {
  let place: Place;
  let ledger: Ledger;
  let clock: number;

  beforeEach(async () => {
    clock = 1_800_000_000_000;
    place = await make();
    ledger = await openLedger({ url: place.url, ...OWNER, now: () => clock });
  });

  afterEach(async () => {
    await ledger.close();
    await place.remove();
  });

  const copyOf = async ({ request }: Held, proven = false): Promise<Caller> =>
    (await ledger.watch(request.id, { proven }))!.caller;
  /** Sold, its answer kept, and delivered: nobody was written to yet. */
  const sold = async (overrides: Partial<ClaimRequest> = {}): Promise<Held> => {
    const one = await held(ledger, overrides);
    expect(await settle(ledger, one)).to.deep.equal({ kind: 'settling' });
    await deliver(ledger, one, clock + 10 ** 9);
    return one;
  };
  /** Paid, or possibly paid, and its caller is gone: what a new signature redeems. */
  const forsaken = async (): Promise<Held> => {
    const one = await sold();
    expect(await ledger.leave(one.caller)).to.equal(true);
    return one;
  };

  describe('callers', () => {
    it('are numbered, and the newest alone can renew, leave and be written to', async () => {
      const one = await held(ledger);
      const second = await copyOf(one);
      expect([one.caller.number, second.number]).to.deep.equal([1, 2]);
      expect(await ledger.renew([one.caller, second])).to.deep.equal([second]);
      expect(await ledger.leave(one.caller)).to.equal(false);
      expect((await ledger.find(one.request.id))?.attended).to.equal(true);
      expect(await settle(ledger, one, { newestLocal: 2 })).to.deep.equal({ kind: 'settling' });
      await deliver(ledger, one, clock + 10 ** 9);
      expect(await ledger.written(one.caller, 0)).to.equal(false);
      expect(await ledger.written(second, 40)).to.equal(true);
      const row = (await ledger.find(one.request.id))!;
      expect(row).to.include({ callers: 2, writtenTo: 2, attended: false });
      expect(row.writtenAt).to.be.within(clock - 40, clock + CALLER_LIVE_MS);
    });

    it('lapse after five seconds, and are there again when they renew', async () => {
      const one = await held(ledger);
      clock += LAPSED;
      expect((await ledger.find(one.request.id))?.attended).to.equal(false);
      expect(await ledger.renew([one.caller])).to.deep.equal([one.caller]);
      expect((await ledger.find(one.request.id))?.attended).to.equal(true);
    });

    it('that left or were sent away are never revived, not by a socket that is dead', async () => {
      const one = await held(ledger);
      expect(await ledger.leave(one.caller)).to.equal(true);
      expect(await ledger.renew([one.caller])).to.deep.equal([]);
      const second = await copyOf(one);
      expect(second.number, 'a new one may come').to.equal(2);
      expect(await ledger.renew([one.caller, second])).to.deep.equal([second]);
    });

    it('that come once the payment may be public prove nothing: they un-write the answer, and can do no more', async () => {
      const one = await sold();
      expect(await ledger.written(one.caller, 0)).to.equal(true);
      const stranger = await copyOf(one);
      expect(stranger).to.deep.equal({ id: one.request.id, number: 0 });
      expect(await ledger.find(one.request.id)).to.include({ callers: 2, writtenTo: 1, attended: true });
      expect(await ledger.renew([stranger])).to.deep.equal([]);
      expect(await ledger.leave(stranger)).to.equal(false);
      expect(await ledger.written(stranger, 0)).to.equal(false);
      expect(await ledger.find(one.request.id)).to.include({ callers: 2, writtenTo: 1, attended: true });
    });

    it('that come by a payment of their own have a number whenever they come', async () => {
      const one = await sold();
      const proven = await copyOf(one, true);
      expect(proven.number).to.equal(2);
      expect(await ledger.written(proven, 0)).to.equal(true);
    });

    it('can not wait for what is released, refunded, an alias or nowhere', async () => {
      const released = await held(ledger, { requestHash: 'b'.repeat(64) });
      await settle(ledger, released);
      await ledger.release(released.request.id, released.claim, 'refused');
      const refunded = await held(ledger, { requestHash: 'c'.repeat(64) });
      await settle(ledger, refunded);
      await ledger.owe(refunded.request.id, refunded.claim, { settlement: 's' });
      await ledger.refund(refunded.request.id, aRefund());
      await forsaken();
      const alias = await held(ledger);
      await settle(ledger, alias);
      for (const { request } of [released, refunded, alias, { request: payment() }])
        expect(await ledger.watch(request.id, { proven: true })).to.equal(undefined);
      expect(await ledger.renew([alias.caller])).to.deep.equal([]);
    });

    it('are renewed many at a time, of different rows, and the answer says which', async () => {
      const rows = await Promise.all(
        Array.from({ length: 30 }, (_, n) => held(ledger, { requestHash: String(n).padStart(64, '0') })),
      );
      await Promise.all(rows.slice(0, 10).map(({ caller }) => ledger.leave(caller)));
      const present = await ledger.renew(rows.map(({ caller }) => caller));
      expect(present).to.deep.equal(rows.slice(10).map(({ caller }) => caller));
    });
  });

  describe('a look', () => {
    it('finds a payment, what it is an alias of, and the standing of its payer', async () => {
      const target = await forsaken();
      const alias = await held(ledger);
      await settle(ledger, alias);
      const seen = await ledger.look(alias.request.id, 'Payer111');
      expect(seen.row).to.include({ id: alias.request.id, aliasOf: target.request.id });
      expect(seen.target).to.include({ id: target.request.id, state: 'delivered' });
      expect(seen.payerKnown).to.equal(true);
      const plain = await ledger.look(target.request.id, 'Stranger');
      expect([plain.row?.id, plain.target, plain.payerKnown]).to.deep.equal([
        target.request.id,
        undefined,
        false,
      ]);
      const nothing = await ledger.look('f'.repeat(64), 'Payer111');
      expect(nothing).to.deep.equal({ row: undefined, target: undefined, payerKnown: true });
    });
  });

  describe('the gate', () => {
    it('settles while the newest caller is there', async () => {
      const one = await held(ledger);
      clock += CALLER_LIVE_MS - 1_000;
      expect(await settle(ledger, one)).to.deep.equal({ kind: 'settling' });
      expect(await ledger.find(one.request.id)).to.include({ state: 'settling', asks: 1 });
    });

    for (const [why, before] of [
      ['left', (one: Held) => ledger.leave(one.caller)],
      [
        'lapsed',
        async () => {
          clock += LAPSED;
        },
      ],
      [
        'left after a copy had come whose number it does not know',
        async (one: Held) => ledger.leave(await copyOf(one)),
      ],
    ] as [string, (one: Held) => Promise<unknown>][])
      it(`asks for nothing once its caller ${why}, and lets go of the row`, async () => {
        const one = await held(ledger);
        await before(one);
        expect(await settle(ledger, one)).to.deep.equal({ kind: 'gone' });
        expect(await ledger.find(one.request.id)).to.include({ state: 'claimed', asks: 0, leased: false });
        expect((await ledger.claim(one.request)).kind, 'it may come again').to.equal('claimed');
      });

    it('is closed to a claim that another worker has taken over', async () => {
      const one = await held(ledger);
      clock += 61_000;
      const next = await claim(ledger, one.request);
      expect(await settle(ledger, one)).to.deep.equal({ kind: 'gone' });
      expect(await ledger.find(one.request.id), 'the other keeps its lease').to.include({ leased: true });
      expect(await settle(ledger, { ...next, request: one.request })).to.deep.equal({ kind: 'settling' });
    });

    it('a caller that waits does not take the payment again as a sale of another kind, with an identifier or without', async () => {
      const one = await held(ledger);
      await ledger.free(one.request.id, one.claim, { keepRun: true });
      const named = { ...one.request, identifier: 'order-0000000000001' };
      expect((await ledger.claim(named, one.caller)).kind).to.equal('known');
      expect((await ledger.claim(one.request, one.caller)).kind).to.equal('claimed');
    });

    it('is closed also where an earlier sale could be redeemed: who left or lost the claim attaches to nothing', async () => {
      await forsaken();
      const left = await held(ledger);
      await ledger.leave(left.caller);
      expect(await settle(ledger, left)).to.deep.equal({ kind: 'gone' });
      const slept = await held(ledger);
      clock += 61_000;
      await claim(ledger, slept.request);
      expect(await settle(ledger, slept)).to.deep.equal({ kind: 'gone' });
      for (const { request } of [left, slept])
        expect(await ledger.find(request.id)).to.have.property('aliasOf', null);
    });

    it('is closed to a second payment with an identifier that was paid for meanwhile', async () => {
      const slow = await held(ledger, { identifier: 'x' });
      clock += 61_000;
      const fast = await held(ledger, { identifier: 'x' });
      await copyOf(slow);
      expect(await settle(ledger, fast)).to.deep.equal({ kind: 'settling' });
      expect(await settle(ledger, slow, { newestLocal: 2 })).to.deep.equal({ kind: 'gone' });
    });

    it('keeps the answer with the move, and replaces an earlier one', async () => {
      const one = await held(ledger);
      const answer = (text: string) => ({ status: 200, headers: { a: 'b' }, body: Buffer.from(text) });
      await ledger.saveAnswer(one.request.id, one.claim, answer('first'));
      expect(await settle(ledger, one, { answer: answer('second!') })).to.deep.equal({ kind: 'settling' });
      expect((await ledger.answer(one.request.id))?.body.toString()).to.equal('second!');
      expect(ledger.answerBytes()).to.equal(7);
    });
  });

  describe('an equal payment whose one caller is there', () => {
    it('is another sale, once it was seen after this one came', async () => {
      const first = await held(ledger);
      clock += 1_000;
      const second = await held(ledger);
      const { id } = first.request;
      expect(await settle(ledger, second), 'not seen since').to.deep.equal({ kind: 'wait', unseen: [id] });
      expect(await ledger.find(second.request.id), 'nothing has changed').to.include({
        state: 'claimed',
        asks: 0,
        leased: true,
      });
      clock += MARGIN;
      await ledger.renew([first.caller, second.caller]);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      expect(await settle(ledger, first)).to.deep.equal({ kind: 'settling' });
    });

    it('counts as gone once it was not seen for so long: then this one settles and binds it', async () => {
      const first = await held(ledger);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('wait');
      clock += LAPSED;
      await ledger.renew([second.caller]);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      expect(await ledger.find(first.request.id)).to.include({
        aliasOf: second.request.id,
        attended: false,
        leased: false,
      });
      expect(await ledger.renew([first.caller]), 'the dead socket').to.deep.equal([]);
      expect(await settle(ledger, first)).to.deep.equal({ kind: 'gone' });
    });

    for (const state of ['settling', 'owed', 'delivered'] as const)
      it(`holds up the settling of another while it is ${state}, too, and not once it was written`, async () => {
        const first = await held(ledger);
        await settle(ledger, first);
        if (state === 'owed') await ledger.owe(first.request.id, first.claim, { settlement: 's' });
        if (state === 'delivered') await deliver(ledger, first, clock + 10 ** 9);
        const second = await held(ledger);
        expect(second.earlier).to.equal(false);
        expect((await settle(ledger, second)).kind).to.equal('wait');
        if (state === 'delivered') await ledger.written(first.caller, 0);
        else {
          clock += MARGIN;
          await ledger.renew([first.caller, second.caller]);
        }
        expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      });

    it('is told from one of another payer, operation, body or with an identifier', async () => {
      await forsaken();
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
      it(`redeems an equal one that is ${state}, unwritten and without its caller, and is never settled`, async () => {
        const first = await held(ledger);
        await settle(ledger, first);
        if (state === 'owed') await ledger.owe(first.request.id, first.claim, { settlement: 's' });
        if (state === 'delivered') await deliver(ledger, first, clock + 10 ** 9);
        await ledger.leave(first.caller);
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
      await ledger.leave(marked.caller);
      const second = await held(ledger);
      expect(second.earlier).to.equal(false);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
    });

    it('redeems also where a copy, a 503 or a dead socket was there: only one caller ever, and there, is another sale', async () => {
      const first = await sold();
      await copyOf(first);
      const second = await held(ledger);
      expect(second.earlier).to.equal(true);
      expect((await settle(ledger, second)).kind).to.equal('attached');
    });

    it('takes nobody along whose own newest request waits elsewhere', async () => {
      const target = await forsaken();
      const second = await held(ledger);
      await copyOf(second);
      const result = await settle(ledger, second, { newestLocal: 1 });
      expect(result).to.deep.include({ kind: 'attached', caller: undefined });
      expect(await ledger.find(target.request.id)).to.include({ callers: 1, attended: false });
      expect(await ledger.renew([{ id: second.request.id, number: 2 }])).to.deep.equal([]);
    });

    it('is a new sale after an answer that was written to the one caller, or expired, or was paid back', async () => {
      const written = await sold();
      await ledger.written(written.caller, 0);
      const second = await held(ledger);
      expect(second.earlier).to.equal(false);
      expect(await settle(ledger, second)).to.deep.equal({ kind: 'settling' });
      await ledger.owe(second.request.id, second.claim, { settlement: 's' });
      await ledger.refund(second.request.id, aRefund());
      const third = await held(ledger);
      expect(third.earlier).to.equal(false);
      expect(await settle(ledger, third)).to.deep.equal({ kind: 'settling' });
      await deliver(ledger, third, clock + 60_000);
      await ledger.leave(third.caller);
      clock += 61_000;
      const fourth = await held(ledger);
      expect(fourth.earlier).to.equal(false);
      expect(await settle(ledger, fourth)).to.deep.equal({ kind: 'settling' });
    });

    for (const [when, kind] of [
      ['before', 'attached'],
      ['after', 'settling'],
    ] as const)
      it(`that was signed ${when} an answer went to the last of several callers: ${kind}`, async () => {
        const first = await held(ledger);
        const copy = await copyOf(first);
        expect(await settle(ledger, first, { newestLocal: 2 })).to.deep.equal({ kind: 'settling' });
        await deliver(ledger, first, clock + 10 ** 9);
        clock += 1_000;
        const early = when === 'before' ? await held(ledger) : undefined;
        clock += 1_000;
        await ledger.written(copy, 0);
        clock += 1_000;
        const second = early ?? (await held(ledger));
        expect(second.earlier).to.equal(when === 'before');
        expect((await settle(ledger, second)).kind).to.equal(kind);
      });

    it('redeems what a stranger un-wrote, since nobody can tell that from a buyer who lost the answer', async () => {
      const first = await sold();
      await ledger.written(first.caller, 0);
      await copyOf(first);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('attached');
    });

    it('asks before its work only for what it may redeem: then it attaches, waits, or may sell', async () => {
      const lonely = await held(ledger);
      expect(await settle(ledger, lonely, { attachOnly: true })).to.deep.equal({ kind: 'sell' });
      expect(await ledger.find(lonely.request.id)).to.include({ state: 'claimed', asks: 0, leased: true });
      const second = await held(ledger);
      expect((await settle(ledger, second, { attachOnly: true })).kind).to.equal('wait');
      clock += MARGIN;
      await ledger.renew([lonely.caller, second.caller]);
      expect(await settle(ledger, second, { attachOnly: true })).to.deep.equal({ kind: 'sell' });
      expect(await settle(ledger, lonely)).to.deep.equal({ kind: 'settling' });
      await ledger.leave(lonely.caller);
      expect((await settle(ledger, second, { attachOnly: true })).kind).to.equal('attached');
    });

    it('redeems the oldest of several', async () => {
      const first = await held(ledger);
      clock += 1_000;
      const second = await held(ledger);
      clock += MARGIN;
      await ledger.renew([first.caller, second.caller]);
      for (const one of [second, first])
        expect(await settle(ledger, one)).to.deep.equal({ kind: 'settling' });
      for (const one of [first, second]) await ledger.leave(one.caller);
      const third = await held(ledger);
      expect(await settle(ledger, third)).to.have.nested.property('target.id', first.request.id);
    });
  });

  describe('the payment that settles or attaches', () => {
    it('binds every equal claim that is no sale of its own: also one that was given up, or that a copy waits for', async () => {
      const freed = await held(ledger);
      await ledger.free(freed.request.id, freed.claim, { keepRun: false });
      await ledger.leave(freed.caller);
      const shared = await held(ledger);
      const copy = await copyOf(shared);
      const winner = await held(ledger);
      expect(await settle(ledger, winner)).to.deep.equal({ kind: 'settling' });
      for (const { request } of [freed, shared])
        expect(await ledger.find(request.id)).to.include({ aliasOf: winner.request.id, attended: false });
      expect(await ledger.renew([copy])).to.deep.equal([]);
      const known = await ledger.claim(freed.request);
      expect(known).to.deep.nested.include({ kind: 'known', 'seen.target.id': winner.request.id });
    });

    it('binds them to what it redeems itself, and aliases are one deep', async () => {
      const target = await forsaken();
      const shared = await held(ledger);
      await copyOf(shared);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('attached');
      for (const { request } of [shared, second])
        expect((await ledger.find(request.id))?.aliasOf).to.equal(target.request.id);
    });

    it('changes nothing where the earlier sale has 32 aliases: the claim says so before any work, and nothing of it stays', async () => {
      const target = await forsaken();
      for (let n = 0; n < 31; n += 1)
        expect((await settle(ledger, await held(ledger), { newestLocal: 0 })).kind, `${n}`).to.equal(
          'attached',
        );
      const last = await held(ledger);
      const tooLate = await held(ledger);
      clock += MARGIN;
      await ledger.renew([last.caller, tooLate.caller]);
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

    it('leaves aliases where they are as long as there is something to redeem', async () => {
      const first = await held(ledger);
      await settle(ledger, first);
      await deliver(ledger, first, clock + 100_000);
      await ledger.leave(first.caller);
      const second = await held(ledger);
      expect((await settle(ledger, second)).kind).to.equal('attached');
      clock += 60_000;
      expect(await ledger.dead({ height: 9_999 })).to.equal(0);
      clock += 100_000;
      await ledger.prune();
      expect(await ledger.dead({ height: 9_999 })).to.equal(1);
      expect(await ledger.find(second.request.id)).to.equal(undefined);
    });
  });
}

function races(make: () => Promise<Place>): void {
  describe('over two servers', () => {
    let place: Place;
    let servers: [Ledger, Ledger];
    let client: pg.Client;

    beforeEach(async () => {
      place = await make();
      servers = [
        await openLedger({ url: place.url, ...OWNER }),
        await openLedger({ url: place.url, ...OWNER }),
      ];
      client = new pg.Client({ connectionString: place.url });
      await client.connect();
    });

    afterEach(async () => {
      await client.end();
      await Promise.all(servers.map(server => server.close()));
      await place.remove();
    });

    /** How many sessions of this database wait for a lock. */
    const waiting = async (): Promise<number> => {
      const { rows } = await client.query<{ n: number }>(
        `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows[0]?.n ?? 0;
    };

    it('a copy that arrives while an equal payment settles waits, and then finds an alias', async () => {
      const [first, second] = servers;
      const shared = await held(first);
      await first.watch(shared.request.id, { proven: false });
      const winner = await held(second);
      // The move stops at its last row, with all rows locked.
      await client.query(
        `create function stall() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1, 1); return new; end $$;
         create trigger stall before update on payments for each row when (new.state = 'settling') execute function stall();
         select pg_advisory_lock(1, 1)`,
      );
      const moved = settle(second, winner);
      await until('the move has locked its rows', async () => (await waiting()) === 1);
      const copy = first.watch(shared.request.id, { proven: false });
      const renewed = first.renew([{ id: shared.request.id, number: 2 }]);
      await until('the copy waits for it', async () => (await waiting()) >= 2);
      await client.query('select pg_advisory_unlock(1, 1)');
      expect(await moved).to.deep.equal({ kind: 'settling' });
      expect(await copy).to.equal(undefined);
      expect(await renewed).to.deep.equal([]);
      expect((await first.look(shared.request.id, 'Payer111')).target?.id).to.equal(winner.request.id);
    });

    it('a settle that had to wait goes by the time after the wait: a caller that lapsed meanwhile is gone', async () => {
      const [first] = servers;
      const one = await held(first);
      await client.query("select pg_advisory_lock(hashtextextended('Payer111', 0))");
      const moved = settle(first, one);
      await until('it waits for the payer', async () => (await waiting()) === 1);
      await new Promise(resolve => setTimeout(resolve, CALLER_LIVE_MS + 100));
      await client.query("select pg_advisory_unlock(hashtextextended('Payer111', 0))");
      expect(await moved).to.deep.equal({ kind: 'gone' });
      expect((await first.find(one.request.id))?.state).to.equal('claimed');
    });

    it('of two equal payments with shared rows one settles, however often both try at once', async () => {
      for (let round = 0; round < 20; round += 1) {
        const requestHash = String(round).padStart(64, '0');
        const both = await Promise.all(servers.map(server => held(server, { requestHash })));
        await Promise.all(both.map((one, n) => servers[n]!.watch(one.request.id, { proven: false })));
        const results = await Promise.all(both.map((one, n) => settle(servers[n]!, one, { newestLocal: 2 })));
        expect(results.map(({ kind }) => kind).toSorted()).to.deep.equal(['gone', 'settling']);
      }
    });

    it('one second ask is made, however many servers try', async () => {
      const [first] = servers;
      const one = await held(first);
      await settle(first, one);
      await first.hold(one.request.id, one.claim, 0);
      const asked = await Promise.all(
        Array.from({ length: 10 }, (_, n) => servers[n % 2]!.askAgain(one.request.id, 9_000)),
      );
      expect(asked.filter(each => each !== undefined)).to.have.length(1);
    });
  });
}
