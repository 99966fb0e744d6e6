import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './faults.js';
import { freePort } from './free-port.js';

const PGBOUNCER = '/usr/sbin/pgbouncer';
export const missingPooler = existsSync(PGBOUNCER)
  ? undefined
  : `there is no ${PGBOUNCER} (apt-get install pgbouncer)`;

export type Pooler = { url: string; close: () => Promise<void> };

/**
 * Starts PgBouncer in transaction mode, where a connection to the database is lent for one transaction.
 * @param base the URL of the database, whose user needs no password
 * @param settings lines for the `[pgbouncer]` section of its configuration
 * @param schema the schema of all sessions; by default that of their user
 */
export async function startPooler(
  base: string,
  { settings = [], schema }: { settings?: string[]; schema?: string } = {},
): Promise<Pooler> {
  const folder = await mkdtemp(join(tmpdir(), 'coinslot-pooler-'));
  const port = await freePort();
  const { hostname, port: databasePort, pathname, username } = new URL(base);
  const name = pathname.slice(1);
  const begin = schema === undefined ? '' : ` connect_query='set search_path to ${schema}'`;
  const lines = [
    '[databases]',
    `${name} = host=${hostname} port=${databasePort || 5432} dbname=${name}${begin}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_user = ${username}`,
    // Each place where tests open ledgers has a database user of its own.
    'auth_query = select usename, passwd from pg_shadow where usename = $1',
    `auth_file = ${join(folder, 'users')}`,
    'pool_mode = transaction',
    'max_client_conn = 1000',
    'default_pool_size = 5',
    'server_idle_timeout = 3',
    ...settings,
  ];
  await writeFile(join(folder, 'pgbouncer.ini'), `${lines.join('\n')}\n`);
  await writeFile(join(folder, 'users'), `"${username}" ""\n`);
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
    url: `postgres://${username}@127.0.0.1:${port}/${name}`,
    close: async () => {
      child.kill('SIGINT');
      if (child.exitCode === null) await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
