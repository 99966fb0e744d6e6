import { LeakyBuckets } from '../net/leaky-buckets.js';

const MAX_NAMES = 1_000;
const ALL = '';

/** Bounds events a minute, per name and over all. */
export class RateLimit {
  readonly #perName: LeakyBuckets;
  readonly #overall: LeakyBuckets;

  constructor(perName: number, overall: number, now: () => number) {
    this.#perName = new LeakyBuckets({
      capacity: perName,
      perSecond: perName / 60,
      maxKeys: MAX_NAMES,
      now,
    });
    this.#overall = new LeakyBuckets({ capacity: overall, perSecond: overall / 60, maxKeys: 1, now });
  }

  /** Counts an event, where it may happen. @returns 0, or in how many seconds it may */
  take(name: string): number {
    const wait = Math.max(this.#perName.wait(name), this.#overall.wait(ALL));
    if (wait > 0) return Math.ceil(wait);
    this.#perName.add(name);
    this.#overall.add(ALL);
    return 0;
  }
}
