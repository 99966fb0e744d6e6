import pg from 'pg';
import { POSTGRES, requireRead } from '../engine.js';
import type { Operation, Query, TransactionBody } from '../engine.js';
import { unconfirmed } from '../fault.js';
import { lockPayers, tryPayers } from '../queries/claims.js';
import { STATEMENT_MS } from './server-presence.js';

/** For schema changes, which may rewrite whole tables. */
const SLOW_MS = 3_600_000;
/** The error code of "cached plan must not change result type". */
const STALE_PLAN = '0A000';
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';
/** Settings of each session. Poolers refuse them as startup parameters, so through a pooler each transaction sets them. */
export const SESSION_LIMITS = {
  statement_timeout: STATEMENT_MS,
  idle_in_transaction_session_timeout: STATEMENT_MS,
};
const LIMITS = Object.entries(SESSION_LIMITS).map(([name, ms]) => `; SET LOCAL ${name} = ${ms}`);

export type TransactionOptions = {
  /** The payers to lock, from before the first query until the end. */
  payers?: readonly string[];
};

/**
 * A transaction with few round trips, on a connection that pipelines queries: `BEGIN` is sent together with the first queries, and `COMMIT`
 * with those that are marked as the last. A single query that needs no locks is sent without either.
 */
export class Transaction {
  readonly #client: pg.PoolClient;
  readonly #session: Session;
  readonly #payers: readonly string[];
  #state: 'new' | 'open' | 'ended' = 'new';
  #isBroken = false;

  constructor(client: pg.PoolClient, session: Session, { payers = [] }: TransactionOptions = {}) {
    this.#client = client;
    this.#session = session;
    this.#payers = payers;
  }

  /**
   * Begins the transaction. Its queries wait at most `lockMs` for rows that other transactions have locked.
   * @returns the payers that could be locked immediately; they stay locked until the end
   */
  async begin(payers: readonly string[], lockMs: number): Promise<Set<string>> {
    this.#state = 'open';
    const begun = this.#client.query(`${this.#session.begin}; SET LOCAL lock_timeout = ${lockMs}`);
    const locked = payers.length === 0 ? [] : this.#session.run(this.#client, tryPayers({ payers }));
    const [, rows] = await Promise.all([begun, locked]);
    return new Set(rows.map(({ payer }) => payer));
  }

  /** @throws LedgerFault `unknown` if it was the last query and may or may not have been committed */
  async run<Row>(query: Query<Row>): Promise<Row[]> {
    const [rows] = await this.runAll([query]);
    return rows as Row[];
  }

