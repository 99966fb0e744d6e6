import { commandLine } from '../../config/command-line.js';
import { backUpLedger, restoreLedger } from '../../ledger/sqlite-backup.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { time } from './print.js';
import type { Report } from './print.js';

/** Copies the ledger to a file, even while a server is running. */
export async function backUp(url: string, to: string | undefined): Promise<Report> {
  if (to === undefined) throw new OperatorFault('Name the file for the backup. It must not exist yet.');
  const { newest } = await backUpLedger({ url, to });
  return {
    data: { file: to, newest: time(newest) },
    lines: [
      `Backed up to ${to}: checked, and on disk. ${newestSale(newest)}`,
      'It holds payments and answers: keep it where only you can read it, and not on the ledger’s machine.',
    ],
  };
}

/** Replaces a lost ledger with a backup. */
export async function restore(url: string, from: string | undefined): Promise<Report> {
  if (from === undefined) throw new OperatorFault('Name the backup to restore.');
  const { file, newest } = await restoreLedger({ url, from, at: new Date().toISOString() });
  return {
    data: { file, newest: time(newest) },
    lines: [
      `Restored ${file}. ${newestSale(newest)}`,
      `Payments made after the backup are missing. Before the server starts, add them from the chain: ${commandLine('ledger')} adopt`,
    ],
  };
}

function newestSale(newest: number | null): string {
  return newest === null ? 'It contains no sales.' : `The newest sale in it was at ${time(newest)}.`;
}
