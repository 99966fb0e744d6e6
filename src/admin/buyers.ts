import type { Sale } from '../ledger/store.js';

/** The buyers of one operation, without the operator's own wallets. `returning`: those who bought on more than one day. */
export type BuyersOf = { operation: string; buyers: number; returning: number };

/** The last two different UTC days (since 1970) on which a payer bought an operation. */
type Days = { last: number; before: number };

/** The maximum number of buyers to remember, which takes about 30 MB. Once there are this many, new buyers are not counted. */
const MAX_KEPT = 200_000;
const NEVER = -1;

/** The buyers of each operation within a range of days. Counting a sale twice does no harm. */
export class Buyers {
  readonly #max: number;
  /** Days by operation and payer. */
  readonly #days = new Map<string, Map<string, Days>>();
  #kept = 0;
  #first = 0;
  /** Whether all buyers were counted. */
  isWhole = true;

  constructor(max = MAX_KEPT) {
    this.#max = max;
  }

  add({ operation, payer }: Sale, day: number): void {
    const of = this.#days.get(operation) ?? new Map<string, Days>();
    this.#days.set(operation, of);
    const known = of.get(payer);
    if (known) return note(known, day);
    if (this.#kept >= this.#max) return void (this.isWhole = false);
    this.#kept += 1;
    of.set(payer, { last: day, before: NEVER });
  }

  /** Forgets buyers who have not bought since the day `first`. */
  forget(first: number): void {
    if (first === this.#first) return;
    this.#first = first;
    for (const of of this.#days.values())
      for (const [payer, { last }] of of) if (last < first && of.delete(payer)) this.#kept -= 1;
    if (this.#kept === 0) this.isWhole = true;
  }

  /** The number of buyers of each operation since a given day. */
  since(first: number): BuyersOf[] {
    return [...this.#days].map(([operation, of]) => {
      const found = { operation, buyers: 0, returning: 0 };
      for (const { last, before } of of.values()) {
        if (last >= first) found.buyers += 1;
        if (before >= first) found.returning += 1;
      }
      return found;
    });
  }
}

function note(days: Days, day: number): void {
  if (day > days.last) Object.assign(days, { last: day, before: days.last });
  else if (day < days.last) days.before = Math.max(days.before, day);
}
