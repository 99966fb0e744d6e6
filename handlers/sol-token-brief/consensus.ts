/** If two prices of one token differ by more than this factor, at least one is wrong. */
export const TOLERANCE = 1.5;

/** Twelve significant digits: enough for any market, without floating-point noise such as 0.30000000000000004. */
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
 * The middle value; of an even number of values, the smaller of the two in the middle; undefined if there are none. Used for
 * amounts that sources count differently. Incomplete coverage understates them; a mispriced pool or wash trading overstates them
 * without limit, and only overstatement costs a reader money.
 */
export function lowerMedian(values: readonly number[]): number | undefined {
  return ascending(values)[Math.floor((values.length - 1) / 2)];
}

/** Keeps the items whose price lies within [1/1.5, 1.5] of the unweighted median. A deep pool does not prove its price. */
export function nearMedian<T extends { priceUsd: number }>(items: readonly T[]): T[] {
  const middle = median(items.map(item => item.priceUsd));
  return items.filter(item => item.priceUsd >= middle / TOLERANCE && item.priceUsd <= middle * TOLERANCE);
}

/**
 * Selects the prices to use: those within 1.5× of their median. If there are none, or if exactly two prices differ by more than
 * 1.5×, there is no majority, and only the lowest is kept: mispriced pools usually overstate. `disputed` is true if several prices
 * were given and one is left.
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

/** The highest price divided by the lowest; null if there are fewer than two prices. */
export function spreadOf(prices: readonly number[]): number | null {
  if (prices.length < 2) return null;
  const sorted = ascending(prices);
  return Number(((sorted.at(-1) ?? Number.NaN) / (sorted[0] ?? Number.NaN)).toPrecision(6));
}
