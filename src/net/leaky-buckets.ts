import { LRUCache } from 'lru-cache';

export type BucketOptions = {
  /** How much a key may use at once. */
  capacity: number;
  /** How fast each bucket drains: what a key may use on average. */
  perSecond: number;
  /** Above this nothing is added. Default: `capacity`. */
  highest?: number;
  /** The keys used last are remembered, this many. */
  maxKeys: number;
  now?: () => number;
};

/** What each of many keys has used lately, bounded by a leaky bucket per key. */
export class LeakyBuckets {
  readonly #options: Required<BucketOptions>;
  readonly #buckets: LRUCache<string, { level: number; at: number }>;

  constructor(options: BucketOptions) {
    this.#options = { highest: options.capacity, now: Date.now, ...options };
    this.#buckets = new LRUCache({ max: options.maxKeys });
  }

  /** What a key used and what has not drained yet. */
  level(key: string): number {
    const bucket = this.#buckets.get(key);
    if (!bucket) return 0;
    // A clock that is set back must neither fill the bucket nor stop its draining.
    bucket.at = Math.min(bucket.at, this.#options.now());
    const seconds = (this.#options.now() - bucket.at) / 1_000;
    return Math.max(0, bucket.level - seconds * this.#options.perSecond);
  }

  /** Seconds until `key` may use `amount` more; 0 for now. */
  wait(key: string, amount = 1): number {
    const { capacity, perSecond } = this.#options;
    return Math.max(0, this.level(key) + amount - capacity) / perSecond;
  }

  add(key: string, amount = 1): void {
    const level = Math.min(this.level(key) + amount, this.#options.highest);
    this.#buckets.set(key, { level, at: this.#options.now() });
  }
}
