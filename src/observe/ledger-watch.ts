import type { Observer } from './observer.js';

/** Faults of the ledger that do not mean that the database failed: too many operations are waiting, or the answer store is full. */
const FULL = new Set<unknown>(['busy', 'full']);

/** Reports the activity of the ledger's database to an observer. */
export function ledgerWatch(observer: Pick<Observer, 'committed' | 'tell'>): {
  committed(ms: number): void;
  failed(error: Error): void;
} {
  return {
    committed: ms => observer.committed(ms),
    failed(error) {
      const isFull = 'code' in error && FULL.has(error.code);
      if (!isFull) observer.tell({ kind: 'ledger', failed: error.message });
    },
  };
}
