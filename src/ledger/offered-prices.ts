import { createHash } from 'node:crypto';
import type { Connection } from './connection.js';
import { execute } from './engine.js';
import * as queries from './queries/offered-prices.js';

/** The prices that do not depend on the call, by operationId, in atomic units. */
export type PriceList = Readonly<Record<string, string>>;

/**
 * How long a payment at an earlier price is accepted after that price was last offered. MPP challenges expire
 * after the same time.
 */
const HONOURED_MS = 5 * 60_000;
const FORGOTTEN_AFTER_MS = 2 * HONOURED_MS;
/** How many price lists are accepted at a time. Servers with the same prices share a list. */
const MAX_LISTS = 8;

/** The prices that the servers on one ledger offer, or offered until recently. */
export function offeredPricesOf({ engine, now }: Pick<Connection, 'engine' | 'now'>) {
  return {
    /** Records that this server offers these prices now, and deletes lists that are no longer accepted. */
    offerPrices: async (prices: PriceList): Promise<void> => {
      const list = JSON.stringify(Object.fromEntries(Object.entries(prices).toSorted()));
      const name = createHash('sha256').update(list).digest('hex').slice(0, 32);
      await engine.write(() => execute(queries.offerPrices({ name, list, now: now() })));
      await engine.write(() => execute(queries.forgetPrices({ now: now(), ms: FORGOTTEN_AFTER_MS })));
    },
    /** The prices at which any server offered an operation in the last five minutes: atomic units, most recent first. */
    offeredPrices: async (operation: string): Promise<bigint[]> => {
      const query = { now: now(), ms: HONOURED_MS, limit: MAX_LISTS };
      const rows = await engine.read(() => execute(queries.offeredPrices(query)));
      const prices = rows.flatMap(row => (JSON.parse(queries.listOf(row)) as PriceList)[operation] ?? []);
      return [...new Set(prices)].map(BigInt);
    },
  };
}
