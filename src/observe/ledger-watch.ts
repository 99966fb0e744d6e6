import type { Observer } from './observer.js';

/** Faults of the ledger that are none of its database: too many writes wait, or the store of answers is full. */
const FULL = new Set<unknown>(['busy', 'full']);

/** Reports each operation of the ledger's database to an observer. */
export function ledgerWatch(
  observer: Pick<Observer, 'tell'>,
): (write: boolean, ms: number, error?: Error) => void {
  return (write, ms, error) => {
    const full = error !== undefined && 'code' in error && FULL.has(error.code);
    const failed = full ? undefined : error?.message;
    observer.tell({ kind: 'ledger', write, ms, failed });
  };
}
