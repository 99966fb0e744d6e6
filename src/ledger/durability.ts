import { closeSync, existsSync, fdatasync, openSync, rmSync, writeSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from './fault.js';
import type { PostgresDurability } from './engines/postgres-durability.js';
import { pathOf } from './engines/sqlite-file.js';

/** A finding about a database, and what to do about it; both without a full stop. */
export type DurabilityFinding = { level: 'ok' | 'warning' | 'error'; found: string; todo?: string };

/** Types of file systems (statfs) that keep files in memory, on another machine, or only as long as a container exists. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);
const REMOTE = new Set([0x6969, 0xff534d42, 0xfe534d42, 0x517b]);
const OVERLAY = 0x794c7630;
/** With less free space than this, the server can't sell. */
const LEAST_FREE_BYTES = 100 * 1024 * 1024;
const MB = 1024 * 1024;

/**
 * Checks whether the database of a ledger keeps what it has committed, and whether it has space left.
 * @param url `file:…` or `postgres://…`
 * @param answerBudgetBytes the limit for stored answers
 * @throws Error if the database can't be checked
 */
export async function durabilityOf(url: string, answerBudgetBytes: number): Promise<DurabilityFinding[]> {
  if (url.startsWith('file:')) return durabilityOfFile(pathOf(url), answerBudgetBytes);
  // Imported here so that a SQLite ledger does not load the PostgreSQL driver.
  const { postgresDurability } = await import('./engines/postgres-durability.js');
  return durabilityOfPostgres(await postgresDurability(url));
}

function durabilityOfPostgres({ unsafe, unreplicated }: PostgresDurability): DurabilityFinding[] {
  const findings: DurabilityFinding[] = unsafe.map(name => ({
    level: 'error',
    found: `PostgreSQL runs with ${name}=off, so a crash of the database may lose payments`,
    todo: `set ${name}=on`,
  }));
  if (findings.length === 0)
    findings.push({ level: 'ok', found: 'PostgreSQL confirms a commit only when it is on disk' });
  if (unreplicated !== undefined)
    findings.push({
      level: 'warning',
      found: `PostgreSQL confirms a commit before its standbys have it (${unreplicated}), so a failover may lose the last payments`,
      todo: 'name a standby in synchronous_standby_names, with synchronous_commit=on',
    });
  return findings;
}

async function durabilityOfFile(file: string, answerBudgetBytes: number): Promise<DurabilityFinding[]> {
  const folder = dirname(file);
  if (!existsSync(folder))
    return [
      {
        level: 'ok',
        found: `${folder} does not exist yet; if it is STATE_DIR, the server creates it when it first starts`,
      },
    ];
  const { type, bavail, bsize } = await statfs(folder);
  return [
    fileSystemOf(type, folder) ?? (await syncIn(folder)),
    spaceOf(bavail * bsize, folder, answerBudgetBytes),
  ];
}

function fileSystemOf(type: number, folder: string): DurabilityFinding | undefined {
  if (IN_MEMORY.has(type))
    return {
      level: 'error',
      found: `${folder} is in memory, so a restart of this machine loses every payment`,
      todo: 'set STATE_DIR to a folder on a disk, or DATABASE_URL to a database on one',
    };
  if (REMOTE.has(type))
    return {
      level: 'error',
      found: `${folder} is a network file system, where SQLite's locks and syncs are unreliable`,
      todo: 'use a local disk, or PostgreSQL',
    };
  if (type === OVERLAY)
    return {
      level: 'warning',
      found: `${folder} is in the writable layer of a container, which is deleted with the container`,
      todo: 'set STATE_DIR to a volume',
    };
  return undefined;
}

/**
 * Writes and syncs a file in the ledger's folder. It does not open the ledger's own files: closing a second descriptor of them would release
 * this process's locks on them.
 */
async function syncIn(folder: string): Promise<DurabilityFinding> {
  const file = join(folder, `.sync-check-${process.pid}`);
  try {
    const descriptor = openSync(file, 'w', 0o600);
    try {
      writeSync(descriptor, 'coinslot');
      const began = performance.now();
      await promisify(fdatasync)(descriptor);
      const ms = Math.round(performance.now() - began);
      return { level: 'ok', found: `a file in ${folder} was written and synced (the sync took ${ms} ms)` };
    } finally {
      closeSync(descriptor);
      rmSync(file, { force: true });
    }
  } catch (error) {
    return {
      level: 'error',
      found: `a file in ${folder} can't be written and synced (${messageOf(error)})`,
      todo: 'check its permissions and its disk, or set STATE_DIR or DATABASE_URL to another place',
    };
  }
}

function spaceOf(free: number, folder: string, answerBudgetBytes: number): DurabilityFinding {
  const found = `${folder} has ${Math.floor(free / MB)} MB left`;
  const todo = 'free some space, or lower ANSWER_STORE_MB';
  if (free < LEAST_FREE_BYTES) return { level: 'error', found, todo };
  if (free < answerBudgetBytes)
    return {
      level: 'warning',
      found: `${found}, less than the limit for stored answers (ANSWER_STORE_MB)`,
      todo,
    };
  return { level: 'ok', found };
}
