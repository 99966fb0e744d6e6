import type { Role } from '../engine.js';
import type { Engine } from '../engine.js';
import { LedgerFault } from '../fault.js';
import { openSqlite } from './sqlite.js';

/**
 * Opens the database at a URL, `file:…` or `postgres://…`. `directUrl`: the same database without the pooler, if `url` leads to one.
 * @throws LedgerFault `open`
 */
export async function openEngine(url: string, role: Role, directUrl = url): Promise<Engine> {
  if (url.startsWith('file:')) return openSqlite(url, role);
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgres } = await import('./postgres.js');
    return openPostgres(url, role, directUrl);
  }
  throw new LedgerFault('open', 'DATABASE_URL must start with file: or postgres://.');
}

/** Gives every LedgerFault that happens while a ledger is opened the code `open`. */
export async function opening<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof LedgerFault
      ? new LedgerFault('open', error.message, { cause: error.cause })
      : error;
  }
}
