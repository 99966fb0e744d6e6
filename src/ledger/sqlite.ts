import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs';
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
    return new SqliteEngine(connect(file, role), lock);
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
  db.exec('PRAGMA synchronous = FULL');
  db.exec('PRAGMA foreign_keys = ON');
  return db;
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

class SqliteEngine implements Engine {
  readonly dialect = SQLITE;
  readonly owner = randomUUID();
  readonly warnings: readonly string[] = [];
  #db: Connection;
  #lock: Connection | undefined;
  #prepared = new Map<string, { statement: Prepared; reader: boolean }>();
  #queue: Task[] = [];
  #scheduled = false;
  #closed = false;
  #transacting = false;

  constructor(db: Connection, lock: Connection | undefined) {
    this.#db = db;
    this.#lock = lock;
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
    while (this.#queue.length > 0) this.#flush();
    this.#transacting = true;
    try {
      this.#control('BEGIN IMMEDIATE');
      const value = await work(async query => this.#execute(query) as never[]);
      this.#control('COMMIT');
      return value;
    } catch (error) {
      this.#rollback();
      if (error instanceof LedgerFault) throw error;
      throw error instanceof TransactionFault ? error.fault : writeFault(error);
    } finally {
      this.#transacting = false;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    while (this.#queue.length > 0) this.#flush();
    this.#prepared.clear();
    this.#db.close();
    release(this.#lock);
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw new LedgerFault('failed', 'The ledger is closed.');
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
      if (this.#queue.length > 0) this.#schedule();
    });
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
    if (batch.length === 0) return;
    try {
      this.#commit(batch);
    } catch (error) {
      if (error instanceof TransactionFault) for (const task of batch) task.reject(error.fault);
      else if (batch.length === 1) batch[0]?.reject(writeFault(error));
      else this.#retryOneByOne(batch);
    }
  }

  /** One bad item must fail alone; a database that can't begin or commit fails all that are left. */
  #retryOneByOne(batch: Task[]): void {
    let broken: LedgerFault | undefined;
    for (const task of batch) {
      if (broken) {
        task.reject(broken);
        continue;
      }
      try {
        this.#commit([task]);
      } catch (error) {
        if (error instanceof TransactionFault) broken = error.fault;
        task.reject(error instanceof TransactionFault ? error.fault : writeFault(error));
      }
    }
  }

  #commit(batch: readonly Task[]): void {
    this.#control('BEGIN IMMEDIATE');
    const values: unknown[] = [];
    try {
      for (const task of batch) values.push(task.run());
    } catch (error) {
      this.#rollback();
      throw error;
    }
    this.#control('COMMIT');
    batch.forEach((task, index) => task.resolve(values[index]));
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
      const statement = this.#db.prepare(query.sql);
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
