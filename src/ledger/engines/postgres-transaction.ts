import pg from 'pg';
import { POSTGRES, requireRead } from '../engine.js';
import type { Operation, Query, TransactionBody } from '../engine.js';
import { unconfirmed } from '../fault.js';
import { lockPayers, tryPayers } from '../queries/claims.js';
import { STATEMENT_MS } from './server-presence.js';

/** For schema changes, which may rewrite whole tables. */
const SLOW_MS = 3_600_000;
/** "cached plan must not change result type". */
const STALE_PLAN = '0A000';
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';
/** What a session is begun with. Poolers refuse that: there it is a matter of each transaction. */
export const SESSION_LIMITS = {
  statement_timeout: STATEMENT_MS,
  idle_in_transaction_session_timeout: STATEMENT_MS,
};
const LIMITS = Object.entries(SESSION_LIMITS).map(([name, ms]) => `; SET LOCAL ${name} = ${ms}`);

export type TransactionOptions = {
  /** Locked until the end, before the first query. */
  payers?: readonly string[];
};

/**
 * A transaction of few round trips on a connection of the pool, which must pipeline: `BEGIN` travels with the first queries, and `COMMIT`
 * with those that are marked as the last. A single query that needs no locks needs neither.
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
   * Begins, and waits for rows that others change for so many milliseconds only.
   * @returns those payers that nobody else has locked, which are locked until the end
   */
  async begin(payers: readonly string[], lockMs: number): Promise<Set<string>> {
    this.#state = 'open';
    const begun = this.#client.query(`${this.#session.begin}; SET LOCAL lock_timeout = ${lockMs}`);
    const locked = payers.length === 0 ? [] : this.#session.run(this.#client, tryPayers({ payers }));
    const [, rows] = await Promise.all([begun, locked]);
    return new Set(rows.map(({ payer }) => payer));
  }

  /** @throws LedgerFault `unknown` if the last query may have been committed or not */
  async run<Row>(query: Query<Row>): Promise<Row[]> {
    const [rows] = await this.runAll([query]);
    return rows as Row[];
  }

  /**
   * Runs queries of several operations in one round trip.
   * @throws LedgerFault `unknown` if they may have been committed or not
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
    // PostgreSQL has rolled back: a commit after a refusal does, and one that is itself refused.
    const refusal = failed.find(({ reason }) => isRefusal(reason)) ?? (isLast ? undefined : first);
    throw refusal ? refusal.reason : this.#unknown(first.reason);
  }

  /** Commits what is not committed yet, and gives the connection back. @throws LedgerFault `unknown` */
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

  /** Rolls back what is not committed. A connection that can't is discarded: PostgreSQL then ends its transaction. So is one of no use. */
  async abandon(isUseless = false): Promise<void> {
    const failed = (): void => void (this.#isBroken = true);
    if (this.#state === 'open') await this.#client.query('ROLLBACK').catch(failed);
    this.#client.release(this.#isBroken || isUseless);
  }

  /** Payers are locked in one order by all, so that nobody waits in a circle. */
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
 * Runs chains of operations side by side in one transaction: the next query of each in one round trip. No chain may read what another one
 * changes before it writes itself.
 * @returns the values of each chain
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

  /** The next one. Only that of the last operation is the last of the chain. */
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

/** An error of the statement, not one of the connection or of a server that stops, which may follow a commit, or says that it can't know. */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !/^(?:08|57|40003)/.test(error.code ?? '57');
}

/** How transactions begin, and queries run, on the connections of a pool. */
export type Session = {
  begin: string;
  run: <Row>(client: pg.PoolClient, query: Query<Row>) => Promise<Row[]>;
};

/**
 * PostgreSQL keeps the plans of statements that have a name. A pooler lends another connection each time, on which they are not known, nor are
 * the limits of a session.
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

/** The translated statements. They are a fixed set, except for those that move a ledger or change its schema: these get no name. */
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
 * Whether a statement failed because its plan was made for a schema that another server has changed since. The statements then get new names:
 * other connections have such plans, too.
 */
export function forgetStalePlans(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.code !== STALE_PLAN) return false;
  generation += 1;
  statements.clear();
  return true;
}
