import { LeakyBuckets } from '../net/leaky-buckets.js';

const MAX_NAMES = 1_000;
const ALL = '';

/** Limits events per minute, for each name and in total. */
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

  /** Counts an event if it is allowed now. @returns 0, or after how many seconds it is allowed */
  take(name: string): number {
    const wait = Math.max(this.#perName.wait(name), this.#overall.wait(ALL));
    if (wait > 0) return Math.ceil(wait);
    this.#perName.add(name);
    this.#overall.add(ALL);
    return 0;
  }
}
