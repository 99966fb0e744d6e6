import type { Connection } from './connection.js';
import { execute } from './engine.js';
import * as queries from './queries/fee-payers.js';

/**
 * A fee payer that a server on this ledger named in challenges, and when it last did (ms since 1970). `facilitator`: the name of the one
 * that pays with it; absent in records of servers that had a single facilitator.
 */
export type OfferedFeePayer = { feePayer: string; lastOfferedAt: number; facilitator?: string };

const MAX_LISTED = 64;
/** A server that starts while the facilitator is unavailable uses the fee payer that was offered last. */
const FORGOTTEN_AFTER_MS = 24 * 60 * 60_000;

/** The fee payers that all servers on one ledger have offered. */
export type FeePayers = {
  /** Records that a server offers this fee payer now, and deletes those that were not offered for a day. */
  readonly offerFeePayer: (feePayer: string, facilitator?: string) => Promise<void>;
  /** At most 64, the most recently offered first. */
  readonly offeredFeePayers: () => Promise<OfferedFeePayer[]>;
};

export function feePayersOf({ engine, now }: Connection): FeePayers {
  return {
    offerFeePayer: async (feePayer, facilitator) => {
      const suffix = facilitator === undefined ? '' : ` ${facilitator}`;
      await engine.write(() => execute(queries.offerFeePayer({ feePayer, suffix, now: now() })));
      await engine.write(() => execute(queries.forgetFeePayers({ now: now(), ms: FORGOTTEN_AFTER_MS })));
    },
    offeredFeePayers: async () => {
      const rows = await engine.read(() => execute(queries.offeredFeePayers({ limit: MAX_LISTED })));
      return rows.map(({ key, value }) => offeredOf(key.slice(queries.PREFIX.length), value));
    },
  };
}

function offeredOf(feePayer: string, value: string): OfferedFeePayer {
  const [, time, facilitator] = /^(\d+)(?: (.+))?$/.exec(value) ?? [];
  const offered = { feePayer, lastOfferedAt: Number(time ?? 0) };
  return facilitator === undefined ? offered : { ...offered, facilitator };
}
