import type { Query } from './sql.js';

export type { Query };

/**
 * What the ledger does inside one transaction: it yields queries and is resumed with their rows. SQLite runs it without
 * leaving the current turn of the event loop, PostgreSQL awaits every step; the operations themselves can't tell.
 */
export type TransactionBody<T> = Generator<Query, T, unknown[]>;

/** Runs one query inside an operation. */
export function* execute<Row>(query: Query<Row>): TransactionBody<Row[]> {
  return (yield query) as Row[];
}

/** The places where the two engines differ; everything else is shared. */
export type Dialect = {
  readonly name: 'sqlite' | 'postgres';
  /** Column type of raw bytes. */
  readonly bytes: 'blob' | 'bytea';
  /** Writers run beside each other, so rows that are read in order to be changed must be locked. */
  readonly concurrentWriters: boolean;
  /** The engine's own spelling of a query, which has `?` for values and locks rows (`for update …`). */
  readonly spell: (sql: string) => string;
};

export const SQLITE: Dialect = {
  name: 'sqlite',
  bytes: 'blob',
  concurrentWriters: false,
  // Its one writer has no need of row locks.
  spell: sql => sql.replace(/(?<!\s)\s+for update( of \w+)?( skip locked)?/g, ''),
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

/** One open database. Operations may run more than once, so they must have no effect but their queries. */
export type Engine = {
  readonly dialect: Dialect;
  /** Who claims through this engine; new with every opening. */
  readonly owner: string;
  /** Sentences for the operator about settings that weaken the ledger's promises. */
  readonly warnings: readonly string[];
  /** Runs an operation that changes nothing. It may see what is committed but not yet on disk. */
  read<T>(operation: () => TransactionBody<T>): Promise<T>;
  /**
   * Runs an operation in a transaction and resolves once it is on disk. Operations that are asked for in one turn of the event loop,
   * or while the disk is busy, may share a transaction. `bytes` is the weight of what it writes.
   */
  write<T>(operation: () => TransactionBody<T>, bytes?: number): Promise<T>;
  /**
   * Runs work that waits for other things inside one transaction, on one connection. On SQLite every other write is
   * refused meanwhile.
   */
  transact<T>(work: (run: Run) => Promise<T>): Promise<T>;
  /** Waits for what was asked before, then closes. */
  close(): Promise<void>;
};

/** Runs one query inside `transact`. */
export type Run = <Row>(query: Query<Row>) => Promise<Row[]>;

/**
 * - `server`: sells; a SQLite file takes one, PostgreSQL any number.
 * - `beside`: reads next to running servers.
 * - `source`: an existing ledger that is to be copied; no server may have it open.
 * - `target`: the place it is copied to; no server may have it open.
 */
export type Role = 'server' | 'beside' | 'source' | 'target';
