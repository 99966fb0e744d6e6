import type { ReplicaState } from '../ledger/replica.js';

/** A sentence that says whether reports are read from the primary or from a replica. */
export function replicaSentence(state: ReplicaState): string {
  if ('unusable' in state)
    return `Sales are read from the primary: the replica in DATABASE_READ_URL cannot be used (${state.unusable}).`;
  return `Sales are read from a replica, ${(state.lagMs / 1_000).toFixed(1)} s behind the primary.`;
}
