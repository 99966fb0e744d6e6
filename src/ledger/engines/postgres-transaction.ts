import pg from 'pg';
import { POSTGRES, requireRead } from '../engine.js';
import type { Query } from '../engine.js';
import { unconfirmed } from '../fault.js';
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

/**
 * A transaction of few round trips on a connection of the pool, which must pipeline: `BEGIN` travels with the first query, and `COMMIT`
 * with the one that is marked as the last. An operation of a single query needs neither.
 */
export class Transaction {
  readonly #client: pg.PoolClient;
  readonly #session: Session;
  #state: 'new' | 'open' | 'ended' = 'new';
  #isBroken = false;

  constructor(client: pg.PoolClient, session: Session) {
    this.#client = client;
    this.#session = session;
  }

  /** @throws LedgerFault `unknown` if the last query may have been committed or not */
  async run<Row>(query: Query<Row>): Promise<Row[]> {
    if (this.#state === 'ended') requireRead(query);
    else if (query.last) return this.#runLast(query);
    else if (this.#state === 'new') return this.#runFirst(query);
    return this.#session.run(this.#client, query);
  }

  /** Commits what is not committed yet, and gives the connection back. @throws LedgerFault `unknown` */
  async commit(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'ended';
      await this.#confirmed(this.#client.query('COMMIT'));
    }
    this.#client.release();
  }

  /** Rolls back what is not committed. A connection that can't is discarded: PostgreSQL then ends its transaction. So is one of no use. */
  async abandon(isUseless = false): Promise<void> {
    const failed = (): void => void (this.#isBroken = true);
    if (this.#state === 'open') await this.#client.query('ROLLBACK').catch(failed);
    this.#client.release(this.#isBroken || isUseless);
  }

  async #runFirst<Row>(query: Query<Row>): Promise<Row[]> {
    this.#state = 'open';
    const [, rows] = await Promise.all([
      this.#client.query(this.#session.begin),
      this.#session.run(this.#client, query),
    ]);
    return rows;
  }

  async #runLast<Row>(query: Query<Row>): Promise<Row[]> {
    const isAlone = this.#state === 'new';
    this.#state = 'ended';
    const sent = this.#session.run(this.#client, query);
    const committed = isAlone ? sent : this.#client.query('COMMIT');
    // PostgreSQL has rolled back: a commit after a refusal does, and one that is itself refused.
    for (const result of await Promise.allSettled([sent, committed]))
      if (result.status === 'rejected' && isRefusal(result.reason)) throw result.reason;
    await this.#confirmed(Promise.all([sent, committed]));
    return sent;
  }

  async #confirmed(commit: Promise<unknown>): Promise<void> {
    try {
      await commit;
    } catch (error) {
      if (isRefusal(error)) throw error;
      this.#isBroken = true;
      throw unconfirmed(error);
    }
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
