import { expect } from 'chai';
import { openLedger } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { PLACES } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';
import { faultOf, OWNER, payment, settles } from '../support/ledgers.js';
import { missingPooler, startPooler } from '../support/pooler.js';
import type { Pooler } from '../support/pooler.js';

const [postgres] = PLACES.filter(({ name }) => name === 'PostgreSQL');
const make = postgres?.make;
const missing = make ? missingPooler : 'set TEST_DATABASE_URL=postgres://…';

/** A pooler in front of the schema that holds a test's ledger. */
const pooled = ({ url }: LedgerPlace, settings: string[] = []): Promise<Pooler> =>
  startPooler(url, { settings, schema: new URL(url).searchParams.get('application_name')! });

(missing === undefined ? describe : describe.skip)(
  `ledger on PostgreSQL behind PgBouncer${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let place: LedgerPlace;
    let pooler: Pooler;
    beforeEach(async () => {
      place = await make!();
      pooler = await pooled(place);
    });
    afterEach(async () => {
      await pooler.close();
      await place.remove();
    });

    it('refuses to open, in one sentence, if the URL of the database itself is missing, and changes nothing', async () => {
      const fault = await faultOf(openLedger({ url: pooler.url, ...OWNER }));
      expect(fault.code).to.equal('open');
      expect(fault.message).to.include('points to a pooler').and.include('DATABASE_DIRECT_URL');
    });

    it('also refuses to open if the pooler accepts any startup parameters', async () => {
      const limits = 'statement_timeout, idle_in_transaction_session_timeout';
      const lenient = await pooled(place, [`ignore_startup_parameters = ${limits}`]);
      const fault = await faultOf(openLedger({ url: lenient.url, ...OWNER })).finally(lenient.close);
      expect(fault.message).to.include('points to a pooler');
    });

    it('makes exactly one sale for each of 60 payments across three servers', async () => {
      const open = (): Promise<Ledger> => openLedger({ url: pooler.url, directUrl: place.url, ...OWNER });
      const servers = [await open(), await open(), await open()];
      try {
        const requests = Array.from({ length: 60 }, () => payment());
        const sold = await Promise.all(
          servers.flatMap(server =>
            requests.map(async request => {
              const claimed = await server.claim(request);
              return claimed.kind === 'claimed' && (await settles(server, request.id, claimed.claim));
            }),
          ),
        );
        expect(sold.filter(Boolean)).to.have.length(60);
      } finally {
        for (const server of servers) await server.close();
      }
    });
  },
);
