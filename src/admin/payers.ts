import type { Sale } from '../ledger/store.js';

/** The purchases of one wallet. Amount in atomic units, not reduced by refunds; `units`: the number of hours or days with a purchase. */
export type PayerSales = {
  payer: string;
  own: boolean;
  sales: number;
  amount: bigint;
  units: number;
  last: number;
};

/**
 * The buyers from a given hour or day onwards, without the operator's own wallets: how many there are, how many bought in several hours or
 * days, and who paid most.
 */
export type WhoBought = {
  payers: number;
  returning: number;
  own: { wallets: number; sales: number; amount: bigint };
  /** The buyers who paid most. */
  best: PayerSales[];
  /** Whether all buyers were counted. */
  isWhole: boolean;
};

/** Sales by unit of time. Entries of the arrays with the same index belong together. `last`: ms since 1970. */
type Bought = { units: number[]; sales: number[]; amounts: bigint[]; last: number };

/** The maximum number of payer and unit pairs to keep: they take about 10 MB, and 10 ms to sum up. Beyond it, the oldest units are dropped. */
const MAX_KEPT = 100_000;
const MAX_BEST = 10;

/** The sales of each payer by unit of time: hours or days since 1970. */
export class Payers {
  readonly #max: number;
  readonly #own: ReadonlySet<string>;
  readonly #bought = new Map<string, Bought>();
  #kept = 0;
  /** Earlier units are not kept. */
  #first = 0;
  /** The first unit for which all payers are recorded. */
  #wholeFrom = 0;

  constructor(own: ReadonlySet<string>, max = MAX_KEPT) {
    this.#own = own;
    this.#max = max;
  }

  add(sale: Sale, unit: number): void {
    if (unit < this.#first) return;
    if (this.#kept >= this.#max && !this.#makeRoom(unit)) return;
    let bought = this.#bought.get(sale.payer);
    if (!bought) this.#bought.set(sale.payer, (bought = { units: [], sales: [], amounts: [], last: 0 }));
    this.#kept += note(bought, sale, unit);
  }

  /** Drops everything before a unit. */
  forget(first: number): void {
    if (first <= this.#first) return;
    this.#first = first;
    this.#kept = 0;
    for (const [payer, bought] of this.#bought) {
      const from = bought.units.findIndex(unit => unit >= first);
      if (from < 0) this.#bought.delete(payer);
      else if (from > 0)
        for (const list of [bought.units, bought.sales, bought.amounts]) list.splice(0, from);
      this.#kept += from < 0 ? 0 : bought.units.length;
    }
  }

  /** The buyers since the unit `first`. @param recent sales that are not counted yet */
  since(first: number, recent: readonly { sale: Sale; unit: number }[]): WhoBought {
    const found = new Map<string, PayerSales>();
    for (const [payer, bought] of this.#bought) {
      const sum = sumFrom(bought, first);
      if (sum.sales > 0) found.set(payer, { payer, own: this.#own.has(payer), ...sum });
    }
    const added = new Set<string>();
    for (const { sale, unit } of recent) if (unit >= first) this.#addTo(found, sale, unit, added);
    return summed([...found.values()], first >= this.#wholeFrom);
  }

  #addTo(found: Map<string, PayerSales>, sale: Sale, unit: number, added: Set<string>): void {
    const { payer, amount, settledAt } = sale;
    const known = found.get(payer) ?? {
      payer,
      own: this.#own.has(payer),
      sales: 0,
      amount: 0n,
      units: 0,
      last: 0,
    };
    const isNew = !added.has(`${unit} ${payer}`) && !this.#bought.get(payer)?.units.includes(unit);
    added.add(`${unit} ${payer}`);
    found.set(payer, {
      ...known,
      sales: known.sales + 1,
      amount: known.amount + amount,
      units: known.units + (isNew ? 1 : 0),
      last: Math.max(known.last, settledAt),
    });
  }

  /** Drops the oldest unit to make room for `unit`. @returns false if `unit` itself is the oldest, and so is not kept */
  #makeRoom(unit: number): boolean {
    let oldest = Infinity;
    for (const { units } of this.#bought.values()) oldest = Math.min(oldest, units[0] ?? Infinity);
    this.forget(Math.min(oldest, unit) + 1);
    this.#wholeFrom = this.#first;
    return unit >= this.#first;
  }
}

/** Adds a sale to its unit, and keeps the units in order. @returns 1 if the unit is new */
function note(bought: Bought, { amount, settledAt }: Sale, unit: number): number {
  bought.last = Math.max(bought.last, settledAt);
  const { units, sales, amounts } = bought;
  let at = units.length;
  while (at > 0 && (units[at - 1] ?? 0) > unit) at -= 1;
  if (at > 0 && units[at - 1] === unit) {
    sales[at - 1] = (sales[at - 1] ?? 0) + 1;
    amounts[at - 1] = (amounts[at - 1] ?? 0n) + amount;
    return 0;
  }
  units.splice(at, 0, unit);
  sales.splice(at, 0, 1);
  amounts.splice(at, 0, amount);
  return 1;
}

function sumFrom({ units, sales, amounts, last }: Bought, first: number): Omit<PayerSales, 'payer' | 'own'> {
  const sum = { sales: 0, amount: 0n, units: 0, last };
  for (let at = units.length - 1; at >= 0 && (units[at] ?? 0) >= first; at -= 1) {
    sum.sales += sales[at] ?? 0;
    sum.amount += amounts[at] ?? 0n;
    sum.units += 1;
  }
  return sum;
}

function summed(all: PayerSales[], isWhole: boolean): WhoBought {
  const others = all.filter(({ own }) => !own);
  const own = all.filter(each => each.own);
  return {
    payers: others.length,
    returning: others.filter(({ units }) => units > 1).length,
    own: {
      wallets: own.length,
      sales: own.reduce((sum, { sales }) => sum + sales, 0),
      amount: own.reduce((sum, { amount }) => sum + amount, 0n),
    },
    best: others
      .toSorted((a, b) => (a.amount === b.amount ? b.sales - a.sales : a.amount < b.amount ? 1 : -1))
      .slice(0, MAX_BEST),
    isWhole,
  };
}
