import type { Role } from '../engine.js';
import { EventEmitter, once } from 'node:events';
import type pg from 'pg';
import { LedgerFault } from '../fault.js';
import { SCHEMA_VERSION } from '../migrations.js';
import { CHANNEL, PRESENCE_LOCK, USE_LOCK, VERSION_LOCK } from '../queries/server-presence.js';
import type { PostgresHosts } from './postgres-hosts.js';

export const CONNECT_MS = 5_000;
export const STATEMENT_MS = 10_000;
/** The most notifications that may be under way at a time. Further ones are not sent. */
const MOST_NOTIFYING = 100;
const PRESENCE_RETRY_MS = 2_000;
const PRESENCE_CHECK_MS = 10_000;
/** TCP keep-alive: keeps routers from dropping a silent connection, and detects within 20 s that the other end is gone. */
export const KEPT_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

/**
 * Advisory locks on a separate connection. Servers share the presence lock. Moving the ledger or changing its receiver needs it exclusively,
 * so that neither happens to a ledger in use (`moveLedger` and `changeReceiver` are safe without it, too). The version lock shows which schema
 * a server knows, so that no starting server migrates the schema while a server of an earlier version is using it (see `migrate`).
 */
export class ServerPresence {
  readonly #hosts: PostgresHosts;
  readonly #role: Role;
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  readonly #uses = new Map<string, string>();
  #notifying = 0;
  /** Emits an event for each payment that a server has changed. */
  readonly #changes = new EventEmitter().setMaxListeners(0);

  private constructor(hosts: PostgresHosts, role: Role) {
    this.#hosts = hosts;
    this.#role = role;
  }

  /**
   * @throws LedgerFault `open`: for a server, if the ledger is being moved or its receiver changed; for a
   * move or a change of receiver, if a server has the ledger open
   */
  static async announce(hosts: PostgresHosts, role: Role): Promise<ServerPresence> {
    const presence = new ServerPresence(hosts, role);
    try {
      if (await presence.#take()) return presence;
    } catch (error) {
      await presence.end();
      throw error;
    }
    await presence.end();
    throw new LedgerFault(
      'open',
      role === 'server'
        ? 'The ledger is being moved, or its receiver changed. Start the server when that is done.'
        : 'The ledger is in use by a running server. Stop every server on it, then repeat the command. Nothing was changed.',
    );
  }

  /**
   * The notification is sent outside the transaction that makes the change, because PostgreSQL commits transactions with notifications one at a time,
   * and refuses them if its notification queue is full.
   */
  notifyChange(id: string): void {
    if (!this.#client || this.#notifying >= MOST_NOTIFYING) return;
    this.#notifying += 1;
    const notified = this.#client.query(`select pg_notify(${CHANNEL}, $1)`, [id]).catch(() => undefined);
    void notified.finally(() => (this.#notifying -= 1));
  }

  /**
   * Resolves when a server has announced a change to the payment, or after `ms` milliseconds at the latest.
   */
  async changeOf(id: string, ms: number): Promise<void> {
    await once(this.#changes, eventOf(id), { signal: AbortSignal.timeout(Math.ceil(ms)) }).catch(
      () => undefined,
    );
  }

  /** Announces to other servers what this one uses, replacing the earlier announcement of the same kind. */
  async show(kind: string, use: string): Promise<void> {
    const before = this.#uses.get(kind);
    if (before === use) return;
    this.#uses.set(kind, use);
    await this.#onUse('pg_advisory_lock_shared', use);
    if (before !== undefined) await this.#onUse('pg_advisory_unlock_shared', before);
  }

  async #onUse(command: string, use: string): Promise<void> {
    const key = "hashtext(current_schema() || ' ' || $1)";
    await this.#client?.query(`select ${command}(${USE_LOCK}, ${key})`, [use]);
  }

  async end(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#client?.end().catch(() => undefined);
  }

  async #take(): Promise<boolean> {
    const client = new this.#hosts.Client({
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      ...KEPT_ALIVE,
    });
    client.on('error', () => undefined);
    client.on('end', () => this.#again(client));
    this.#client = client;
    await client.connect();
    await client.query('set idle_session_timeout = 0');
    const server = this.#role === 'server';
    if (server) {
      this.#watch(client);
      await this.#listen(client);
      await client.query(`select pg_advisory_lock_shared(${VERSION_LOCK}, ${SCHEMA_VERSION})`);
    }
    for (const use of this.#uses.values()) await this.#onUse('pg_advisory_lock_shared', use);
    const shared = server ? '_shared' : '';
    const { rows } = await client.query<{ taken: boolean }>(
      `select pg_try_advisory_lock${shared}(${PRESENCE_LOCK}, hashtext(current_schema())) as taken`,
    );
    return rows[0]?.taken === true;
  }

  async #listen(client: pg.Client): Promise<void> {
    client.on('notification', ({ payload = '' }) => this.#changes.emit(eventOf(payload)));
    const { rows } = await client.query<{ channel: string }>(`select ${CHANNEL} as channel`);
    await client.query(`listen ${client.escapeIdentifier(rows[0]!.channel)}`);
  }

  /** Closes the connection if the other end is reachable but no longer responds, because the locks may be lost. */
  #watch(client: pg.Client): void {
    const seen = { text: 'select 1', query_timeout: CONNECT_MS };
    const look = (): void => void client.query(seen).catch(() => client.connection.stream.destroy());
    const timer = setInterval(look, PRESENCE_CHECK_MS).unref();
    client.on('end', () => clearInterval(timer));
  }

  /** Reconnects after the connection is lost. The server continues to sell meanwhile. */
  #again(lost: pg.Client): void {
    if (this.#ended || this.#role !== 'server' || lost !== this.#client) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#take().catch(() => {
        void this.#client?.end().catch(() => undefined);
        this.#again(this.#client ?? lost);
      });
    }, PRESENCE_RETRY_MS).unref();
  }
}

const eventOf = (id: string): string => `payment ${id}`;
