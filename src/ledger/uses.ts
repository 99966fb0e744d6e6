import type { Connection } from './connection.js';
import { execute, type TransactionBody } from './engine.js';
import * as queries from './queries/uses.js';
import type { Use } from './queries/uses.js';

export type { Use } from './queries/uses.js';

/** How many old rows one use deletes. A use adds at most five. */
const FORGOTTEN_AT_ONCE = 20;

/** Taken: `left` is the rest of each, in order. Otherwise the first limit that is used up; then nothing was counted. */
export type Taken = { left: number[] } | { usedUp: Use };

/** Limits over a period, shared by all servers of the ledger. */
export function usesOf({ engine, now }: Pick<Connection, 'engine' | 'now'>) {
  return {
    /** Counts one use of each of these, or of none. */
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

/** All transactions lock rows in one order, so that none waits for another that waits for it. */
function inOrder(uses: readonly Use[]): Use[] {
  return uses.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
