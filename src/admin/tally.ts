import type { Sale } from '../ledger/store.js';
import { Buyers, type BuyersOf } from './buyers.js';
import { Payers, type WhoBought } from './payers.js';

/**
 * The sales of one operation in one unit of time (hours or days since 1970, UTC), to the operator's own wallets or to others. Amount in
 * atomic units, not reduced by refunds.
 */
export type UnitSales = { unit: number; operation: string; own: boolean; sales: number; amount: bigint };

/** The counts of sales from a given hour or day onwards. */
export type Tallied = {
  sales: UnitSales[];
  /** Counts by operation. */
  buyers: { of: BuyersOf[]; isWhole: boolean };
  who: WhoBought;
};

type Counts = Map<string, UnitSales>;

/** Counts sales by hour or by day, within a window that moves with time. */
export class Tally {
  readonly #unitMs: number;
  readonly #own: ReadonlySet<string>;
  readonly #buyers = new Buyers();
  readonly #payers: Payers;
  readonly #counts: Counts = new Map();
  #first = 0;

  constructor(unitMs: number, own: ReadonlySet<string>) {
    this.#unitMs = unitMs;
    this.#own = own;
    this.#payers = new Payers(own);
  }

  /** Counts a sale for good, unless it is before the window. */
  add(sale: Sale): void {
    const unit = this.#unitOf(sale);
    if (unit < this.#first) return;
    this.#count(this.#counts, sale);
    this.#payers.add(sale, unit);
    this.note(sale);
  }

  /** Records the buyer; recording the same sale twice does no harm. */
  note(sale: Sale): void {
    const unit = this.#unitOf(sale);
    if (unit >= this.#first && !this.#own.has(sale.payer)) this.#buyers.add(sale, unit);
  }

  /** Moves the start of the window. */
  forget(first: number): void {
    if (first === this.#first) return;
    this.#first = first;
    for (const [key, { unit }] of this.#counts) if (unit < first) this.#counts.delete(key);
    this.#buyers.forget(first);
    this.#payers.forget(first);
  }

  /** The counts from the first to the last of these hours or days, both included. @param recent sales that are not yet counted for good */
  read(first: number, last: number, recent: readonly Sale[]): Tallied {
    const counts: Counts = new Map();
    for (const [key, each] of this.#counts)
      if (each.unit >= first && each.unit <= last) counts.set(key, { ...each });
    const shown = recent.map(sale => ({ sale, unit: this.#unitOf(sale) }));
    for (const { sale, unit } of shown) if (unit >= first && unit <= last) this.#count(counts, sale);
    return {
      sales: [...counts.values()],
      buyers: { of: this.#buyers.since(first), isWhole: this.#buyers.isWhole },
      who: this.#payers.since(first, shown),
    };
  }

  #unitOf({ settledAt }: Sale): number {
    return Math.floor(settledAt / this.#unitMs);
  }

  #count(counts: Counts, sale: Sale): void {
    const { operation, amount, payer } = sale;
    const [unit, own] = [this.#unitOf(sale), this.#own.has(payer)];
    const key = `${unit} ${own} ${operation}`;
    const known = counts.get(key);
    if (!known) return void counts.set(key, { unit, operation, own, sales: 1, amount });
    known.sales += 1;
    known.amount += amount;
  }
}
