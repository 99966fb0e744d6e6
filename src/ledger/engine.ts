import type { Query } from './sql.js';

export type { Query };

/**
 * The body of one transaction: it yields queries and is resumed with their rows. The SQLite engine runs it within one turn of the
 * event loop, the PostgreSQL engine awaits every step; the body is the same for both.
 */
export type TransactionBody<T> = Generator<Query, T, unknown[]>;

/** An operation of the ledger. It may run more than once, so it must have no side effects besides its queries. */
export type Operation<T = unknown> = () => TransactionBody<T>;

/** Runs one query inside an operation. */
export function* execute<Row>(query: Query<Row>): TransactionBody<Row[]> {
  return (yield query) as Row[];
}

/** Runs the last query of an operation that writes. PostgreSQL then commits in the same round trip. */
export function finish<Row>(query: Query<Row>): TransactionBody<Row[]> {
  return execute({ ...query, last: true });
}

/** @throws Error for a query that writes, which an operation must not run after `finish` */
export function requireRead({ sql }: Query): void {
  if (!/^\s*select\b/i.test(sql)) throw new Error(`an operation writes after its last query: ${sql}`);
}

export async function runWith<T>(run: Run, operation: TransactionBody<T>): Promise<T> {
  let step = operation.next();
  while (!step.done) step = operation.next(await run(step.value));
  return step.value;
}

/** Runs one query in a transaction. @returns whether it changed a row */
export async function changes(engine: Engine, query: () => Query, scope?: Scope): Promise<boolean> {
  return (await engine.write(() => finish(query()), scope)).length === 1;
}

/** The differences between the two engines. */
export type Dialect = {
  readonly name: 'sqlite' | 'postgres';
  /** The column type for raw bytes. */
  readonly bytes: 'blob' | 'bytea';
  /** Writers run concurrently, so rows must be locked when they are read in order to change them. */
  readonly concurrentWriters: boolean;
  /**
   * Translates a query into the engine's SQL. Queries use `?` for values, `for update …` to lock rows, and `= any (array(…))` to look for a
   * value in a query's result.
   */
  readonly spell: (sql: string) => string;
};

export const SQLITE: Dialect = {
  name: 'sqlite',
  bytes: 'blob',
  concurrentWriters: false,
  // SQLite has one writer, which needs no row locks.
  spell: sql =>
    sql
      .replace(/(?<!\s)\s+for update( of \w+)?( skip locked)?/g, '')
      .replaceAll('= any (array(', 'in (select * from ('),
};

export const POSTGRES: Dialect = {
  name: 'postgres',
  bytes: 'bytea',
  concurrentWriters: true,
  spell: sql => {
    let values = 0;
    return sql.replaceAll('?', () => `$${(values += 1)}`);
  },
};

/** What an operation works on. It decides which transaction the operation joins. */
export type Scope = {
  /** The number of bytes that the operation writes. */
  bytes?: number;
  /**
   * The payment's id, if the operation may share a transaction with operations on other payments: it must not change anything that they
   * read before they write.
   */
  payment?: string;
  /** The payer to lock from before the first query until the commit, because the operation depends on other payments by this payer. */
  payer?: string;
  /**
   * The operation never waits for rows that others are changing, so it may use the connection that shared
   * transactions use.
   */
  neverWaits?: boolean;
};

/** One open database. */
export type Engine = {
  readonly dialect: Dialect;
  /** The owner of claims made through this engine; new each time it is opened. */
  readonly owner: string;
  /** Runs a read-only operation. It may see commits that are not yet on disk. */
  read<T>(operation: Operation<T>): Promise<T>;
  /**
   * Runs an operation in a transaction and resolves once it is on disk. Operations that are requested in one turn of the event loop,
   * or while the disk is busy, may share a transaction.
   */
  write<T>(operation: Operation<T>, scope?: Scope): Promise<T>;
  /**
   * Runs asynchronous work inside one transaction, on one connection. On SQLite all other writes are rejected meanwhile.
   */
  transact<T>(work: (run: Run) => Promise<T>): Promise<T>;
  /** Notifies the other servers that a payment has changed. Best effort: they poll, too. */
  notifyChange(id: string): void;
  /** Resolves when a server notifies that a payment has changed, or after `ms` milliseconds at the latest. */
  changeOf(id: string, ms: number): Promise<void>;
  /**
   * Announces to other servers what this one uses, such as the version of an operation's tables. The announcement replaces an earlier one of the
   * same kind, and ends when the engine is closed.
   */
  show(kind: string, use: string): Promise<void>;
  /** Waits for all earlier operations, then closes. */
  close(): Promise<void>;
};

/** Runs one query inside `transact`. */
export type Run = <Row>(query: Query<Row>) => Promise<Row[]>;

/**
 * - `server`: a selling server; a SQLite file allows one, PostgreSQL any number.
 * - `beside`: a command that runs while servers are running.
 * - `check`: the same, before a server starts; refuses a database that a server can't use.
 * - `source`: an existing ledger that is moved, or gets another receiver; no server may have it open.
 * - `target`: the database to which a ledger is moved; no server may have it open.
 */
export type Role = 'server' | 'beside' | 'check' | 'source' | 'target';
