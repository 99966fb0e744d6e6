import { closeSync, openSync, readSync } from 'node:fs';

/**
 * The offset of the commit counter in the index of a write-ahead log (`iChange` in SQLite's WalIndexHdr), which is in
 * native byte order.
 */
const COMMITS_OFFSET = 8;

/** The number of commits that changed an open SQLite ledger. */
export function commitsOf(ledgerFile: string): number {
  const file = openSync(`${ledgerFile}-shm`, 'r');
  try {
    const bytes = new DataView(new ArrayBuffer(4));
    readSync(file, bytes, 0, 4, COMMITS_OFFSET);
    return bytes.getUint32(0, true);
  } finally {
    closeSync(file);
  }
}
