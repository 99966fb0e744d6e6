import { setTimeout as sleep } from 'node:timers/promises';
import type { Role } from '../engine.js';
import { randomUUID } from 'node:crypto';
import { requireRead, SQLITE } from '../engine.js';
import type { Engine, TransactionBody, Query, Run, Scope } from '../engine.js';
import { LedgerFault, messageOf, readFault, unconfirmed, writeFault } from '../fault.js';
import { SqliteFile } from './sqlite-file.js';

type Prepared = ReturnType<SqliteFile['db']['prepare']>;

const MAX_QUEUED = 8_192;
const MAX_BATCH = 256;
const MAX_BATCH_BYTES = 1_048_576;
/** After a commit of this many writes, the next one waits some ms so that more writes share its sync. */
const BUSY_BATCH = 8;
const BUSY_PAUSE_MS = 4;
/** If the disk takes longer than this to confirm a commit, it counts as failed. Shorter than the time allowed for a shutdown. */
const SYNC_MS = 20_000;
/** What the operator can do about a fault. */
const CHECK = 'Check the disk of the ledger: space, permissions, quota.';

type Task = {
  readonly bytes: number;
  /** Runs the operation. Its value is passed on after the commit. */
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: LedgerFault) => void;
};

/**
 * Opens a SQLite file. Only one process may write to it. Writes that are requested in one turn of the event
 * loop, or while the disk is busy, share a commit.
 * @param url,role see `SqliteFile.open`
 * @throws LedgerFault `open`
 */
export function openSqlite(url: string, role: Role): Engine {
  return new SqliteEngine(SqliteFile.open(url, role));
}

/** Thrown if a transaction can't begin or commit, so that its operations are not retried one by one. */
class TransactionFault extends Error {
  readonly fault: LedgerFault;

  constructor(fault: LedgerFault) {
    super(fault.message);
    this.fault = fault;
  }
}

type Done = { readonly task: Task; readonly value: unknown };

class SqliteEngine implements Engine {
  readonly dialect = SQLITE;
  readonly owner = randomUUID();
  readonly #file: SqliteFile;
  readonly #db: SqliteFile['db'];
  #prepared = new Map<string, { statement: Prepared; reader: boolean }>();
  #queue: Task[] = [];
  #scheduled = false;
  #busy = false;
  #closing: Promise<void> | undefined;
  #transacting = false;
  #syncing = false;
  #waiting: (() => void)[] = [];
  /** Set after the disk failed to sync a commit. The file may then differ from SQLite's view of it, so nothing more is written. */
  #broken: LedgerFault | undefined;

  constructor(file: SqliteFile) {
    this.#file = file;
    this.#db = file.db;
  }

  async read<T>(operation: () => TransactionBody<T>): Promise<T> {
    this.#refuseWhenClosed();
    try {
      return this.#run(operation());
    } catch (error) {
      throw readFault(error);
    }
  }

