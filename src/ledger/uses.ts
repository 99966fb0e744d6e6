import type { Connection } from './connection.js';
import { execute, type TransactionBody } from './engine.js';
import * as queries from './queries/uses.js';
import type { Use } from './queries/uses.js';

export type { Use } from './queries/uses.js';

/** How many old rows one use deletes. A use adds at most five. */
const FORGOTTEN_AT_ONCE = 20;

/** `left`: what remains of each quota, in the given order. `usedUp`: the first quota that is used up; nothing was counted then. */
export type Taken = { left: number[] } | { usedUp: Use };

/** Quotas per period, shared by all servers on the ledger. */
export function usesOf({ engine, now }: Pick<Connection, 'engine' | 'now'>) {
  return {
    /** Counts one use of each quota, or none at all. */
    takeUses: async (uses: readonly Use[]): Promise<Taken> => {
      const taken = await engine.write(() => take(uses));
      if ('left' in taken)
        await engine.write(() => execute(queries.forgetUses({ now: now(), limit: FORGOTTEN_AT_ONCE })));
      return taken;
    },
    /** Takes back counted uses. */
    giveUsesBack: (uses: readonly Use[]): Promise<void> => engine.write(() => giveBack(uses)),
  };
}

function* take(uses: readonly Use[]): TransactionBody<Taken> {
  const left = new Map<Use, number>();
  for (const use of inOrder(uses)) {
    const [row] = yield* execute(queries.takeUse(use));
    if (!row) {
      yield* giveBack([...left.keys()]);
      return { usedUp: use };
    }
    left.set(use, use.atMost - row.used);
  }
  return { left: uses.map(use => left.get(use) ?? 0) };
}

function* giveBack(uses: readonly Use[]): TransactionBody<void> {
  for (const use of inOrder(uses)) yield* execute(queries.giveUseBack(use));
}

/** All transactions lock the rows in this order, so that they can't deadlock. */
function inOrder(uses: readonly Use[]): Use[] {
  return uses.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
