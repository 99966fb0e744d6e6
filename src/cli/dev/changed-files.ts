import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** The desired content of each file; undefined for a file to remove. */
export type Changes = ReadonlyMap<string, string | undefined>;

/** The files that differ from their desired content. */
export function differing(changes: Changes): string[] {
  return [...changes].filter(([file, text]) => textOf(file) !== text).map(([file]) => file);
}

/**
 * Writes and removes files. @returns the changes that undo this; files that already had the desired content
 * are left out
 */
export function applyChanges(changes: Changes): Changes {
  const before = new Map<string, string | undefined>();
  for (const [file, text] of changes) {
    const known = textOf(file);
    if (known === text) continue;
    before.set(file, known);
    write(file, text);
  }
  return before;
}

function textOf(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/** Writes atomically: a reader never sees a part of the new content. */
function write(file: string, text: string | undefined): void {
  if (text === undefined) return rmSync(file, { force: true });
  mkdirSync(dirname(file), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, file);
}
