import { closeSync, openSync, readSync } from 'node:fs';

/** Where the index of a write-ahead log counts its commits (`iChange` in SQLite's WalIndexHdr), in native byte order. */
const COMMITS_OFFSET = 8;

/** How many commits that changed something an open SQLite ledger has had. */
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
