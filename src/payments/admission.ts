import { LRUCache } from 'lru-cache';

const MAX_SOURCES = 10_000;
const MAX_PAYERS = 10_000;
/** One source may use this many times as much as it leaves for all others. */
const SHARE = 4;

/**
 * A token bucket that several sources share: `rate` a second on average, `burst` at once. A source gets nothing while its recent use
 * exceeds four times what is left, so that whoever floods the bucket leaves room for the others, however many flood it.
 */
export class SharedBucket {
  readonly #rate: number;
  readonly #burst: number;
  readonly #now: () => number;
  readonly #used = new LRUCache<string, { tokens: number; at: number }>({ max: MAX_SOURCES });
  #tokens: number;
  #filledAt: number;

  constructor(options: { rate: number; burst: number; now?: () => number }) {
    this.#rate = options.rate;
    this.#burst = options.burst;
    this.#now = options.now ?? Date.now;
    this.#tokens = options.burst;
    this.#filledAt = this.#now();
  }

  /** Takes one token for a source; false when there is none for it. */
  take(source: string): boolean {
    const now = this.#now();
    this.#tokens = Math.min(this.#burst, this.#tokens + this.#seconds(this.#filledAt, now) * this.#rate);
    this.#filledAt = now;
    const used = this.#usedBy(source, now);
    if (this.#tokens < 1 || used > SHARE * this.#tokens) return false;
    this.#tokens -= 1;
    this.#used.set(source, { tokens: used + 1, at: now });
    return true;
  }

  /** What a source used, fading at the pace at which the bucket fills. */
  #usedBy(source: string, now: number): number {
    const used = this.#used.get(source);
    if (!used) return 0;
    return used.tokens * Math.exp((-this.#seconds(used.at, now) * this.#rate) / this.#burst);
  }

  /** A clock that is set back must not empty the bucket. */
  #seconds(from: number, to: number): number {
    return Math.max(0, to - from) / 1000;
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
  readonly #now: () => number;
  readonly #payers = new LRUCache<string, { spent: number; at: number }>({ max: MAX_PAYERS });
  readonly #running = new Map<string, number>();

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Whether work may begin for a payer. */
  allows(payer: string): boolean {
    return this.#spentBy(payer) + 1 <= UNPAID_WORK;
  }

  /** Begins work of a payer without standing: what is under way counts as if it were not going to be paid. @returns false if it may not */
  begin(payer: string): boolean {
    const running = this.#running.get(payer) ?? 0;
    if (this.#spentBy(payer) + running + 1 > UNPAID_WORK) return false;
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
    const spent = this.#spentBy(payer) + (ms > LONG_WORK_MS ? 2 : 1);
    this.#payers.set(payer, { spent: Math.min(spent, 2 * UNPAID_WORK), at: this.#now() });
  }

  #spentBy(payer: string): number {
    const entry = this.#payers.get(payer);
    if (!entry) return 0;
    const seconds = Math.max(0, this.#now() - entry.at) / 1000;
    return Math.max(0, entry.spent - seconds * FORGIVEN_PER_SECOND);
  }
}
