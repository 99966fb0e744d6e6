import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { execute, type TransactionBody } from './engine.js';
import type { Dialect } from './engine.js';
import { openEngine, opening } from './engines/open-engine.js';
import { pathOf, SqliteFile, syncPath } from './engines/sqlite-file.js';
import { LedgerFault } from './fault.js';
import { migrate, readMeta } from './migrate.js';
import { setMeta, tableExists } from './queries/meta.js';
import { newestSales } from './queries/reports.js';

/** `newest`: the time of the newest sale in the file, in ms since 1970; null if there is none. */
export type Copied = { file: string; newest: number | null };

const IN_POSTGRES =
  'This ledger is in PostgreSQL, which has its own tools for backups: pg_dump and pg_restore, or an archive of its log (WAL), from which any ' +
  'earlier state can be restored. docs/how-to/backup.md has the commands. After every restore, run npm run ledger -- adopt before ' +
  'the servers start. Nothing was changed.';

/**
 * Copies a consistent snapshot of an SQLite ledger, even while a server writes it.
 * @param options.to a path that does not exist yet
 * @throws LedgerFault
 */
export async function backUpLedger({ url, to }: { url: string; to: string }): Promise<Copied> {
  refusePostgres(url);
  SqliteFile.copy(pathOf(url), to);
  return { file: to, newest: await newestIn(to) };
}

/**
 * Replaces a lost ledger with a backup, migrates it, and marks it as restored: no server starts on it until the operator has compared it
 * with the chain.
 * @throws LedgerFault, without changing anything, if the file is not a backup, a server has the ledger open, or the ledger has payments
 */
export async function restoreLedger(options: { from: string; url: string; at: string }): Promise<Copied> {
  const { from, url, at } = options;
  refusePostgres(url);
  if (resolve(from) === pathOf(url))
    throw new LedgerFault('open', 'The backup is the ledger itself. Name another file. Nothing was changed.');
  await SqliteFile.replace(url, hasNoPayments, async part => {
    SqliteFile.copy(from, part);
    await prepare(part, at);
  });
  const file = pathOf(url);
  return { file, newest: await newestIn(file) };
}

function refusePostgres(url: string): void {
  if (!url.startsWith('file:')) throw new LedgerFault('open', IN_POSTGRES);
}

function hasNoPayments(db: SqliteFile['db']): boolean {
  const hasTable = db.prepare("select 1 from sqlite_master where type = 'table' and name = 'payments'").get();
  return hasTable === undefined || db.prepare('select 1 from payments limit 1').get() === undefined;
}

async function prepare(path: string, at: string): Promise<void> {
  const engine = await openEngine(`file:${path}`, 'target');
  try {
    await opening(engine.write(() => markRestored(engine.dialect, at)));
  } finally {
    await engine.close();
    rmSync(`${path}.lock`, { force: true });
  }
  syncPath(path);
}

function* markRestored(dialect: Dialect, at: string): TransactionBody<void> {
  const isLedger = (yield* execute(tableExists(dialect, 'payments'))).length > 0;
  if (!isLedger) throw new LedgerFault('open', 'The file is not a backup of a ledger. Nothing was changed.');
  const meta = yield* readMeta();
  const identity = { payTo: meta.get('pay_to') ?? '', network: meta.get('network') ?? '' };
  yield* migrate(dialect, identity);
  yield* execute(setMeta({ key: 'restored', value: at }));
}

async function newestIn(path: string): Promise<number | null> {
  const engine = await openEngine(`file:${path}`, 'beside');
  try {
    const [sale] = await engine.read(() => execute(newestSales({ limit: 1 })));
    return sale?.settled_at ?? null;
  } finally {
    await engine.close();
  }
}
