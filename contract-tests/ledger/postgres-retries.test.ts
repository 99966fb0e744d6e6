import { expect } from 'chai';
import pg from 'pg';
import { openLedger } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { faultOf, OWNER, payment } from '../support/ledgers.js';
import {
  onEachEngine,
  THESE_SESSIONS,
  type LedgerPlace,
  forServer,
  isBehindPooler,
} from '../support/ledger-places.js';

onEachEngine('a transaction that PostgreSQL has rolled back', (make, engine) => {
  if (engine === 'PostgreSQL') retries(make);
});

function retries(make: () => Promise<LedgerPlace>): void {
  let place: LedgerPlace;
  let ledger: Ledger;
  let client: pg.Client;

  beforeEach(async () => {
    place = await make();
    ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    client = new pg.Client({ connectionString: place.url });
    await client.connect();
    await client.query('create sequence tries; create table strangers (pid int)');
  });
  afterEach(async () => {
    await client.end();
    await ledger.close();
    await place.remove();
  });

  /** Rejects new payments under a condition: in the statement or, as a serializable database may, at the commit. */
  const refuse = (condition: string, code: string, deferred: boolean): Promise<unknown> =>
    client.query(
      `create function refuse() returns trigger language plpgsql as
         $$ begin if ${condition} then raise exception using errcode = '${code}'; end if; return new; end $$;
       create ${deferred ? 'constraint' : ''} trigger refuse after insert on payments
         ${deferred ? 'deferrable initially deferred' : ''} for each row execute function refuse()`,
    );
  const tries = async (): Promise<number> => {
    const { rows } = await client.query<{ last: number }>('select last_value::int as last from tries');
    return rows[0]?.last ?? 0;
  };

  for (const code of ['40001', '40P01'])
    for (const deferred of [false, true])
      it(`is repeated, up to three times: ${code} ${deferred ? 'at the commit' : 'in a statement'}`, async () => {
        await refuse(`nextval('tries') < 4`, code, deferred);
        const request = payment();
        expect((await ledger.claim(request)).kind).to.equal('claimed');
        expect(await tries()).to.equal(4);
        expect((await ledger.find(request.id))?.state).to.equal('claimed');
      });

  it('is reported as not written after the fourth attempt', async () => {
    await refuse(`nextval('tries') > 0`, '40001', true);
    const request = payment();
    expect((await faultOf(ledger.claim(request))).code).to.equal('failed');
    expect(await tries()).to.equal(4);
    expect(await ledger.find(request.id)).to.equal(undefined);
  });

  it('is repeated on another connection if the first one can no longer write', async function () {
    // A pooler reuses its own connections to the database, even after servers have closed theirs.
    if (isBehindPooler) this.skip();
    await Promise.all([1, 2].map(() => ledger.counts()));
    await client.query('insert into strangers select pid from pg_stat_activity');
    await refuse('pg_backend_pid() in (select pid from strangers)', '25006', false);
    expect((await ledger.claim(payment())).kind).to.equal('claimed');
  });

  it('is repeated if its connection was closed just before', async () => {
    for (let time = 0; time < 10; time += 1) {
      await Promise.all([1, 2, 3].map(() => ledger.counts()));
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where ${THESE_SESSIONS} and pid <> pg_backend_pid()`,
      );
      expect((await ledger.claim(payment())).kind).to.equal('claimed');
    }
  });

  it('is reported as unknown if PostgreSQL does not know its outcome', async () => {
    await refuse('true', '40003', true);
    expect((await faultOf(ledger.claim(payment()))).code).to.equal('unknown');
  });
}
