import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A tool's result, for the table of docs/reports/conformance.md. */
export type Finding = {
  tool: string;
  version: string;
  /** What the tool checks, in a few words. */
  checks: string;
  /** How much the tool tried: `479 calls`. */
  cases: string;
  result: string;
};

const FOLDER = fileURLToPath(new URL('../../conformance/', import.meta.url));
const MUTATIONS = join(FOLDER, '..', 'mutations.json');

/** Records a tool's result; the table is written from the records of the last runs (`make conformance-table`). */
export function record(name: string, finding: Finding): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${name}.json`), `${JSON.stringify(finding, null, 2)}\n`);
}

/** Records that a tool could not run here, and why. */
export function recordMissing(name: string, tool: string, why: string): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${name}.json`), `${JSON.stringify({ tool, why }, null, 2)}\n`);
}

/** All records, by name. */
export function recorded(): Record<string, Finding | { tool: string; why: string }> {
  mkdirSync(FOLDER, { recursive: true });
  const names = readdirSync(FOLDER).filter(name => name.endsWith('.json'));
  return Object.fromEntries(
    names.map(name => [
      name.slice(0, -5),
      JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Finding | { tool: string; why: string },
    ]),
  );
}

/** Records which checks noticed each deliberate fault. */
export function recordMutations(caught: Record<string, string[]>): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(MUTATIONS, `${JSON.stringify(caught, null, 2)}\n`);
}

export function recordedMutations(): Record<string, string[]> {
  return existsSync(MUTATIONS)
    ? (JSON.parse(readFileSync(MUTATIONS, 'utf8')) as Record<string, string[]>)
    : {};
}
