import { setImmediate as turn } from 'node:timers/promises';
import type { Ledger, Sale } from '../ledger/store.js';
import { Buyers, type BuyersOf } from './buyers.js';

/**
 * The sales of one operation on one UTC day (days since 1970), to the operator's own wallets or to others. Amount in atomic units, refunds
 * included.
 */
export type DaySales = { day: number; operation: string; own: boolean; sales: number; amount: bigint };

/** `complete` is false while earlier sales are still being counted, `isWhole` if there are more buyers than are counted. */
export type History = {
  today: number;
  days: number;
  sales: DaySales[];
  buyers: { of: BuyersOf[]; isWhole: boolean };
  complete: boolean;
};

const DAY_MS = 86_400_000;
const SHOWN_DAYS = 30;
/** Reading them holds up the server: SQLite is read in its thread. A few ms, see bench/operator-page.js. */
const SLICE = 100;
/** Sales within this time of the newest one are counted again the next time: one beside them may be committed late. */
const SETTLING_MS = 15_000;
/** How long a reader waits for earlier sales to be counted. */
const PATIENCE_MS = 200;
/** Readers within this time get the same counts. */
const FRESH_MS = 1_000;

type Counts = Map<string, DaySales>;

/**
 * Sales of the last 30 days by UTC day and operation. Each sale is read from the ledger once, in small slices between which other work
 * goes on, so that a million sales cost the server no noticeable pause and the next look only reads what is new.
 */
export class SalesHistory {
  readonly #ledger: Pick<Ledger, 'salesAfter'>;
  readonly #now: () => number;
  readonly #own: ReadonlySet<string>;
  readonly #buyers = new Buyers();
  /** Those that are counted for good, and the place up to which they are. */
  readonly #counted: Counts = new Map();
  #place = { settledAt: 0, id: '' };
  /** The others, newest last. */
  #recent: Sale[] = [];
  #reading: Promise<void> | undefined;
  #readAt = -Infinity;
  #complete = false;

  /** @param own the operator's own addresses */
  constructor(
    ledger: Pick<Ledger, 'salesAfter'>,
    now: () => number = Date.now,
    own: ReadonlySet<string> = new Set(),
  ) {
    this.#ledger = ledger;
    this.#now = now;
    this.#own = own;
  }

  /** @throws LedgerFault if the ledger cannot be read */
  async read(): Promise<History> {
    if (performance.now() - this.#readAt >= FRESH_MS) await this.#catchUp();
    const today = Math.floor(this.#now() / DAY_MS);
    const all: Counts = new Map([...this.#counted].map(([key, counts]) => [key, { ...counts }]));
    for (const sale of this.#recent) this.#count(all, sale);
    const sales = [...all.values()].filter(({ day }) => day > today - SHOWN_DAYS && day <= today);
    const buyers = { of: this.#buyers.since(today - SHOWN_DAYS + 1), isWhole: this.#buyers.isWhole };
    return { today, days: SHOWN_DAYS, sales, buyers, complete: this.#complete };
  }

  async #catchUp(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>(resolve => (timer = setTimeout(resolve, PATIENCE_MS)));
    // If nobody waits any more, the next reader sees the failure.
    this.#reading.catch(() => {});
    await Promise.race([this.#reading, patience]);
    clearTimeout(timer);
  }

  async #readAll(): Promise<void> {
    const first = (Math.floor(this.#now() / DAY_MS) - SHOWN_DAYS + 1) * DAY_MS;
    if (this.#place.settledAt < first) this.#place = { settledAt: first, id: '' };
    for (const [key, { day }] of this.#counted) if (day * DAY_MS < first) this.#counted.delete(key);
    this.#buyers.forget(first / DAY_MS);
    let place = this.#place;
    let recent: Sale[] = [];
    for (;;) {
      const slice = await this.#ledger.salesAfter(place, SLICE);
      for (const sale of slice) if (!this.#own.has(sale.payer)) this.#buyers.add(sale, dayOf(sale));
      // Set together with what is counted for good, so that no sale is counted twice if a later slice cannot be read.
      this.#recent = recent = this.#settle([...recent, ...slice]);
      place = slice.at(-1) ?? place;
      if (slice.length < SLICE) break;
      await turn();
    }
    this.#readAt = performance.now();
    this.#complete = true;
  }

  /** Counts for good what is older than the newest by 15 s. @returns the others */
  #settle(sales: Sale[]): Sale[] {
    const until = (sales.at(-1)?.settledAt ?? 0) - SETTLING_MS;
    const firm = sales.findIndex(({ settledAt }) => settledAt >= until);
    for (const sale of sales.slice(0, firm)) {
      this.#count(this.#counted, sale);
      this.#place = { settledAt: sale.settledAt, id: sale.id };
    }
    return sales.slice(Math.max(firm, 0));
  }

  #count(counts: Counts, sale: Sale): void {
    const { operation, amount, payer } = sale;
    const own = this.#own.has(payer);
    const day = dayOf(sale);
    const key = `${day} ${own} ${operation}`;
    const entry = counts.get(key) ?? { day, operation, own, sales: 0, amount: 0n };
    counts.set(key, { ...entry, sales: entry.sales + 1, amount: entry.amount + amount });
  }
}

function dayOf({ settledAt }: Sale): number {
  return Math.floor(settledAt / DAY_MS);
}
