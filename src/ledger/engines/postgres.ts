import type { Role } from '../engine.js';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { POSTGRES, runWith } from '../engine.js';
import type { Engine, Operation, Run, Scope, TransactionBody } from '../engine.js';
import { LedgerFault, messageOf, readFault, writeFault } from '../fault.js';
import { PostgresHosts } from './postgres-hosts.js';
import {
  forgetStalePlans,
  runTogether,
  SESSION_LIMITS,
  sessionOf,
  Transaction,
} from './postgres-transaction.js';
import type { Session, TransactionOptions } from './postgres-transaction.js';
import { CONNECT_MS, KEPT_ALIVE, ServerPresence, STATEMENT_MS } from './server-presence.js';
import { SHARED_LOCK_MS, SharedCommits } from './shared-commits.js';
import type { Chain, Shared } from './shared-commits.js';

const OLDEST_VERSION = 15;
const MAX_CONNECTIONS = 10;
const MAX_WAITING = 2_000;
const CLOSE_MS = 5_000;
const MAX_TRIES = 4;
/** What the operator can do about a fault. */
const CHECK = 'Check the PostgreSQL server.';

/** The error code of a server that has become a standby or read-only. */
const READ_ONLY = '25006';
/** Serialization failure and deadlock: PostgreSQL has rolled back, and the transaction can be retried. */
const RETRY = new Set(['40001', '40P01', READ_ONLY]);
/** Errors of a connection that broke before its commit was sent, for instance because it had been idle for too long. */
const BROKEN = /^(?:08|57P0|ECONNRESET|EPIPE|Connection terminated unexpectedly)/;

/** Integers in the ledger stay below 2^53, so int8 is read as a number. */
const INT8 = 20;
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: string): unknown =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format === 'binary' ? 'binary' : 'text'),
};

/**
 * Opens a PostgreSQL database (15 or later).
 * @param role servers share the ledger; `source` and `target` need exclusive access
 * @param directUrl the same database, if `url` points to a pooler that lends a connection for one transaction
 * @throws LedgerFault `open`
 */
export async function openPostgres(url: string, role: Role, directUrl = url): Promise<Engine> {
  const isPooled = directUrl !== url;
  let pool: pg.Pool | undefined;
  try {
    const hosts = new PostgresHosts(url);
    pool = poolOf(hosts, isPooled);
    if (role !== 'beside') await requireUsable(pool, isPooled);
    const owner = randomUUID();
    const direct = isPooled ? new PostgresHosts(directUrl) : hosts;
    const presence =
      role === 'beside' || role === 'check' ? undefined : await ServerPresence.announce(direct, role);
    const lane = poolOf(hosts, isPooled, 1);
    return new PostgresEngine(pool, { lane, owner, presence, session: sessionOf({ isPooled }) });
  } catch (error) {
    await pool?.end();
    if (error instanceof LedgerFault) throw error;
    if (!isPooled && isRefusedByPooler(error)) throw new LedgerFault('open', POOLER, { cause: error });
    throw new LedgerFault(
      'open',
      `The ledger's PostgreSQL can't be reached (${messageOf(error)}). Check DATABASE_URL, and that the server is running.`,
      { cause: error },
    );
  }
}

function poolOf(hosts: PostgresHosts, isPooled: boolean, max = MAX_CONNECTIONS - 1): pg.Pool {
  const pool = new pg.Pool({
    Client: hosts.Client,
    max,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: STATEMENT_MS + 2_000,
    ...(isPooled ? {} : SESSION_LIMITS),
    ...KEPT_ALIVE,
    pipeline: true,
    types,
  });
  // The pool replaces a broken idle connection. Without a listener its error would end the process.
  pool.on('error', () => undefined);
  // A connection that is in use may break between two queries; the next query reports that.
  pool.on('connect', client => client.on('error', () => undefined));
  return pool;
}

const POOLER =
  'DATABASE_URL points to a pooler, which shares its connections among clients. Set DATABASE_DIRECT_URL to the URL of the database itself: the server needs a connection of its own.';

