import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { breakingChanges } from '../../src/contract/breaking-changes.js';
import type { Json } from '../../src/contract/json.js';

const FOLDER = new URL('../../../contract-tests/released/', import.meta.url);
const read = (file: string): unknown => parse(readFileSync(new URL(file, FOLDER), 'utf8'));

/** An intended change that breaks old clients, in the words of `breakingChanges`. */
export type AcceptedChange = { change: string; why: string };

/** The changes since 1.0.0 that were accepted (contract-tests/released/accepted-changes.yaml). */
export const acceptedChanges = (): AcceptedChange[] => read('accepted-changes.yaml') as AcceptedChange[];

/** The changes in `now` that break 1.0.0 and are not accepted, and the accepted changes that are not in `now`. */
export function breaksRelease(now: Json): string[] {
  const faults = breakingChanges(read('openapi-1.0.0.yaml') as Json, now);
  const accepted = acceptedChanges().map(({ change }) => change);
  const idle = accepted.filter(change => !faults.includes(change));
  return [
    ...faults.filter(fault => !accepted.includes(fault)),
    ...idle.map(change => `accepted, but there is no such change: ${change}`),
  ];
}
