import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, fdatasync, openSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import type { Role } from './connect.js';
import { SQLITE } from './engine.js';
import type { Engine, Operation, Query, Run } from './engine.js';
import { LedgerFault, messageOf } from './fault.js';

type Connection = InstanceType<typeof Database>;
type Prepared = ReturnType<Connection['prepare']>;

const MAX_QUEUED = 8_192;
const MAX_BATCH = 256;
const MAX_BATCH_BYTES = 1_048_576;
const BUSY_TIMEOUT_MS = 5_000;
/** A disk that takes longer than this to confirm a commit has failed. Shorter than a stop of the server may take. */
const SYNC_MS = 20_000;

type Task = {
  readonly bytes: number;
  /** Runs the operation; the value is kept until the commit. */
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: LedgerFault) => void;
};

/**
 * Opens a SQLite file.
 * @param url `file:/absolute/path`, `file:///absolute/path` or `file:relative/path`
 * @param role all but `beside` take the lock that only one process may hold; `beside` and `source` create no file
 * @throws LedgerFault `open`
 */
export function openSqlite(url: string, role: Role): Engine {
  const path = pathOf(url);
  if (role === 'beside' || role === 'source') refuseMissing(path);
  const file = role === 'beside' ? path : createFile(path);
  const lock = role === 'beside' ? undefined : takeLock(file);
  try {
    const db = connect(file, role);
    return new SqliteEngine(db, { log: writesLog(db, role) ? new WriteAheadLog(file) : undefined, lock });
  } catch (error) {
    release(lock);
    throw openFault(file, error);
  }
}

function pathOf(url: string): string {
  return url.startsWith('file://') ? fileURLToPath(url) : resolve(url.slice('file:'.length));
}

function refuseMissing(path: string): void {
  if (existsSync(path)) return;
  throw new LedgerFault(
    'open',
    `There is no ledger at ${path}. Check STATE_DIR and DATABASE_URL, or start the server once.`,
  );
}

/** Creates the file for its owner alone (it holds signed payments) and resolves links, so that one file has one lock. */
function createFile(path: string): string {
  try {
    // A folder is never made here: a misspelt path would begin an empty ledger.
    createEmpty(path);
    const file = realpathSync(path);
    if (!statSync(file).isFile()) throw new Error('it is not a file');
    createEmpty(lockOf(file));
    return file;
  } catch (error) {
    throw openFault(path, error);
  }
}

