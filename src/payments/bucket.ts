/** A token bucket: `rate` a second on average, `burst` at once. */
export class Bucket {
  readonly #rate: number;
  readonly #burst: number;
  readonly #now: () => number;
  #tokens: number;
  #filledAt: number;

  constructor(options: { rate: number; burst: number; now?: () => number }) {
    this.#rate = options.rate;
    this.#burst = options.burst;
    this.#now = options.now ?? Date.now;
    this.#tokens = options.burst;
    this.#filledAt = this.#now();
  }

  /** Takes one token; false when there is none. */
  take(): boolean {
    const now = this.#now();
    // A clock that is set back must not empty the bucket.
    const seconds = Math.max(0, now - this.#filledAt) / 1000;
    this.#tokens = Math.min(this.#burst, this.#tokens + seconds * this.#rate);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
