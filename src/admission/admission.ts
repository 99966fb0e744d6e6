import { LRUCache } from 'lru-cache';
import { LeakyBuckets } from '../net/leaky-buckets.js';

const MAX_SOURCES = 10_000;
/** A source's recent use may be at most this many times the tokens that are left. */
const SHARE = 4;
const ALL = '';

/**
 * A token bucket shared by several sources: `rate` per second on average, `burst` at once. A source gets no token while its recent use
 * exceeds four times the remaining tokens, so a flood from one or more sources leaves room for the others.
 */
export class SharedBucket {
  readonly #rate: number;
  readonly #burst: number;
  readonly #now: () => number;
  readonly #bucket: LeakyBuckets;
  readonly #used = new LRUCache<string, { tokens: number; at: number }>({ max: MAX_SOURCES });

  constructor({ rate, burst, now = Date.now }: { rate: number; burst: number; now?: () => number }) {
    this.#rate = rate;
    this.#burst = burst;
    this.#now = now;
    this.#bucket = new LeakyBuckets({ capacity: burst, perSecond: rate, maxKeys: 1, now });
  }

  /** Takes one token for a source. @returns false if there is none for it */
  take(source: string): boolean {
    if (!this.has(source)) return false;
    this.add(source);
    return true;
  }

  /** Whether a source may use `amount` tokens now. */
  has(source: string, amount = 1): boolean {
    const left = this.#burst - this.#bucket.level(ALL);
    const used = this.#usedBy(source, this.#now());
    return left >= amount && used <= SHARE * left;
  }

  /** Counts what a source used, even if less was left. */
  add(source: string, amount = 1): void {
    const now = this.#now();
    this.#used.set(source, { tokens: this.#usedBy(source, now) + amount, at: now });
    this.#bucket.add(ALL, amount);
  }

  /** The recent use of a source. It decays at the rate at which the bucket fills. */
  #usedBy(source: string, now: number): number {
    const used = this.#used.get(source);
    if (!used) return 0;
    const seconds = Math.max(0, now - used.at) / 1_000;
    return used.tokens * Math.exp((-seconds * this.#rate) / this.#burst);
  }
}
