import { expect } from 'chai';
import pg from 'pg';
import { CALLER_LIVE_MS, openLedger } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { until } from '../support/faults.js';
import { OWNER } from '../support/ledgers.js';
import { onEachEngine, paymentIn, THESE_SESSIONS, forServer, PAYER } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';
import { held, settle } from '../support/held-payments.js';

/** One call. */
const SAME = { payer: PAYER, operation: 'brandFeedback' };

onEachEngine('who waits for a payment,', (make, engine) => {
  if (engine === 'PostgreSQL') races(make);
});

function races(make: () => Promise<LedgerPlace>): void {
  describe('over two servers', () => {
    let place: LedgerPlace;
    let servers: [Ledger, Ledger];
    let client: pg.Client;

    beforeEach(async () => {
      place = await make();
      servers = [
        await openLedger({ ...forServer(place.url), ...OWNER }),
        await openLedger({ ...forServer(place.url), ...OWNER }),
      ];
      client = new pg.Client({ connectionString: place.url });
      await client.connect();
    });

    afterEach(async () => {
      await client.end();
      await Promise.all(servers.map(server => server.close()));
      await place.remove();
    });

    /** How many sessions of this ledger are waiting for a lock. */
    const waiting = async (): Promise<number> => {
      const { rows } = await client.query<{ n: number }>(
        `select count(*)::int as n from pg_stat_activity where ${THESE_SESSIONS} and wait_event_type = 'Lock'`,
      );
      return rows[0]?.n ?? 0;
    };

    it('a copy that arrives while an equal payment settles waits, and then finds an alias', async () => {
      const [first, second] = servers;
      const shared = await held(first);
      await first.addCaller(shared.request.id, { proven: false });
      const winner = await held(second);
      // The move stops at its last row, with all rows locked.
      await client.query(
        `create function stall() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1, 1); return new; end $$;
         create trigger stall before update on payments for each row when (new.state = 'settling') execute function stall();
         select pg_advisory_lock(1, 1)`,
      );
      const moved = settle(second, winner);
      await until('the move has locked its rows', async () => (await waiting()) === 1);
      const copy = first.addCaller(shared.request.id, { proven: false });
      const renewed = first.renewCallers([{ id: shared.request.id, number: 2 }]);
      await until('the copy waits for it', async () => (await waiting()) >= 2);
      await client.query('select pg_advisory_unlock(1, 1)');
      expect(await moved).to.deep.equal({ kind: 'settling' });
      expect(await copy).to.equal(undefined);
      expect(await renewed).to.deep.equal([]);
      expect((await first.lookUp(shared.request.id, PAYER)).target?.id).to.equal(winner.request.id);
    });

    it('a move that had to wait uses the time after the wait: a caller that expired meanwhile is gone', async () => {
      const [first] = servers;
      const one = await held(first);
      await client.query('select pg_advisory_lock(hashtextextended($1, 0))', [PAYER]);
      const moved = settle(first, one);
      await until('it waits for the payer', async () => (await waiting()) === 1);
      await new Promise(resolve => setTimeout(resolve, CALLER_LIVE_MS + 100));
      await client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [PAYER]);
      expect(await moved).to.deep.equal({ kind: 'gone' });
      expect((await first.find(one.request.id))?.state).to.equal('claimed');
    });

    it('one of two equal payments that share rows settles, and the other does not, however often both try at once', async () => {
      for (let round = 0; round < 20; round += 1) {
        const requestHash = String(round).padStart(64, '0');
        const both = await Promise.all(servers.map(server => held(server, { requestHash })));
        await Promise.all(both.map((one, n) => servers[n]!.addCaller(one.request.id, { proven: false })));
        const results = await Promise.all(both.map((one, n) => settle(servers[n]!, one, { newestLocal: 2 })));
        expect(results.map(({ kind }) => kind).toSorted()).to.deep.equal(['gone', 'settling']);
      }
    });

    for (const off of [[], ['seqscan'], ['hashjoin', 'mergejoin', 'hashagg', 'seqscan']])
      it(`an owed payment that is being changed at that moment is redeemed, whatever the query plan is (${off.length ? `without ${off.join(', ')}` : 'the usual one'})`, async () => {
        const [first] = servers;
        for (let n = 0; n < 60; n++)
          await paymentIn(first, n % 2 ? 'owed' : 'delivered', {
            payer: `Payer of another ${n % 5}`,
            requestHash: String(n % 7).padStart(64, '0'),
          });
        await client.query('analyze payments');
        const url = new URL(place.url);
        const options = off.map(way => ` -cenable_${way}=off`).join('');
        url.searchParams.set('options', `${url.searchParams.get('options')}${options}`);
        const planned = await openLedger({ url: url.href, ...OWNER });
        try {
          for (let round = 0; round < 12; round += 1) {
            const requestHash = String(round).padStart(64, 'f');
            const owed = await paymentIn(first, 'owed', { ...SAME, requestHash });
            const newer = await held(planned, { ...SAME, requestHash });
            await client.query('begin');
            await client.query(
              'update payments set lease_until = lease_until + 1 where id = decode($1, $2)',
              [owed, 'hex'],
            );
            const moved = settle(planned, newer);
            await until('it waits for the change', async () => (await waiting()) === 1);
            await client.query('commit');
            expect((await moved).kind).to.equal('attached');
          }
        } finally {
          await planned.close();
        }
      });

    it('a second settle request is made only once, however many servers try', async () => {
      const [first] = servers;
      const one = await held(first);
      await settle(first, one);
      await first.extendLease(one.request.id, one.claim, 0);
      const asked = await Promise.all(
        Array.from({ length: 10 }, (_, n) => servers[n % 2]!.askAgain(one.request.id, 9_000)),
      );
      expect(asked.filter(each => each !== undefined)).to.have.length(1);
    });
  });
}