  async write<T>(operation: () => TransactionBody<T>, { bytes = 0 }: Scope = {}): Promise<T> {
    this.#refuseWhenClosed();
    if (this.#broken) throw this.#broken;
    if (this.#transacting)
      throw new LedgerFault('busy', 'The ledger is being moved. Try again when the move is done.');
    if (this.#queue.length >= MAX_QUEUED)
      throw new LedgerFault('busy', 'Too many operations are waiting for the ledger. Try again in a second.');
    return new Promise<unknown>((resolve, reject) => {
      this.#queue.push({ bytes, run: () => this.#run(operation()), resolve, reject });
      this.#schedule();
    }) as Promise<T>;
  }

  async transact<T>(work: (run: Run) => Promise<T>): Promise<T> {
    this.#refuseWhenClosed();
    this.#transacting = true;
    try {
      await this.#quiet();
      if (this.#broken) throw this.#broken;
      this.#control('BEGIN IMMEDIATE');
      const value = await work(async query => this.#execute(query) as never[]);
      this.#control('COMMIT');
      await new Promise<unknown>((resolve, reject) => {
        const task = { bytes: 0, run: () => value, resolve, reject };
        this.#keep([{ task, value }]);
      });
      return value;
    } catch (error) {
      this.#rollback();
      throw error instanceof TransactionFault ? error.fault : writeFault(error, CHECK);
    } finally {
      this.#transacting = false;
    }
  }

  async changeOf(_id: string, ms: number): Promise<void> {
    await sleep(ms);
  }

  /** There are no other servers. */
  notifyChange(): void {}

  /** Does nothing: a SQLite file has no other servers. */
  async show(): Promise<void> {}

  close(): Promise<void> {
    return (this.#closing ??= this.#end());
  }

  async #end(): Promise<void> {
    await this.#quiet();
    this.#prepared.clear();
    this.#file.close();
  }

  #refuseWhenClosed(): void {
    if (this.#closing) throw new LedgerFault('failed', 'The ledger is closed.');
  }

  /** Gathers writes until the last commit is on disk, so that they share one commit and one sync. */
  #schedule(): void {
    if (this.#scheduled || this.#syncing) return;
    this.#scheduled = true;
    const flush = (): void => {
      this.#scheduled = false;
      if (!this.#syncing) this.#flush();
    };
    if (this.#busy) setTimeout(flush, BUSY_PAUSE_MS);
    else setImmediate(flush);
  }

  /** Waits until no write is queued or being synced. */
  async #quiet(): Promise<void> {
    while (this.#queue.length > 0 || this.#syncing) {
      if (this.#syncing) await new Promise<void>(resolve => this.#waiting.push(resolve));
      else this.#flush();
    }
  }

  /** Takes the operations that fit into one transaction; a larger one gets its own. */
  #take(): Task[] {
    let count = 0;
    let bytes = 0;
    for (const task of this.#queue) {
      bytes += task.bytes;
      if (count > 0 && (count >= MAX_BATCH || bytes > MAX_BATCH_BYTES)) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  #flush(): void {
    const batch = this.#take();
    this.#busy = batch.length >= BUSY_BATCH;
    const done = batch.length > 0 ? this.#attempt(batch) : [];
    if (done.length > 0) this.#keep(done);
    else if (this.#queue.length > 0) this.#schedule();
  }

  /** Resolves committed operations once they are on disk. */
  #keep(done: Done[]): void {
    this.#syncing = true;
    let ended = false;
    const end = (error: Error | null): void => {
      if (ended) return;
      ended = true;
      clearTimeout(late);
      this.#syncing = false;
      if (error) this.#break(error, done);
      else for (const { task, value } of done) task.resolve(value);
      for (const wake of this.#waiting.splice(0)) wake();
      if (this.#queue.length > 0) this.#schedule();
    };
    const late = setTimeout(() => end(new Error(`no answer within ${SYNC_MS / 1000} s`)), SYNC_MS);
    this.#file.sync(end);
  }

  #break(cause: Error, done: Done[]): void {
    const why = messageOf(cause);
    const unknown = new LedgerFault('unknown', `The disk did not confirm a commit (${why}).`, { cause });
    for (const { task } of done) task.reject(unknown);
    this.#broken = new LedgerFault(
      'failed',
      `The disk of the ledger failed (${why}), so nothing more is written. Check the disk, then start the server again.`,
      { cause },
    );
    for (const task of this.#queue.splice(0)) task.reject(this.#broken);
  }

  /** Commits a batch. If an operation fails, runs each again in its own transaction. Rejects those that fail, returns the others. */
  #attempt(batch: readonly Task[]): Done[] {
    try {
      return this.#commit(batch);
    } catch (error) {
      const failed = error instanceof TransactionFault;
      if (!failed && batch.length > 1) return batch.flatMap(task => this.#attempt([task]));
      for (const task of batch) task.reject(failed ? error.fault : writeFault(error, CHECK));
      return [];
    }
  }

  #commit(batch: readonly Task[]): Done[] {
    this.#control('BEGIN IMMEDIATE');
    let done: Done[];
    try {
      done = batch.map(task => ({ task, value: task.run() }));
    } catch (error) {
      this.#rollback();
      throw error;
    }
    this.#control('COMMIT');
    return done;
  }

  #control(command: 'BEGIN IMMEDIATE' | 'COMMIT'): void {
    try {
      this.#execute({ sql: command, parameters: [] });
    } catch (error) {
      this.#rollback();
      throw new TransactionFault(command === 'COMMIT' ? unconfirmed(error) : writeFault(error, CHECK));
    }
  }

  #rollback(): void {
    try {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
    } catch {
      // SQLite has already rolled back. The caller reports the first error.
    }
  }

  #run<T>(operation: TransactionBody<T>): T {
    let step = operation.next();
    let last = false;
    while (!step.done) {
      if (last) requireRead(step.value);
      last ||= step.value.last === true;
      step = operation.next(this.#execute(step.value));
    }
    return step.value;
  }

  #execute(query: Query): unknown[] {
    let entry = this.#prepared.get(query.sql);
    if (!entry) {
      const statement = this.#db.prepare(this.dialect.spell(query.sql));
      entry = { statement, reader: statement.reader };
      // The statements are a fixed set, except for schema changes.
      if (this.#prepared.size < 256) this.#prepared.set(query.sql, entry);
    }
    if (entry.reader && query.single) {
      // For a single row, `get` costs a third of what `all` costs.
      const row: unknown = entry.statement.get(query.parameters);
      return row === undefined ? [] : [row];
    }
    if (entry.reader) return entry.statement.all(query.parameters);
    entry.statement.run(query.parameters);
    return [];
  }
}
