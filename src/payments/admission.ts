import { LRUCache } from 'lru-cache';
import { LeakyBuckets } from '../net/leaky-buckets.js';

const MAX_SOURCES = 10_000;
const MAX_PAYERS = 10_000;
/** A source may use this many times what it leaves for all others. */
const SHARE = 4;
const ALL = '';

/**
 * A token bucket shared by several sources: `rate` per second on average, `burst` at once. A source gets no token while its recent
 * use exceeds four times what is left, so a flood from one or more sources leaves room for the others.
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
    const now = this.#now();
    const left = this.#burst - this.#bucket.level(ALL);
    const used = this.#usedBy(source, now);
    if (left < 1 || used > SHARE * left) return false;
    this.#bucket.add(ALL);
    this.#used.set(source, { tokens: used + 1, at: now });
    return true;
  }

  /** The recent use of a source. It decays at the rate at which the bucket fills. */
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
/** What a known payer may have under way without a verified payment. */
const UNVERIFIED_WORK = 4;

/** A run that is under way. */
export type Started = { end(): void };

/**
 * Bounds the work that a payer starts but does not pay for, because it hangs up or its payment can't be settled: ten runs, and the
 * count drops by one every six seconds. Work of more than a second counts double. A payer that has not paid yet may have ten runs
 * at once, and a known one four whose payments are not verified before they are settled.
 */
export class UnpaidWork {
  readonly #spent: LeakyBuckets;
  readonly #running = new Map<string, number>();
  /** When the unverified runs of each payer began. */
  readonly #unverified = new Map<string, Set<{ began: number }>>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#spent = new LeakyBuckets({
      capacity: UNPAID_WORK,
      perSecond: FORGIVEN_PER_SECOND,
      highest: 2 * UNPAID_WORK,
      maxKeys: MAX_PAYERS,
      now,
    });
  }

  /** Whether work for a payer may start. */
  allows(payer: string): boolean {
    return this.#spent.wait(payer) === 0;
  }

  /** Starts work for a payer that has not paid yet. Work in progress counts as unpaid. @returns false if the work may not start */
  begin(payer: string): boolean {
    const running = this.#running.get(payer) ?? 0;
    if (this.#spent.wait(payer, running + 1) > 0) return false;
    this.#running.set(payer, running + 1);
    return true;
  }

  /** Ends work that `begin` started. */
  end(payer: string): void {
    const others = (this.#running.get(payer) ?? 1) - 1;
    if (others > 0) this.#running.set(payer, others);
    else this.#running.delete(payer);
  }

  /**
   * Starts a run of a known payer whose payment is not verified before it is settled. One that has taken more than a second counts
   * double. @returns undefined if too many are under way
   */
  beginUnverified(payer: string): Started | undefined {
    const now = this.#now();
    const runs = this.#unverified.get(payer) ?? new Set();
    const weights = [...runs].map(({ began }) => weightOf(now - began));
    if (weights.reduce((sum, weight) => sum + weight, 1) > UNVERIFIED_WORK) return undefined;
    const run = { began: now };
    this.#unverified.set(payer, runs.add(run));
    return {
      end: () => {
        runs.delete(run);
        if (runs.size === 0 && this.#unverified.get(payer) === runs) this.#unverified.delete(payer);
      },
    };
  }

  /** Records unpaid work that took `ms`. */
  add(payer: string, ms: number): void {
    this.#spent.add(payer, weightOf(ms));
  }
}

function weightOf(ms: number): number {
  return ms > LONG_WORK_MS ? 2 : 1;
}
