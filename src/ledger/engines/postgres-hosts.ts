import pg from 'pg';
import { LedgerFault, messageOf } from '../fault.js';

/**
 * The timeout for connecting, and again for the query that follows. The sum of both is shorter than a pool's
 * wait for a connection.
 */
const PROBE_MS = 2_000;

type Host = { url: string; name: string; host: string; port: number };

/**
 * The hosts of a replicated PostgreSQL, in libpq's notation: `postgres://user@one:5432,two:5432/ledger`. Whenever a connection breaks, the server
 * checks again which hosts accept writes. It closes its connections to the others, because a former primary that was frozen and resumes would answer
 * with outdated rows.
 */
export class PostgresHosts {
  readonly #hosts: Host[];
  readonly #open = new Map<pg.Client, Host>();
  #primary: Host | undefined;
  #search: Promise<Host> | undefined;

  /**
   * @throws LedgerFault `open` if `target_session_attrs` in the URL asks for servers that are not writable
   */
  constructor(url: string) {
    const [start = '', list = ''] = /^\w+:\/\/(?:[^@/?]*@)?([^@/?]*)/.exec(url) ?? [];
    const [before, after] = [start.slice(0, start.length - list.length), url.slice(start.length)];
    this.#hosts = list.split(',').map(name => hostOf(name, before + name + after));
    const wanted = /[?&]target_session_attrs=([^&]*)/.exec(url)?.[1] ?? 'read-write';
    if (wanted !== 'read-write' && wanted !== 'primary')
      throw new LedgerFault('open', `The ledger needs target_session_attrs=read-write, not ${wanted}.`);
  }

  /** A client class whose instances connect to the primary. */
  get Client(): typeof pg.Client {
    const openTo = (client: pg.Client, connect: () => Promise<unknown>) => this.#connect(client, connect);
    const connectionString = this.#hosts[0]?.url;
    return class extends pg.Client {
      constructor(config: pg.ClientConfig = {}) {
        super({ ...config, connectionString });
      }

      override connect(): Promise<pg.Client>;
      override connect(callback: (error: Error) => void): void;
      override connect(callback?: (error: Error) => void): Promise<pg.Client> | void {
        const connected = openTo(this, () => super.connect()).then(() => this);
        if (!callback) return connected;
        connected.then(() => (callback as () => void)(), callback);
      }
    };
  }

  async #connect(client: pg.Client, connect: () => Promise<unknown>): Promise<void> {
    if (this.#hosts.length === 1) return void (await connect());
    const primary = this.#primary ?? (await this.#find());
    Object.assign(client, { host: primary.host, port: primary.port });
    this.#open.set(client, primary);
    client.on('error', () => this.#left(primary)).on('end', () => this.#open.delete(client));
    try {
      await connect();
      await requireWritable(client);
    } catch (error) {
      this.#left(primary);
      client.connection.stream.destroy();
      throw error;
    }
  }

  #left(host: Host): void {
    if (host !== this.#primary) return;
    this.#primary = undefined;
    this.#find().catch(() => undefined);
  }

  #find(): Promise<Host> {
    return (this.#search ??= this.#ask().finally(() => (this.#search = undefined)));
  }

  async #ask(): Promise<Host> {
    const found = await Promise.any(this.#hosts.map(probe)).catch(({ errors }: AggregateError) => {
      throw new Error(errors.map((error, at) => `${this.#hosts[at]?.name}: ${messageOf(error)}`).join('; '));
    });
    for (const [client, host] of this.#open) if (host !== found) client.connection.stream.destroy();
    return (this.#primary = found);
  }
}

function hostOf(name: string, url: string): Host {
  const { host, port } = new pg.Client({ connectionString: url });
  return { url, name, host, port };
}

async function probe(host: Host): Promise<Host> {
  const client = new pg.Client({ connectionString: host.url, connectionTimeoutMillis: PROBE_MS });
  client.on('error', () => undefined);
  const asked = client.connect().then(() => requireWritable(client));
  return asked.then(() => host).finally(() => client.connection.stream.destroy());
}

/** @throws Error if the server or the user is read-only */
async function requireWritable(client: pg.Client): Promise<void> {
  const shown = { text: 'show transaction_read_only', query_timeout: PROBE_MS };
  const { rows } = await client.query<{ transaction_read_only: string }>(shown);
  if (rows[0]?.transaction_read_only !== 'off') throw new Error('is read-only');
}
