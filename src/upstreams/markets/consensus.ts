/** Two prices of one token that differ by more than this factor can't both be right. */
const TOLERANCE = 1.5;

/** Twelve significant digits: enough for any market, and free of binary dust such as 0.30000000000000004. */
export const tidy = (value: number): number => Number(value.toPrecision(12));

const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

/** The median of at least one value; of an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  return (lower + upper) / 2;
}

/**
 * The middle value, and of an even number of values the smaller of the two in the middle; undefined for none. Used for
 * amounts that sources count differently: incomplete coverage understates them while a mispriced pool or wash trading
 * overstates them without limit, and only the second costs a reader money.
 */
export function lowerMedian(values: readonly number[]): number | undefined {
  return ascending(values)[Math.floor((values.length - 1) / 2)];
}

/** Keeps the items whose price lies within [1/1.5, 1.5] of the unweighted median. Depth is no argument for a price. */
export function nearMedian<T extends { priceUsd: number }>(items: readonly T[]): T[] {
  const middle = median(items.map(item => item.priceUsd));
  return items.filter(item => item.priceUsd >= middle / TOLERANCE && item.priceUsd <= middle * TOLERANCE);
}

/**
 * Which of several prices to believe: the items within 1.5× of their median. When that leaves nobody, or when exactly two
 * differ by more than 1.5×, no majority exists and the lowest alone is kept: the mispriced pools seen in practice overstate.
 * `disputed` is true when a single price is left although several were given.
 */
export function plausibleQuotes<T extends { priceUsd: number }>(
  items: readonly T[],
): { kept: T[]; disputed: boolean } {
  const lowest = ascending(items.map(item => item.priceUsd))[0] ?? 0;
  const highest = items.reduce((top, item) => Math.max(top, item.priceUsd), 0);
  const pair = items.length === 2 && highest > lowest * TOLERANCE;
  const near = pair ? [] : nearMedian(items);
  const kept = near.length > 0 ? near : items.filter(item => item.priceUsd === lowest);
  return { kept, disputed: kept.length === 1 && items.length > 1 };
}