  /**
   * Runs queries of several operations in one round trip.
   * @throws LedgerFault `unknown` if they may or may not have been committed
   */
  async runAll(queries: readonly Query[]): Promise<unknown[][]> {
    if (this.#state === 'ended') return this.#read(queries);
    const isLast = queries.every(({ last }) => last);
    const isAlone = this.#state === 'new' && isLast && queries.length === 1 && this.#payers.length === 0;
    const sent: Promise<unknown>[] = [];
    if (this.#state === 'new' && !isAlone) sent.push(...this.#start());
    this.#state = isLast ? 'ended' : 'open';
    const answers = queries.map(query => this.#session.run(this.#client, query));
    sent.push(...answers);
    if (isLast && !isAlone) sent.push(this.#client.query('COMMIT'));
    const failed = (await Promise.allSettled(sent)).filter(result => result.status === 'rejected');
    const [first] = failed;
    if (!first) return Promise.all(answers);
    // If PostgreSQL refused a statement or the commit itself, it has rolled back.
    const refusal = failed.find(({ reason }) => isRefusal(reason)) ?? (isLast ? undefined : first);
    throw refusal ? refusal.reason : this.#unknown(first.reason);
  }

  /**
   * Commits, unless the last query already did, and returns the connection to the pool.
   * @throws LedgerFault `unknown`
   */
  async commit(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'ended';
      try {
        await this.#client.query('COMMIT');
      } catch (error) {
        throw isRefusal(error) ? error : this.#unknown(error);
      }
    }
    this.#client.release();
  }

  /**
   * Rolls back and returns the connection to the pool. If the rollback fails, or `isUseless` is set, the
   * connection is closed instead, and PostgreSQL then ends the transaction.
   */
  async abandon(isUseless = false): Promise<void> {
    const failed = (): void => void (this.#isBroken = true);
    if (this.#state === 'open') await this.#client.query('ROLLBACK').catch(failed);
    this.#client.release(this.#isBroken || isUseless);
  }

  #start(): Promise<unknown>[] {
    const begun = this.#client.query(this.#session.begin);
    if (this.#payers.length === 0) return [begun];
    return [begun, this.#session.run(this.#client, lockPayers({ payers: this.#payers }))];
  }

  async #read(queries: readonly Query[]): Promise<unknown[][]> {
    for (const query of queries) requireRead(query);
    try {
      return await Promise.all(queries.map(query => this.#session.run(this.#client, query)));
    } catch (error) {
      throw this.#unknown(error);
    }
  }

  #unknown(error: unknown): Error {
    this.#isBroken = true;
    return unconfirmed(error);
  }
}

/**
 * Runs chains of operations side by side in one transaction, sending the next query of each chain in one round trip. The chains must be
 * independent: none may depend on rows that another one changes.
 * @returns the values of each chain's operations
 */
export async function runTogether(
  transaction: Pick<Transaction, 'runAll'>,
  chains: readonly (readonly Operation[])[],
): Promise<unknown[][]> {
  const all = chains.map(operations => new RunningChain(operations));
  for (;;) {
    const running = all.filter(chain => !chain.isDone);
    if (running.length === 0) return all.map(({ values }) => values);
    const rows = await transaction.runAll(running.map(chain => chain.query()));
    running.forEach((chain, index) => chain.resume(rows[index] as unknown[]));
  }
}

/** Operations that run one after another, query by query. */
class RunningChain {
  readonly values: unknown[] = [];
  readonly #rest: Operation[];
  #body!: TransactionBody<unknown>;
  #step!: IteratorResult<Query, unknown>;
  #hasWritten = false;

  constructor([first, ...rest]: readonly Operation[]) {
    this.#rest = rest;
    if (first) this.#start(first);
  }

  get isDone(): boolean {
    return this.#step.done === true;
  }

  /** The next query. It is marked as the last only if it is the last of the chain's last operation. */
  query(): Query {
    const query = this.#step.value as Query;
    if (this.#hasWritten) requireRead(query);
    this.#hasWritten ||= query.last === true;
    return this.#rest.length === 0 ? query : { ...query, last: false };
  }

  resume(rows: unknown[]): void {
    this.#follow(this.#body.next(rows));
  }

  #start(operation: Operation): void {
    this.#body = operation();
    this.#hasWritten = false;
    this.#follow(this.#body.next());
  }

  #follow(step: IteratorResult<Query, unknown>): void {
    this.#step = step;
    if (!step.done) return;
    this.values.push(step.value);
    const next = this.#rest.shift();
    if (next) this.#start(next);
  }
}

/**
 * Whether PostgreSQL refused the statement. Other errors may come after a commit: a broken connection (08), a server that is shut down (57), or
 * an unknown result (40003).
 */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^(?:08|57|40003)/.test(error.code ?? '57');
}

/** How transactions begin, and queries run, on the connections of a pool. */
export type Session = {
  begin: string;
  run: <Row>(client: pg.PoolClient, query: Query<Row>) => Promise<Row[]>;
};

/**
 * Named statements let PostgreSQL keep their plans. Through a pooler, each transaction may use another server connection, which knows neither
 * the names nor the settings of the session.
 */
export const sessionOf = ({ isPooled }: { isPooled: boolean }): Session => ({
  begin: isPooled ? `${BEGIN}${LIMITS.join('')}` : BEGIN,
  run: async <Row>(client: pg.PoolClient, query: Query<Row>): Promise<Row[]> => {
    const { text, ...named } = statementOf(query);
    const limit = query.slow ? { query_timeout: SLOW_MS } : {};
    const result = await client.query({
      text,
      ...(isPooled ? {} : named),
      values: [...query.parameters],
      ...limit,
    });
    return result.rows as Row[];
  },
});

type Statement = { text: string; name?: string };
const MOST_STATEMENTS = 256;
let generation = 0;
const statements = new Map<string, Statement>();

/** Translates a query. Nearly all queries are from a fixed set and get a name; those that move a ledger or change its schema do not. */
function statementOf({ sql, parameters, slow }: Query): Statement {
  const known = statements.get(sql);
  if (known) return known;
  const text = POSTGRES.spell(sql);
  if (slow || parameters.length === 0 || statements.size >= MOST_STATEMENTS) return { text };
  const statement = { text, name: `coinslot-${generation}-${statements.size}` };
  statements.set(sql, statement);
  return statement;
}

/**
 * Whether a statement failed because another server has changed the schema since it was planned. All statements then get new names, because
 * other connections have outdated plans, too.
 */
export function forgetStalePlans(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code !== STALE_PLAN) return false;
  generation += 1;
  statements.clear();
  return true;
}