/** PgBouncer refuses the session settings that the server sends. */
const isRefusedByPooler = (error: unknown): boolean => /unsupported startup parameter/.test(messageOf(error));

type Fitness = {
  pid: number;
  version: number;
  name: string;
  schema: string | null;
  replica: boolean;
  readonly: string;
  creates: boolean | null;
};

/** @throws LedgerFault `open` with what the operator must change */
async function requireUsable(pool: pg.Pool, isPooled: boolean): Promise<void> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<Fitness>(
      `select pg_backend_pid() as pid, current_setting('server_version_num')::int as version, current_setting('server_version') as name,
         current_schema() as schema, pg_is_in_recovery() as replica, current_setting('transaction_read_only') as readonly,
         has_schema_privilege(current_schema(), 'USAGE') and has_schema_privilege(current_schema(), 'CREATE') as creates`,
    );
    const problem = rows[0] && problemOf(rows[0]);
    if (problem) throw new LedgerFault('open', problem);
    // When a client connects, a pooler reports a process id other than PostgreSQL's.
    const { processID } = client as unknown as { processID: number };
    if (!isPooled && rows[0]?.pid !== processID) throw new LedgerFault('open', POOLER);
  } finally {
    client.release();
  }
}

function problemOf({ version, name, schema, replica, readonly, creates }: Fitness): string | undefined {
  if (version < OLDEST_VERSION * 10_000)
    return `PostgreSQL ${name} is too old for the ledger. Use version ${OLDEST_VERSION} or later.`;
  if (replica || readonly === 'on')
    return 'The database in DATABASE_URL is read-only (a replica?). Set DATABASE_URL to the primary, with a user that may write.';
  if (schema === null)
    return 'The database in DATABASE_URL has no schema that the ledger can use. Create the schema named in search_path, or grant usage and create on it to the user.';
  if (creates !== true)
    return `The user in DATABASE_URL may not create tables. Run: grant usage, create on schema "${schema}" to that user.`;
  return undefined;
}

