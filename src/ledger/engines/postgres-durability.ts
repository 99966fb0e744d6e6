import { messageOf } from '../fault.js';
import { PostgresHosts } from './postgres-hosts.js';
import { CONNECT_MS } from './server-presence.js';

/**
 * `unsafe`: the settings that let PostgreSQL confirm a commit before it is on disk. `unreplicated`: the setting that lets it confirm a commit before
 * any standby has it; undefined if there is no such setting, or no standby.
 */
export type PostgresDurability = { unsafe: string[]; unreplicated: string | undefined };

/** @throws Error if PostgreSQL can't be reached */
export async function postgresDurability(url: string): Promise<PostgresDurability> {
  const client = new new PostgresHosts(url).Client({
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ name: string; setting: string; standbys: number }>(
      `select name, setting, (select count(*)::int from pg_stat_replication) as standbys from pg_settings
       where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'synchronous_standby_names')`,
    );
    const is = (wanted: string, value: string): boolean =>
      rows.some(({ name, setting }) => name === wanted && setting === value);
    const unsafe = rows.filter(({ setting }) => setting === 'off').map(({ name }) => name);
    if (!rows.some(({ standbys }) => standbys > 0)) return { unsafe, unreplicated: undefined };
    if (is('synchronous_standby_names', ''))
      return { unsafe, unreplicated: 'synchronous_standby_names is empty' };
    return {
      unsafe,
      unreplicated: is('synchronous_commit', 'local') ? 'synchronous_commit is local' : undefined,
    };
  } catch (error) {
    throw new Error(`PostgreSQL can't be reached (${messageOf(error)})`, { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}
