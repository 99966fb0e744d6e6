import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'libsql';

const RETRY_MS = 100;
const PATIENCE_MS = 1000;

/**
 * Takes a lock that the kernel always releases when the process ends (the file lock of an SQLite database).
 * @param giveUp called after a second of waiting; true ends the wait
 * @returns a function that releases it, or null if another process still holds it after `waitMs`
 */
export async function takeLock(
  file: string,
  waitMs: number,
  giveUp: () => Promise<boolean>,
): Promise<(() => void) | null> {
  const start = Date.now();
  const database = new Database(file);
  for (;;) {
    try {
      database.exec('BEGIN EXCLUSIVE');
      return () => database.close();
    } catch (error) {
      const busy = (error as { code?: unknown }).code === 'SQLITE_BUSY';
      const waited = Date.now() - start;
      if (!busy || waited > waitMs || (waited > PATIENCE_MS && (await giveUp()))) {
        database.close();
        if (busy) return null;
        throw error;
      }
    }
    await sleep(RETRY_MS);
  }
}
