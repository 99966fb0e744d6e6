import { messageOf } from '../fault.js';
import { PostgresHosts } from './postgres-hosts.js';
import { CONNECT_MS } from './server-presence.js';

/** The settings of a PostgreSQL database that let it confirm a commit before it is on disk. @throws Error if it can't be reached */
export async function unsafeSettings(url: string): Promise<string[]> {
  const client = new new PostgresHosts(url).Client({
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ name: string; setting: string }>(
      `select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes')`,
    );
    return rows.filter(({ setting }) => setting === 'off').map(({ name }) => name);
  } catch (error) {
    throw new Error(`PostgreSQL can't be reached (${messageOf(error)})`, { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}
