import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openLedger } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { until } from '../support/faults.js';
import { freePort } from '../support/free-port.js';
import { PLACES } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';
import { faultOf, OWNER, payment, settles } from '../support/ledgers.js';

const PGBOUNCER = '/usr/sbin/pgbouncer';
const [postgres] = PLACES.filter(({ name }) => name === 'PostgreSQL');
const make = postgres?.make;
const missing = !make
  ? 'set TEST_DATABASE_URL=postgres://…'
  : !existsSync(PGBOUNCER)
    ? `there is no ${PGBOUNCER} (apt-get install pgbouncer)`
    : undefined;

/** PgBouncer that lends a connection for one transaction, in front of the schema of a place. */
async function pooled(place: LedgerPlace, more = ''): Promise<{ url: string; close: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'coinslot-pooler-'));
  const port = await freePort();
  const direct = new URL(place.url);
  const schema = direct.searchParams.get('application_name')!;
  const database = `host=${direct.hostname} port=${direct.port || 5432} dbname=${direct.pathname.slice(1)} user=${direct.username}`;
  await writeFile(
    join(folder, 'pgbouncer.ini'),
    `[databases]
ledger = ${database} connect_query='set search_path to ${schema}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
${more}
`,
  );
  await chmod(folder, 0o755);
  const root = process.getuid?.() === 0 ? ['-u', 'postgres'] : [];
  const child: ChildProcess = spawn(PGBOUNCER, [...root, join(folder, 'pgbouncer.ini')], { stdio: 'ignore' });
  const answers = (): Promise<boolean> =>
    new Promise(resolve => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  await until('PgBouncer listens', answers);
  return {
    url: `postgres://${direct.username}@127.0.0.1:${port}/ledger`,
    close: async () => {
      child.kill('SIGINT');
      if (child.exitCode === null) await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

(missing === undefined ? describe : describe.skip)(
  `ledger on PostgreSQL behind PgBouncer${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let place: LedgerPlace;
    let pooler: { url: string; close: () => Promise<void> };
    beforeEach(async () => {
      place = await make!();
      pooler = await pooled(place);
    });
    afterEach(async () => {
      await pooler.close();
      await place.remove();
    });

    it('is refused in one sentence without the URL of the database itself, and nothing is changed', async () => {
      const fault = await faultOf(openLedger({ url: pooler.url, ...OWNER }));
      expect(fault.code).to.equal('open');
      expect(fault.message).to.include('leads to a pooler').and.include('DATABASE_DIRECT_URL');
    });

    it('is refused as well where the pooler takes whatever a session begins with', async () => {
      const limits = 'statement_timeout, idle_in_transaction_session_timeout';
      const lenient = await pooled(place, `ignore_startup_parameters = ${limits}`);
      const fault = await faultOf(openLedger({ url: lenient.url, ...OWNER })).finally(lenient.close);
      expect(fault.message).to.include('leads to a pooler');
    });

    it('sells each of 60 payments once over three servers, and knows of their presence', async () => {
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
