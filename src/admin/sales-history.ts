import { setImmediate as turn } from 'node:timers/promises';
import type { Ledger, Sale, SalePlace } from '../ledger/store.js';
import { DAY_MS, HOUR_MS, LONGEST, SHORTEST, unitsOf, type Period } from './periods.js';
import { Tally, type Tallied } from './tally.js';

/** The sales of a period. `countedFrom` (ms since 1970): earlier sales are still being counted; undefined once all are. */
export type History = Tallied & {
  period: Period;
  first: number;
  last: number;
  countedFrom: number | undefined;
};

/** Sales per slice. With SQLite, reading a slice blocks the server's thread for a few ms (see bench/operator-page.js). */
const SLICE = 100;
/** Sales within this time of the newest one are counted again next time, because a sale with an earlier time may still be committed. */
const SETTLING_MS = 15_000;
/** At the first read, sales older than this are final, as no sale is committed this long after its time. They are counted newest first. */
const FIRM_MS = 60_000;
/** How long a reader waits for earlier sales to be counted. */
const PATIENCE_MS = 200;
/** For how long the counts of one read are reused. */
const FRESH_MS = 1_000;

type Source = Pick<Ledger, 'salesAfter' | 'listSales'>;

/**
 * Sales of the last 90 days by UTC day, and of the last 24 hours by hour. Each sale is read from the ledger once, in small slices with
 * other work in between, so that a million sales cause no noticeable pause and the next read gets only new ones. Sales before the first
 * read are read newest first, so the latest days are complete immediately.
 */
export class SalesHistory {
  readonly #ledger: Source;
  readonly #now: () => number;
  readonly #days: Tally;
  readonly #hours: Tally;
  /** Sales from `#older` up to this place are in the final counts. */
  #place: SalePlace | undefined;
  #older: SalePlace | undefined;
  /** Sales after `#place`, newest last. */
  #recent: Sale[] = [];
  #reading: Promise<void> | undefined;
  #readAt = -Infinity;
  readonly #shown = new Map<string, History>();

  /** @param own the operator's own addresses */
  constructor(ledger: Source, now: () => number = Date.now, own: ReadonlySet<string> = new Set()) {
    this.#ledger = ledger;
    this.#now = now;
    this.#days = new Tally(DAY_MS, own);
    this.#hours = new Tally(HOUR_MS, own);
  }

  /** @throws LedgerFault if the ledger cannot be read */
  async read(period: Period): Promise<History> {
    if (performance.now() - this.#readAt >= FRESH_MS) await this.#catchUp();
    const { first, last } = unitsOf(period, this.#now());
    const key = `${period.name} ${last}`;
    const known = this.#shown.get(key);
    if (known) return known;
    const tally = period.unit === 'hour' ? this.#hours : this.#days;
    const found = { period, first, last, ...tally.read(first, last, this.#recent) };
    const history = { ...found, countedFrom: this.#countedFrom(first * period.unitMs) };
    if (!this.#reading) this.#shown.set(key, history);
    return history;
  }

  #countedFrom(wanted: number): number | undefined {
    const from = this.#place === undefined ? this.#now() : this.#older?.settledAt;
    return from !== undefined && from > wanted ? from : undefined;
  }

  async #catchUp(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
    this.#shown.clear();
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>(resolve => (timer = setTimeout(resolve, PATIENCE_MS)));
    // If no reader is waiting any more, a failure is ignored: the next reader starts another read.
    this.#reading.catch(() => {});
    await Promise.race([this.#reading, patience]);
    clearTimeout(timer);
  }

  async #readAll(): Promise<void> {
    const now = this.#now();
    this.#hours.forget(unitsOf(SHORTEST, now).first);
    const { first } = unitsOf(LONGEST, now);
    this.#days.forget(first);
    if (!this.#place) this.#older = this.#place = { settledAt: now - FIRM_MS, id: '' };
    if (this.#place.settledAt < first * DAY_MS) this.#place = { settledAt: first * DAY_MS, id: '' };
    await this.#readNew(this.#place);
    await this.#readOlder(first * DAY_MS);
    this.#readAt = performance.now();
    this.#shown.clear();
  }

  async #readNew(start: SalePlace): Promise<void> {
    let place = start;
    let recent: Sale[] = [];
    for (;;) {
      const slice = await this.#ledger.salesAfter(place, SLICE);
      for (const sale of slice) for (const tally of [this.#days, this.#hours]) tally.note(sale);
      // `#recent` is set together with the final counts, so that no sale is counted twice if a later slice
      // cannot be read.
      this.#recent = recent = this.#settle([...recent, ...slice]);
      place = slice.at(-1) ?? place;
      if (slice.length < SLICE) return;
      await turn();
    }
  }

  /** Reads the sales from before the first read, back to a given time. */
  async #readOlder(from: number): Promise<void> {
    while (this.#older) {
      const { sales, next } = await this.#ledger.listSales({ from, before: this.#older, limit: SLICE });
      for (const sale of sales) for (const tally of [this.#days, this.#hours]) tally.add(sale);
      this.#older = next;
      await turn();
    }
  }

  /** Adds sales to the final counts if they are 15 s older than the newest. @returns the others */
  #settle(sales: Sale[]): Sale[] {
    const until = (sales.at(-1)?.settledAt ?? 0) - SETTLING_MS;
    const firm = sales.findIndex(({ settledAt }) => settledAt >= until);
    for (const sale of sales.slice(0, firm)) {
      for (const tally of [this.#days, this.#hours]) tally.add(sale);
      this.#place = { settledAt: sale.settledAt, id: sale.id };
    }
    return sales.slice(Math.max(firm, 0));
  }
}
