import { createHash } from 'node:crypto';
import type { Connection } from './connection.js';
import { execute } from './engine.js';
import * as queries from './queries/offered-prices.js';

/** Prices that do not depend on the call: atomic units, by operationId. */
export type PriceList = Readonly<Record<string, string>>;

/** How long a price counts after it was offered last. A challenge of MPP expires as soon. */
const HONOURED_MS = 5 * 60_000;
const FORGOTTEN_AFTER_MS = 2 * HONOURED_MS;
/** How many lists may count at a time. Servers with the same prices have one. */
const MAX_LISTS = 8;

/** The prices that all servers on one ledger offer, or have offered until now. */
export function offeredPricesOf({ engine, now }: Pick<Connection, 'engine' | 'now'>) {
  return {
    /** Records that a server offers these prices now, and deletes lists that count no more. */
    offerPrices: async (prices: PriceList): Promise<void> => {
      const list = JSON.stringify(Object.fromEntries(Object.entries(prices).toSorted()));
      const name = createHash('sha256').update(list).digest('hex').slice(0, 32);
      await engine.write(() => execute(queries.offerPrices({ name, list, now: now() })));
      await engine.write(() => execute(queries.forgetPrices({ now: now(), ms: FORGOTTEN_AFTER_MS })));
    },
    /** At which prices a server offered an operation in the last five minutes: atomic units, the most recent first. */
    offeredPrices: async (operation: string): Promise<bigint[]> => {
      const query = { now: now(), ms: HONOURED_MS, limit: MAX_LISTS };
      const rows = await engine.read(() => execute(queries.offeredPrices(query)));
      const prices = rows.flatMap(row => (JSON.parse(queries.listOf(row)) as PriceList)[operation] ?? []);
      return [...new Set(prices)].map(BigInt);
    },
  };
}
