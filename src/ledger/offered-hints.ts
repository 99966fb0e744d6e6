import type { Connection } from './connection.js';
import { execute } from './engine.js';
import * as queries from './queries/offered-hints.js';

/**
 * A hint that a server on this ledger offered to buyers (on Solana, a fee payer). `by`: the name of the facilitator that settles payments
 * signed with it; absent if the record is of an earlier version.
 */
export type OfferedHint = { hint: string; by?: string };

const MAX_LISTED = 64;
/** A hint is kept for this long, because a server that starts while no facilitator gives a hint uses the last one that was offered. */
const FORGOTTEN_AFTER_MS = 24 * 60 * 60_000;

/** The hints that all servers on one ledger have offered. */
export function offeredHintsOf({ engine, now }: Pick<Connection, 'engine' | 'now'>) {
  return {
    /** Records that this server offers a hint now, and deletes those that have not been offered for a day. */
    offerHint: async (hint: string, by?: string): Promise<void> => {
      const suffix = by === undefined ? '' : ` ${by}`;
      await engine.write(() => execute(queries.offerHint({ hint, suffix, now: now() })));
      await engine.write(() => execute(queries.forgetHints({ now: now(), ms: FORGOTTEN_AFTER_MS })));
    },
    /** At most 64 hints, the most recently offered first. */
    offeredHints: async (): Promise<OfferedHint[]> => {
      const rows = await engine.read(() => execute(queries.offeredHints({ limit: MAX_LISTED })));
      return rows.map(queries.hintOf);
    },
  };
}
