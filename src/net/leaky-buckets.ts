import type { LRUCache } from 'lru-cache';
import { growingCache } from './growing-cache.js';

export type BucketOptions = {
  /** The most that a key may use in one burst. */
  capacity: number;
  /** The rate at which each bucket drains, which is the average that a key may use. */
  perSecond: number;
  /** The highest level that a bucket can reach. Default: `capacity`. */
  highest?: number;
  /** The lowest level that `add` can reach with negative amounts; a level below 0 is credit. Time only drains a bucket to 0. Default: 0. */
  lowest?: number;
  /** The maximum number of tracked keys. Beyond it, the least recently used key is dropped. */
  maxKeys: number;
  /** A limit for all keys together. */
  overall?: { capacity: number; perSecond: number };
  now?: () => number;
};

/** Limits for this many events a minute, in one burst or spread out. */
export function perMinute(events: number): { capacity: number; perSecond: number } {
  return { capacity: events, perSecond: events / 60 };
}

const ALL = '';

/** Tracks the recent use of many keys with a leaky bucket for each. */
export class LeakyBuckets {
  readonly #options: Required<Omit<BucketOptions, 'overall'>>;
  readonly #overall: LeakyBuckets | undefined;
  readonly #buckets: LRUCache<string, { level: number; at: number }>;

  constructor({ overall, ...options }: BucketOptions) {
    this.#options = { highest: options.capacity, lowest: 0, now: Date.now, ...options };
    this.#buckets = growingCache(options.maxKeys);
    this.#overall = overall && new LeakyBuckets({ ...overall, maxKeys: 1, now: this.#options.now });
  }

  /** The current level of a key's bucket. */
  level(key: string): number {
    const bucket = this.#buckets.get(key);
    if (!bucket) return 0;
    // If the clock is set back, the bucket must neither fill nor stop draining.
    bucket.at = Math.min(bucket.at, this.#options.now());
    const seconds = (this.#options.now() - bucket.at) / 1_000;
    return Math.max(Math.min(0, bucket.level), bucket.level - seconds * this.#options.perSecond);
  }

  /** Seconds until `key` may use `amount` more; 0 if it may now. */
  wait(key: string, amount = 1): number {
    const { capacity, perSecond } = this.#options;
    return Math.max(0, this.level(key) + amount - capacity) / perSecond;
  }

  /**
   * Uses `amount` if the limits of `key` and of all keys together allow it now.
   * @returns 0, or the number of whole seconds until they allow it
   */
  take(key: string, amount = 1): number {
    const wait = Math.max(this.wait(key, amount), this.#overall?.wait(ALL, amount) ?? 0);
    if (wait > 0) return Math.ceil(wait);
    this.add(key, amount);
    this.#overall?.add(ALL, amount);
    return 0;
  }

  /** `highest`: a limit for this addition, which never lowers the level. */
  add(key: string, amount = 1, highest = this.#options.highest): void {
    const before = this.level(key);
    const level =
      amount < 0
        ? Math.max(before + amount, this.#options.lowest)
        : Math.max(before, Math.min(before + amount, highest));
    this.#buckets.set(key, { level, at: this.#options.now() });
  }
}