/** `wx` never opens an existing file: closing a second descriptor of it would drop this process's locks on it. */
function createEmpty(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function lockOf(file: string): string {
  return join(dirname(file), `${basename(file)}.lock`);
}

/**
 * An exclusive transaction on a database of its own, held for the life of the process. Its file locks belong to the
 * kernel, which drops them however the process ends; the ledger itself stays readable for others.
 */
function takeLock(file: string): Connection {
  let lock: Connection | undefined;
  try {
    lock = new Database(lockOf(file), { timeout: 0 });
    lock.exec('PRAGMA journal_mode = MEMORY');
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock?.close();
    if (codeOf(error).startsWith('SQLITE_BUSY'))
      throw new LedgerFault(
        'open',
        `The ledger ${file} is in use by another running server. Stop that server, give this one another STATE_DIR, ` +
          'or set DATABASE_URL=postgres://… to run several servers on one ledger.',
        { cause: error },
      );
    throw openFault(file, error);
  }
}

function release(lock: Connection | undefined): void {
  if (!lock) return;
  // An explicit rollback: the lock must be gone even while the connection object waits for the garbage collector.
  if (lock.inTransaction) lock.exec('ROLLBACK');
  lock.close();
}

function connect(file: string, role: Role): Connection {
  const db = new Database(file, { timeout: BUSY_TIMEOUT_MS });
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  if (role !== 'beside') {
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA journal_size_limit = 67108864');
    // Payment ids are random, so every batch touches many pages: fold them into the file less often, from memory.
    db.exec('PRAGMA wal_autocheckpoint = 8000');
    db.exec('PRAGMA cache_size = -65536');
  }
  db.exec('PRAGMA foreign_keys = ON');
  return db;
}

/**
 * Decides who waits for the disk: SQLite itself, stopping the server at every commit, or a `WriteAheadLog` beside it. The latter needs
 * the write-ahead log, which not every file system can have, and a process that keeps the file open.
 */
function writesLog(db: Connection, role: Role): boolean {
  const mode = db.prepare('PRAGMA journal_mode').get() as { journal_mode?: unknown } | undefined;
  const apart = role !== 'beside' && mode?.journal_mode === 'wal';
  db.exec(`PRAGMA synchronous = ${apart ? 'NORMAL' : 'FULL'}`);
  return apart;
}

/**
 * Has the write-ahead log written to the disk (fdatasync) by a thread, as SQLite does it at every commit with `synchronous = FULL`.
 * With `NORMAL` SQLite itself does so only before it folds the log into the file, and when it begins the log anew. The log is checksummed, so what a power cut leaves
 * of it ends with a whole commit, and a commit is on disk with all before it.
 */
class WriteAheadLog {
  readonly #path: string;
  #fd: number | undefined;

  constructor(file: string) {
    this.#path = `${file}-wal`;
  }

  /** Calls back once all that is committed now is on disk. */
  sync(done: (error: Error | null) => void): void {
    try {
      // SQLite makes the log with the first commit and keeps it while the ledger is open; it has no locks on it that closing could drop.
      this.#fd ??= openSync(this.#path, 'r+');
    } catch (error) {
      return done(error as Error);
    }
    fdatasync(this.#fd, done);
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
  }
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

function openFault(file: string, error: unknown): LedgerFault {
  if (error instanceof LedgerFault) return error;
  return new LedgerFault(
    'open',
    `The ledger ${file} can't be opened (${messageOf(error)}). Check that its folder exists, belongs to this user, ` +
      'is writable and has space left, or set STATE_DIR or DATABASE_URL to another place.',
    { cause: error },
  );
}

function writeFault(error: unknown): LedgerFault {
  return new LedgerFault(
    'failed',
    `The ledger can't be written (${messageOf(error)}). Check the disk of the ledger: space, permissions, quota.`,
    { cause: error },
  );
}

/** Thrown while a transaction begins or commits, when the items themselves are not to blame. */
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
  readonly warnings: readonly string[] = [];
  #db: Connection;
  readonly #log: WriteAheadLog | undefined;
  readonly #lock: Connection | undefined;
  #prepared = new Map<string, { statement: Prepared; reader: boolean }>();
  #queue: Task[] = [];
  #scheduled = false;
  #closing: Promise<void> | undefined;
  #transacting = false;
  #syncing = false;
  #waiting: (() => void)[] = [];
  /** The disk failed after a commit: what is on it is not what SQLite believes, so nothing more is written. */
  #broken: LedgerFault | undefined;

  constructor(db: Connection, beside: { log: WriteAheadLog | undefined; lock: Connection | undefined }) {
    this.#db = db;
    this.#log = beside.log;
    this.#lock = beside.lock;
  }

  async read<T>(operation: () => Operation<T>): Promise<T> {
    this.#refuseWhenClosed();
    try {
      return this.#run(operation());
    } catch (error) {
      throw new LedgerFault('failed', `The ledger can't be read (${messageOf(error)}).`, { cause: error });
    }
  }

  async write<T>(operation: () => Operation<T>, bytes = 0): Promise<T> {
    this.#refuseWhenClosed();
    if (this.#broken) throw this.#broken;
    if (this.#transacting)
      throw new LedgerFault('busy', 'The ledger is being copied. Try again when the copy is done.');
    if (this.#queue.length >= MAX_QUEUED)
      throw new LedgerFault('busy', 'Too many writes wait for the ledger. Try again in a second.');
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
      if (error instanceof LedgerFault) throw error;
      throw error instanceof TransactionFault ? error.fault : writeFault(error);
    } finally {
      this.#transacting = false;
    }
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#end());
  }

  async #end(): Promise<void> {
    await this.#quiet();
    this.#prepared.clear();
    if (this.#log) this.#fold();
    this.#db.close();
    this.#log?.close();
    release(this.#lock);
  }

  /** Folds the log into the file, so that whoever copies the file of a stopped server has all of it. */
  #fold(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Somebody reads it just now, or the disk failed: the next opening reads the log.
    }
  }

  #refuseWhenClosed(): void {
    if (this.#closing) throw new LedgerFault('failed', 'The ledger is closed.');
  }

  /** Until the disk has the last commit, what is asked meanwhile is gathered: one commit and one sync serve all of it. */
  #schedule(): void {
    if (this.#scheduled || this.#syncing) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (!this.#syncing) this.#flush();
    });
  }

  /** Waits until nothing is asked or on its way to the disk. */
  async #quiet(): Promise<void> {
    while (this.#queue.length > 0 || this.#syncing) {
      if (this.#syncing) await new Promise<void>(resolve => this.#waiting.push(resolve));
      else this.#flush();
    }
  }

  /** Takes what fits into one transaction; an item heavier than that gets one for itself. */
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
    const done = batch.length > 0 ? this.#attempt(batch) : [];
    if (done.length > 0) this.#keep(done);
    else if (this.#queue.length > 0) this.#schedule();
  }

  /** Resolves what is committed once it is on disk. */
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
    if (this.#log) this.#log.sync(end);
    else end(null);
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

  /** Commits a batch; what can't be done is rejected, the rest returned. */
  #attempt(batch: Task[]): Done[] {
    try {
      return this.#commit(batch);
    } catch (error) {
      if (!(error instanceof TransactionFault)) {
        if (batch.length > 1) return this.#retryOneByOne(batch);
        batch[0]?.reject(writeFault(error));
      } else for (const task of batch) task.reject(error.fault);
      return [];
    }
  }

  /** One bad item must fail alone; a database that can't begin or commit fails all that are left. */
  #retryOneByOne(batch: Task[]): Done[] {
    const done: Done[] = [];
    let broken: LedgerFault | undefined;
    for (const task of batch) {
      if (broken) {
        task.reject(broken);
        continue;
      }
      try {
        done.push(...this.#commit([task]));
      } catch (error) {
        if (error instanceof TransactionFault) broken = error.fault;
        task.reject(error instanceof TransactionFault ? error.fault : writeFault(error));
      }
    }
    return done;
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
      const fault =
        command === 'COMMIT'
          ? new LedgerFault('unknown', `The ledger could not confirm a commit (${messageOf(error)}).`, {
              cause: error,
            })
          : writeFault(error);
      throw new TransactionFault(fault);
    }
  }

  #rollback(): void {
    try {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK');
    } catch {
      // SQLite has rolled back by itself; the caller reports the first error.
    }
  }

  #run<T>(operation: Operation<T>): T {
    let step = operation.next();
    while (!step.done) step = operation.next(this.#execute(step.value));
    return step.value;
  }

  #execute(query: Query): unknown[] {
    let entry = this.#prepared.get(query.sql);
    if (!entry) {
      const statement = this.#db.prepare(this.dialect.spell(query.sql));
      entry = { statement, reader: statement.reader };
      // The statements are a fixed set; schema changes would be the one exception.
      if (this.#prepared.size < 256) this.#prepared.set(query.sql, entry);
    }
    if (entry.reader && query.single) {
      // A third of what an iterator over one row costs.
      const row: unknown = entry.statement.get(query.parameters);
      return row === undefined ? [] : [row];
    }
    if (entry.reader) return entry.statement.all(query.parameters);
    entry.statement.run(query.parameters);
    return [];
  }
}
