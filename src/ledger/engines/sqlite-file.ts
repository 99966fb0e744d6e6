import type { Role } from '../engine.js';
import {
  closeSync,
  existsSync,
  fdatasync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'libsql';
import { LedgerFault, messageOf } from '../fault.js';

type Connection = InstanceType<typeof Database>;

const BUSY_TIMEOUT_MS = 5_000;

/** An open SQLite file, with its lock and, if used, the thread that syncs its log. */
export class SqliteFile {
  readonly db: Connection;
  readonly #log: WriteAheadLog | undefined;
  readonly #lock: Connection | undefined;

  private constructor(db: Connection, log: WriteAheadLog | undefined, lock: Connection | undefined) {
    this.db = db;
    this.#log = log;
    this.#lock = lock;
  }

  /**
   * @param url `file:/absolute/path`, `file:///absolute/path` or `file:relative/path`
   * @param role all roles except `beside` and `check` take the lock, which only one process can hold; `beside`, `check` and `source` create no file
   * @throws LedgerFault `open`
   */
  static open(url: string, role: Role): SqliteFile {
    const path = pathOf(url);
    const reads = role === 'beside' || role === 'check';
    if (reads || role === 'source') refuseMissing(path);
    const file = reads ? path : createFile(path);
    const lock = reads ? undefined : takeLock(file);
    try {
      const db = connect(file, reads);
      return new SqliteFile(db, writesLog(db, reads) ? new WriteAheadLog(file) : undefined, lock);
    } catch (error) {
      release(lock);
      throw openFault(file, error);
    }
  }

  /**
   * Replaces a file that no server uses, or creates it.
   * @param isEmpty whether the existing file may be discarded
   * @param make writes the new file, to a temporary path in the same folder
   * @throws LedgerFault `open`
   */
  static async replace(
    url: string,
    isEmpty: (db: Connection) => boolean,
    make: (path: string) => Promise<void>,
  ): Promise<void> {
    const path = pathOf(url);
    const existed = existsSync(path);
    const file = createFile(path);
    const lock = takeLock(file);
    const part = `${file}.restored`;
    try {
      removeDatabase(part);
      refuseUnless(readAtOnce(file, isEmpty), file);
      await make(part);
      for (const beside of ['-wal', '-shm']) rmSync(`${file}${beside}`, { force: true });
      renameSync(part, file);
      syncPath(dirname(file));
    } catch (error) {
      if (!existed) removeDatabase(file);
      throw openFault(file, error);
    } finally {
      removeDatabase(part);
      release(lock);
    }
  }

  /**
   * Copies a consistent snapshot of a file, even while a server writes it. The copy is checked and on disk when this returns.
   * @throws LedgerFault `open` if the file is missing or damaged, or the copy's path already exists
   */
  static copy(from: string, to: string): void {
    refuseMissing(from);
    if (existsSync(to))
      throw new LedgerFault(
        'open',
        `The file ${to} already exists. Choose another name. Nothing was written.`,
      );
    const part = `${to}.part-${process.pid}`;
    try {
      createEmpty(part);
      readAtOnce(from, db => db.prepare('vacuum into ?').run([part]));
      const found = readAtOnce(part, db => db.prepare('pragma integrity_check').get()) as {
        integrity_check?: unknown;
      };
      if (found.integrity_check !== 'ok') throw new Error(`damaged: ${String(found.integrity_check)}`);
      syncPath(part);
      // Unlike a rename, a link does not replace a file that was created in the meantime.
      linkSync(part, to);
      syncPath(dirname(resolve(to)));
    } catch (error) {
      throw copyFault(from, to, error);
    } finally {
      removeDatabase(part);
    }
  }

  /** Calls back once everything committed so far is on disk; immediately, if SQLite itself waits for the disk at every commit. */
  sync(done: (error: Error | null) => void): void {
    if (this.#log) this.#log.sync(done);
    else done(null);
  }

  close(): void {
    if (this.#log) this.#fold();
    this.db.close();
    this.#log?.close();
    release(this.#lock);
  }

  /** Writes the log back to the main file, so that a copy of a stopped server's file is complete. */
  #fold(): void {
    try {
      this.db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Another process is reading the file, or the disk failed. SQLite will read the log when the file is next opened.
    }
  }
}

/** The path in a `file:` URL. */
export function pathOf(url: string): string {
  return url.startsWith('file://') ? fileURLToPath(url) : resolve(url.slice('file:'.length));
}

function refuseMissing(path: string): void {
  if (existsSync(path)) return;
  throw new LedgerFault(
    'open',
    `There is no ledger at ${path}. Check STATE_DIR and DATABASE_URL, or start the server once.`,
  );
}

/** Creates the file with access only for its owner (it holds signed payments) and resolves links, so that one file has one lock. */
function createFile(path: string): string {
  try {
    // Does not create folders, because with a misspelt path the server would start with an empty ledger.
    createEmpty(path);
    const file = realpathSync(path);
    if (!statSync(file).isFile()) throw new Error('it is not a file');
    createEmpty(lockOf(file));
    return file;
  } catch (error) {
    throw openFault(path, error);
  }
}

/** `wx` never opens an existing file. Closing a second descriptor of one would release this process's locks on it. */
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
 * Locks the ledger with an exclusive transaction on a separate database, held while the process runs.
 * The kernel releases the file locks however the process ends. The ledger itself stays readable for other
 * processes.
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
        `The ledger ${file} is in use by another running server. Stop that server, set another STATE_DIR for this one, ` +
          'or set DATABASE_URL=postgres://… to run several servers on one ledger.',
        { cause: error },
      );
    throw openFault(file, error);
  }
}

