import { randomBytes } from 'node:crypto';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { expect } from 'chai';
import pg from 'pg';
import { moveLedger } from '../../src/ledger/move-ledger.js';
import { PRESENCE_LOCK } from '../../src/ledger/queries/server-presence.js';
import { openLedger } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { until } from '../support/faults.js';
import { OWNER, faultOf, payment, settles } from '../support/ledgers.js';
import { PLACES, sqlitePlace, THESE_SESSIONS, forServer } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

for (const { name, make } of PLACES) if (name === 'PostgreSQL' && make) severalServers(make);

function severalServers(make: () => Promise<LedgerPlace>): void {
  describe('ledger on PostgreSQL: several servers', () => {
    let place: LedgerPlace;
    let servers: Ledger[];

    beforeEach(async () => {
      place = await make();
      servers = await Promise.all([1, 2, 3, 4].map(() => openLedger({ ...forServer(place.url), ...OWNER })));
    });

    afterEach(async () => {
      await Promise.all(servers.map(server => server.close()));
      await place.remove();
    });

    it('let only one of them claim each of 50 payments', async () => {
      const requests = Array.from({ length: 50 }, () => payment());
      const results = await Promise.all(
        servers.flatMap(server => requests.map(async request => (await server.claim(request)).kind)),
      );
      expect(results.filter(kind => kind === 'claimed')).to.have.length(50);
      expect(results.filter(kind => kind === 'known')).to.have.length(150);
    });

    it('share one limit', async () => {
      const limits = { maxUnsettledPerPayer: 5, maxUnsettledAmountPerPayer: 10n ** 12n, maxRuns: 3 };
      const results = await Promise.all(
        servers.flatMap(server =>
          Array.from({ length: 10 }, async () => (await server.claim(payment({ limits }))).kind),
        ),
      );
      expect(results.filter(kind => kind === 'claimed')).to.have.length(5);
    });

    for (const isolation of ['repeatable read', 'serializable'])
      it(`sell a payment-identifier once if the database's default isolation is ${isolation}`, async () => {
        const url = new URL(place.url);
        const options = url.searchParams.get('options') ?? '';
        url.searchParams.set(
          'options',
          `${options} -cdefault_transaction_isolation=${isolation.replace(' ', '\\ ')}`,
        );
        const strict = await Promise.all([1, 2].map(() => openLedger({ url: url.href, ...OWNER })));
        const settlements = await Promise.all(
          Array.from({ length: 80 }, async (_, n) => {
            const server = strict[n % 2]!;
            const request = payment({ identifier: `purchase ${n % 20}` });
            const result = await server.claim(request);
            return result.kind === 'claimed' && (await settles(server, request.id, result.claim)) ? 1 : 0;
          }),
        ).finally(() => Promise.all(strict.map(server => server.close())));
        expect(settlements.reduce<number>((sum, each) => sum + each, 0)).to.equal(20);
      });

    it('free a claim whose commit was not confirmed, so that nobody has to wait for the end of its lease', async () => {
      const wire = await halfOpenWire(place.url);
      const server = await openLedger({ url: wire.url, ...OWNER });
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      await client.query(
        `create function hold() returns trigger language plpgsql as
           $$ begin perform pg_advisory_xact_lock(hashtext(current_schema())); return new; end $$;
         create constraint trigger hold after insert on payments deferrable initially deferred for each row execute function hold()`,
      );
      await client.query('select pg_advisory_lock(hashtext(current_schema()))');
      const commitWaits = async (): Promise<boolean> => {
        const { rows } = await client.query(
          `select 1 from pg_stat_activity where ${THESE_SESSIONS} and wait_event = 'advisory'`,
        );
        return rows.length === 1;
      };
      const request = payment();
      const claimed = faultOf(server.claim(request));
      await until('the commit of the claim waits', commitWaits);
      wire.cutForUs();
      expect((await claimed).code).to.equal('unknown');
      await client.query('select pg_advisory_unlock(hashtext(current_schema()))');
      await until('the claim is free', async () => (await servers[0]!.find(request.id))?.leased === false);
      await client.query('drop trigger hold on payments; drop function hold');
      expect((await servers[0]!.claim(request)).kind).to.equal('claimed');
      await server.close();
      await client.end();
      await wire.close();
    });

    it('close even if PostgreSQL went away without closing the connection', async () => {
      const wire = await halfOpenWire(place.url);
      const server = await openLedger({ url: wire.url, ...OWNER });
      await server.counts();
      wire.stall();
      await server.close();
      await wire.close();
    });

    it('reconnect if their connection broke on one side only, and leave no waiting session behind', async () => {
      const wire = await halfOpenWire(place.url);
      const server = await openLedger({ url: wire.url, ...OWNER });
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      const locks = async (granted: boolean): Promise<number> => {
        const { rows } = await client.query<{ locks: number }>(
          `select count(*)::int as locks from pg_locks
           where classid = 8403 and granted = $1 and objid = (hashtext(current_schema())::bigint & 4294967295)::oid`,
          [granted],
        );
        return rows[0]?.locks ?? 0;
      };
      try {
        const all = servers.length + 1;
        expect(await locks(true)).to.equal(all);
        wire.cutForUs();
        // PostgreSQL still considers the old connection, and so its lock, alive.
        await until('it has its lock again', async () => (await locks(true)) === all + 1);
        expect(await locks(false)).to.equal(0);
        wire.cutForAll();
        await until('the old one is gone', async () => wire.open() === 1 && (await locks(true)) === all);
      } finally {
        await server.close();
        await client.end();
        await wire.close();
      }
    }).timeout(60_000);

    it('announce their presence again if PostgreSQL keeps a connection open but stops answering', async () => {
      const wire = await halfOpenWire(place.url);
      const server = await openLedger({ url: wire.url, ...OWNER });
      const made = wire.connections();
      wire.stall();
      await until('it has another connection', () => wire.connections() > made, 30_000);
      await server.close();
      await wire.close();
    }).timeout(60_000);

    it('lose neither a sale nor their presence if PostgreSQL ends idle connections', async () => {
      const url = new URL(place.url);
      url.searchParams.set('options', `${url.searchParams.get('options')} -cidle_session_timeout=100`);
      const wire = await halfOpenWire(url.href);
      const server = await openLedger({ url: wire.url, ...OWNER });
      for (let sale = 0; sale < 5; sale += 1) {
        const request = payment();
        const result = await server.claim(request);
        expect(result.kind === 'claimed' && (await settles(server, request.id, result.claim))).to.equal(true);
        await until('only its presence is connected', () => wire.open() === 1);
      }
      await server.close();
      await wire.close();
    });

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
        `select pg_terminate_backend(pid) from pg_stat_activity where ${THESE_SESSIONS} and pid <> pg_backend_pid()`,
      );
      await client.end();
      let row;
      for (let attempt = 0; attempt < 20 && !row; attempt += 1)
        row = await servers[0]?.find(request.id).catch(() => undefined);
      expect(row?.state).to.equal('claimed');
    });

    it('are noticed when the ledger is moved, even after they lost their connections', async () => {
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      const ended = (await client.query<{ now: Date }>('select clock_timestamp() as now')).rows[0]?.now;
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where ${THESE_SESSIONS} and pid <> pg_backend_pid()`,
      );
      // Connections that are being closed still hold their locks for a moment.
      const present = async (): Promise<number> =>
        (
          await client.query(
            `select 1 from pg_locks join pg_stat_activity using (pid)
             where locktype = 'advisory' and mode = 'ShareLock' and classid = ${PRESENCE_LOCK} and backend_start > $1
               and objid = (hashtext(current_schema())::bigint & 4294967295)::oid`,
            [ended],
          )
        ).rows.length;
      for (let attempt = 0; attempt < 150 && (await present()) < servers.length; attempt += 1)
        await new Promise(resolve => setTimeout(resolve, 100));
      await client.end();
      const target = await sqlitePlace();
      const copy = moveLedger({ from: place.url, to: target.url });
      expect((await faultOf(copy)).message).to.include('Stop every server');
      await target.remove();
    });

    it('leave the claims of a running server alone when another one starts', async () => {
      const request = payment();
      await servers[0]?.claim(request);
      const fifth = await openLedger({ ...forServer(place.url), ...OWNER });
      servers.push(fifth);
      expect((await fifth.claim(request)).kind).to.equal('known');
    });
  });
}

type HalfOpenWire = {
  url: string;
  /** Connections through the proxy that are open on both sides. */
  connections: () => number;
  open: () => number;
  /** Breaks every connection on our side only, as a network that loses its state does. */
  cutForUs: () => void;
  /** Stops forwarding, in both directions. */
  stall: () => void;
  /** Also ends the connections that PostgreSQL still considers open. */
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
