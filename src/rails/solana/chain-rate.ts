/** The blocks per second that are always allowed, even before any measurement. Solana makes about 2.5. */
export const LEAST_BLOCKS_PER_SECOND = 4;
/** No reading allows more than this, which is twice the rate of a chain with 200 ms slots. */
const MOST_BLOCKS_PER_SECOND = 10;
/** A chain may temporarily exceed its measured rate by this factor. */
const MARGIN = 1.25;
/** A server's rate is the median of its last readings, so that a server that is catching up, or a clock that jumps, has no effect. */
const MAX_RATES = 5;
const MIN_RATES = 3;

type Readings = { last: { height: number; at: number } | undefined; rates: number[] };

/** Measures how many blocks a second the chain can make, from the heights that all RPC servers report from time to time. */
export class ChainRate {
  readonly #servers: Readings[] = [];

  /**
   * Adds the heights that the servers report now, always in the same order; undefined for one that did not answer. @param allowed the
   * current rate, which is assumed for servers that have not been measured yet
   * @returns the rate to allow. It rises only if more than half of the servers, with `MARGIN`, exceed the current rate.
   */
  measure(heights: readonly (number | undefined)[], at: number, allowed: number): number {
    const votes = heights.map((height, index) => {
      const readings = (this.#servers[index] ??= { last: undefined, rates: [] });
      if (height !== undefined) add(readings, { height, at });
      return readings.rates.length < MIN_RATES ? allowed : lowerMedian(readings.rates) * MARGIN;
    });
    return boundedRate(votes.length > 0 ? lowerMedian(votes) : allowed);
  }
}

/** The rate within its bounds, rounded to a tenth. Anything but a number is ignored. */
export function boundedRate(rate: number): number {
  if (!(rate > LEAST_BLOCKS_PER_SECOND)) return LEAST_BLOCKS_PER_SECOND;
  return Math.min(MOST_BLOCKS_PER_SECOND, Math.round(rate * 10) / 10);
}

function add(readings: Readings, now: { height: number; at: number }): void {
  const { last, rates } = readings;
  readings.last = now;
  if (!last || now.at <= last.at) return;
  rates.push((now.height - last.height) / ((now.at - last.at) / 1_000));
  if (rates.length > MAX_RATES) rates.shift();
}

function lowerMedian(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] as number;
}