/** Opens a file for one read and closes it again. */
function readAtOnce<T>(file: string, read: (db: Connection) => T): T {
  const db = new Database(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return read(db);
  } finally {
    db.close();
  }
}

function refuseUnless(isEmpty: boolean, file: string): void {
  if (isEmpty) return;
  throw new LedgerFault(
    'open',
    `There are payments in ${file}, so it is not overwritten. Keep it: move it elsewhere, with ${basename(file)}-wal if there is one, ` +
      'then repeat the command. Nothing was changed.',
  );
}

/** Waits until a file, or the names in a folder, are on disk. */
export function syncPath(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function removeDatabase(file: string): void {
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${file}${end}`, { force: true });
}

function copyFault(from: string, to: string, error: unknown): LedgerFault {
  if (error instanceof LedgerFault) return error;
  return new LedgerFault(
    'open',
    `${from} can't be copied to ${to} (${messageOf(error)}). Check that it is a SQLite ledger, and that the folder of the copy exists, is ` +
      'writable and has space left. No copy was kept.',
    { cause: error },
  );
}

function release(lock: Connection | undefined): void {
  if (!lock) return;
  // Closing might not release the lock before the connection object is garbage-collected, so the transaction is ended explicitly.
  if (lock.inTransaction) lock.exec('ROLLBACK');
  lock.close();
}

function connect(file: string, reads: boolean): Connection {
  const db = new Database(file, { timeout: BUSY_TIMEOUT_MS });
  db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  if (!reads) {
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA journal_size_limit = 67108864');
    // Payment ids are random, so every batch changes many pages. Fewer checkpoints and a larger cache compensate for that. But a checkpoint blocks
    // the server while it copies: 40 ms for 8 MB of large answers, 90 ms for 32 MB.
    db.exec('PRAGMA wal_autocheckpoint = 2000');
    db.exec('PRAGMA cache_size = -65536');
  }
  db.exec('PRAGMA foreign_keys = ON');
  return db;
}

/**
 * Decides whether SQLite itself waits for the disk, which blocks the server at every commit, or a
 * `WriteAheadLog` does so in a thread. A `WriteAheadLog` needs WAL mode, which not every file system
 * supports, and a process that keeps the file open.
 */
function writesLog(db: Connection, reads: boolean): boolean {
  const mode = db.prepare('PRAGMA journal_mode').get() as { journal_mode?: unknown } | undefined;
  const apart = !reads && mode?.journal_mode === 'wal';
  db.exec(`PRAGMA synchronous = ${apart ? 'NORMAL' : 'FULL'}`);
  return apart;
}

/**
 * Syncs the write-ahead log to the disk (fdatasync) in a thread, as SQLite itself does at every commit with `synchronous = FULL`.
 * With `NORMAL`, SQLite only does so before a checkpoint and when it restarts the log. The log is checksummed, so after a power cut it ends
 * with a complete commit, and a commit is on disk together with all earlier ones.
 */
class WriteAheadLog {
  readonly #path: string;
  #fd: number | undefined;

  constructor(file: string) {
    this.#path = `${file}-wal`;
  }

  /** Calls back once everything committed so far is on disk. */
  sync(done: (error: Error | null) => void): void {
    try {
      // SQLite creates the log with the first commit, keeps it while the ledger is open, and holds no locks
      // on it.
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
