import { execFileSync } from 'node:child_process';

/** Where Debian installs the programs of PostgreSQL 15. */
export const POSTGRES_BIN = '/usr/lib/postgresql/15/bin';

/** The user to run PostgreSQL as, because it refuses to run as root. */
export function asPostgres(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