class PostgresEngine implements Engine {
  readonly dialect = POSTGRES;
  readonly owner: string;
  readonly #pool: pg.Pool;
  /** A pool of one connection for shared commits, so that they never wait for other operations' connections. */
  readonly #lane: pg.Pool;
  readonly #presence: ServerPresence | undefined;
  readonly #session: Session;
  readonly #shared = new SharedCommits({
    together: chains => this.#writeChains(chains),
    apart: chain => this.#writeChain(chain),
  });

  constructor(
    pool: pg.Pool,
    {
      lane,
      owner,
      presence,
      session,
    }: Pick<PostgresEngine, 'owner'> & {
      lane: pg.Pool;
      presence: ServerPresence | undefined;
      session: Session;
    },
  ) {
    this.#pool = pool;
    this.#lane = lane;
    this.owner = owner;
    this.#presence = presence;
    this.#session = session;
  }

  async read<T>(operation: () => TransactionBody<T>): Promise<T> {
    try {
      return await repeated(() => this.#readOnce(operation()));
    } catch (error) {
      throw readFault(error);
    }
  }

  async write<T>(operation: Operation<T>, scope: Scope = {}): Promise<T> {
    const { payment } = scope;
    if (payment !== undefined) return this.#shared.add({ ...scope, payment, operation });
    const [value] = await this.#writeChain(
      [{ ...scope, operation }],
      scope.neverWaits ? this.#lane : this.#pool,
    );
    return value as T;
  }

  async #writeChain(
    chain: readonly Pick<Shared, 'operation' | 'payer'>[],
    pool = this.#pool,
  ): Promise<unknown[]> {
    const payers = payersOf(chain);
    const operations = chain.map(({ operation }) => operation);
    try {
      const [values] = await repeated(() =>
        this.#transact(transaction => runTogether(transaction, [operations]), { payers, pool }),
      );
      return values as unknown[];
    } catch (error) {
      throw writeFault(error, CHECK);
    }
  }

  /**
   * Runs, in one transaction, the chains of operations whose payers no other transaction has locked. Returns nothing if it failed and was
   * rolled back.
   */
  async #writeChains(chains: readonly Chain[]): Promise<(unknown[] | undefined)[]> {
    const payers = payersOf(chains.flat());
    try {
      return await this.#transact(
        async transaction => {
          const free = await transaction.begin(payers, SHARED_LOCK_MS);
          const isFree = (chain: Chain): boolean =>
            chain.every(({ payer }) => payer === undefined || free.has(payer));
          const operations = chains.filter(isFree).map(chain => chain.map(({ operation }) => operation));
          const values = await runTogether(transaction, operations);
          return chains.map(chain => (isFree(chain) ? values.shift() : undefined));
        },
        { pool: this.#lane },
      );
    } catch (error) {
      if (error instanceof LedgerFault && error.code === 'unknown') throw error;
      return [];
    }
  }

  async transact<T>(work: (run: Run) => Promise<T>): Promise<T> {
    try {
      return await this.#transact(transaction => work(query => transaction.run(query)));
    } catch (error) {
      throw writeFault(error, CHECK);
    }
  }

  notifyChange(id: string): void {
    this.#presence?.notifyChange(id);
  }

  async changeOf(id: string, ms: number): Promise<void> {
    await (this.#presence?.changeOf(id, ms) ?? sleep(ms));
  }

  async show(kind: string, use: string): Promise<void> {
    await this.#presence?.show(kind, use);
  }

  async close(): Promise<void> {
    // A PostgreSQL server that can no longer be reached never confirms the close. The process must end nevertheless.
    const limit = new AbortController();
    const late = sleep(CLOSE_MS, undefined, { signal: limit.signal }).catch(() => undefined);
    await Promise.race([this.#end(), late]);
    limit.abort();
  }

  async #end(): Promise<void> {
    await this.#shared.idle();
    await this.#presence?.end();
    for (const pool of [this.#pool, this.#lane]) if (!pool.ended) await pool.end();
  }

  async #connect(pool = this.#pool): Promise<pg.PoolClient> {
    if (pool.waitingCount >= MAX_WAITING)
      throw new LedgerFault('busy', 'Too many operations are waiting for the ledger. Try again in a second.');
    try {
      return await pool.connect();
    } catch (error) {
      throw new LedgerFault('failed', `The ledger's PostgreSQL can't be reached (${messageOf(error)}).`, {
        cause: error,
      });
    }
  }

  async #readOnce<T>(operation: TransactionBody<T>): Promise<T> {
    const client = await this.#connect();
    try {
      const value = await runWith(query => this.#session.run(client, query), operation);
      client.release();
      return value;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  async #transact<T>(
    work: (transaction: Transaction) => Promise<T>,
    { pool = this.#pool, ...options }: TransactionOptions & { pool?: pg.Pool } = {},
  ): Promise<T> {
    const client = await this.#connect(pool);
    const transaction = new Transaction(client, this.#session, options);
    try {
      const value = await work(transaction);
      await transaction.commit();
      return value;
    } catch (error) {
      const isUseless = codeOf(error) === READ_ONLY;
      if (isUseless) client.connection.stream.destroy();
      await transaction.abandon(isUseless);
      throw error;
    }
  }
}

const payersOf = (operations: readonly Scope[]): string[] => [
  ...new Set(operations.flatMap(({ payer }) => payer ?? [])),
];

/**
 * Repeats a transaction that PostgreSQL rolled back because of a conflict with others (such as a deadlock),
 * or that failed before its commit was sent.
 */
async function repeated<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      const undone = forgetStalePlans(error) || RETRY.has(codeOf(error)) || isBroken(error);
      if (!undone || tries === MAX_TRIES) throw error;
    }
  }
}

/**
 * Whether the connection broke before the commit. A LedgerFault already states whether anything was written,
 * so its transaction is never repeated.
 */
const isBroken = (error: unknown): boolean =>
  !(error instanceof LedgerFault) && (BROKEN.test(codeOf(error)) || BROKEN.test(messageOf(error)));

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? '';
