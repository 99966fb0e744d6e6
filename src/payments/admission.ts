import { LRUCache } from 'lru-cache';
import { LeakyBuckets } from '../net/leaky-buckets.js';

const MAX_SOURCES = 10_000;
const MAX_PAYERS = 10_000;
/** One source may use this many times as much as it leaves for all others. */
const SHARE = 4;
const ALL = '';

/**
 * A token bucket that several sources share: `rate` a second on average, `burst` at once. A source gets nothing while its recent use
 * exceeds four times what is left, so that whoever floods the bucket leaves room for the others, however many flood it.
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

  /** Takes one token for a source; false when there is none for it. */
  take(source: string): boolean {
    const now = this.#now();
    const left = this.#burst - this.#bucket.level(ALL);
    const used = this.#usedBy(source, now);
    if (left < 1 || used > SHARE * left) return false;
    this.#bucket.add(ALL);
    this.#used.set(source, { tokens: used + 1, at: now });
    return true;
  }

  /** What a source used, fading at the pace at which the bucket fills. */
  #usedBy(source: string, now: number): number {
    const used = this.#used.get(source);
    if (!used) return 0;
    const seconds = Math.max(0, now - used.at) / 1_000;
    return used.tokens * Math.exp((-seconds * this.#rate) / this.#burst);
  }
}

const UNPAID_WORK = 10;
const FORGIVEN_PER_SECOND = 1 / 6;
const LONG_WORK_MS = 1_000;

/**
 * Bounds the work that a payer lets begin and does not pay for, because it hangs up or its money can't be moved: ten runs, of which one is
 * forgiven every six seconds. Work of more than a second counts double. Of a payer without standing ten runs may be under way at once.
 */
export class UnpaidWork {
  readonly #spent: LeakyBuckets;
  readonly #running = new Map<string, number>();

  constructor(now: () => number = Date.now) {
    this.#spent = new LeakyBuckets({
      capacity: UNPAID_WORK,
      perSecond: FORGIVEN_PER_SECOND,
      highest: 2 * UNPAID_WORK,
      maxKeys: MAX_PAYERS,
      now,
    });
  }

  /** Whether work may begin for a payer. */
  allows(payer: string): boolean {
    return this.#spent.wait(payer) === 0;
  }

  /** Begins work of a payer without standing: what is under way counts as if it were not going to be paid. @returns false if it may not */
  begin(payer: string): boolean {
    const running = this.#running.get(payer) ?? 0;
    if (this.#spent.wait(payer, running + 1) > 0) return false;
    this.#running.set(payer, running + 1);
    return true;
  }

  /** Work that was begun by `begin` is over. */
  end(payer: string): void {
    const others = (this.#running.get(payer) ?? 1) - 1;
    if (others > 0) this.#running.set(payer, others);
    else this.#running.delete(payer);
  }

  /** Work that took `ms` was not paid for. */
  add(payer: string, ms: number): void {
    this.#spent.add(payer, ms > LONG_WORK_MS ? 2 : 1);
  }
}
