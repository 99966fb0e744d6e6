import { UpstreamFailure } from '../net/failure.js';

/** The queue is full. This is not a failure of the backend. */
export class QueueFull extends UpstreamFailure {}

/** The expected duration of a job, and the time within which it must end, both in ms. Jobs without this data count as equally long. */
export type Expected = { ms: number; withinMs: number };

/** When a running job is expected to end. */
type Running = { endsAt: number };
/** A waiting job. `until`: the time by which it must have ended. */
type Waiter = {
  admit: (running: Running) => void;
  refuse: (reason: unknown) => void;
  ms: number;
  until: number;
};
/**
 * The share of one caller. `used`: the expected duration of all its jobs so far, in ms. A new share starts with the value that a share
 * with jobs at all times would have by now.
 */
type Share = { waiting: Waiter[]; running: number; lastServed: number; used: number };

export type FairQueueOptions = {
  /** Concurrent jobs. */
  slots: number;
  /** The maximum number of waiting jobs, across all callers. */
  maxWaiting: number;
  /** The error message when the queue is full. */
  fullMessage: string;
  /** The error message for a job that would not end in time. Default: `fullMessage`. */
  lateMessage?: string;
  /** In ms. */
  now?: () => number;
};

const UNKNOWN: Expected = { ms: 1_000, withinMs: Infinity };

/**
 * Runs a fixed number of jobs at a time and keeps a limited number waiting. The next slot goes to the caller with the fewest running
 * jobs; among equals, to the one that has used the least time, including the time of its next job; then to the caller served longest ago.
 * Of the jobs of one caller, those expected to be the shortest come first, equal ones in the order of their arrival. A job that could not
 * end in time is refused: immediately, if the jobs before it would take too long, or later, if its turn comes too late. When the queue is
 * full, a caller with fewer waiting jobs replaces the last job of the caller with the most. A waiting job whose signal aborts leaves
 * immediately.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  /** Contains only callers with a running or waiting job. */
  readonly #shares = new Map<string, Share>();
  #running = 0;
  #waiting = 0;
  #served = 0;
  /** The time that a share with jobs at all times would have used so far. New shares start there. */
  #turn = 0;
  readonly #begun = new Set<Running>();
  readonly #now: () => number;
  #averageMs = 1_000;

  constructor(options: FairQueueOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get full(): boolean {
    return this.#running >= this.#options.slots && this.#waiting >= this.#options.maxWaiting;
  }

  /**
   * Runs `job` when it is its turn. `caller`: any string; the job counts against the share of this caller.
   * @throws QueueFull (`unavailable`) if the queue is full, or if the job was replaced or can't end in time; the signal's reason once it
   *   aborts
   */
  async run<T>(
    job: () => Promise<T>,
    signal: AbortSignal,
    caller = '',
    { ms, withinMs }: Expected = UNKNOWN,
  ): Promise<T> {
    signal.throwIfAborted();
    const share = this.#shareOf(caller);
    let running: Running;
    try {
      running = await this.#enter(share, signal, { ms, until: this.#now() + withinMs });
    } finally {
      this.#forgetIdle(caller, share);
    }
    const startedAt = this.#now();
    try {
      return await job();
    } finally {
      this.#begun.delete(running);
      this.#averageMs = 0.8 * this.#averageMs + 0.2 * (this.#now() - startedAt);
      this.#leave(share);
      this.#forgetIdle(caller, share);
    }
  }

  /** Rejects all waiting jobs. */
  close(reason: unknown): void {
    for (const { waiting } of this.#shares.values()) {
      for (const waiter of waiting.splice(0)) waiter.refuse(reason);
    }
    this.#waiting = 0;
  }

  #shareOf(caller: string): Share {
    const known = this.#shares.get(caller);
    if (known) return known;
    const share: Share = { waiting: [], running: 0, lastServed: 0, used: 0 };
    this.#shares.set(caller, share);
    return share;
  }

  #forgetIdle(caller: string, { waiting, running }: Share): void {
    if (waiting.length === 0 && running === 0) this.#shares.delete(caller);
  }

  async #enter(share: Share, signal: AbortSignal, expected: Pick<Waiter, 'ms' | 'until'>): Promise<Running> {
    if (this.#running < this.#options.slots) {
      this.#running += 1;
      share.used = Math.max(share.used, this.#turn);
      return this.#serve(share, expected.ms);
    }
    // A share gets no credit for the time in which it had no jobs.
    if (share.waiting.length === 0) share.used = Math.max(share.used, this.#turn);
    this.#requireTime(share, expected);
    if (this.full) this.#makeRoomFor(share);
    let abandon = (): void => {};
    try {
      return await new Promise<Running>((admit, refuse) => {
        const waiter = { admit, refuse, ...expected };
        abandon = () => this.#abandon(share, waiter, signal.reason);
        signal.addEventListener('abort', abandon, { once: true });
        const place = share.waiting.findIndex(({ ms }) => ms > waiter.ms);
        share.waiting.splice(place < 0 ? share.waiting.length : place, 0, waiter);
        this.#waiting += 1;
      });
    } finally {
      signal.removeEventListener('abort', abandon);
    }
  }

  #abandon(share: Share, waiter: Waiter, reason: unknown): void {
    const index = share.waiting.indexOf(waiter);
    if (index < 0) return;
    share.waiting.splice(index, 1);
    this.#waiting -= 1;
    waiter.refuse(reason);
  }

  /** Removes the last job of the caller with the most waiting jobs. Throws if `share`, with a new job, would have as many as that caller. */
  #makeRoomFor(share: Share): void {
    let greatest = share;
    for (const other of this.#shares.values()) {
      if (other.waiting.length > greatest.waiting.length) greatest = other;
    }
    if (greatest.waiting.length <= share.waiting.length + 1) throw this.#fullFailure();
    greatest.waiting.pop()?.refuse(this.#fullFailure());
    this.#waiting -= 1;
  }

  /** Passes the slot directly to the next job, so that no new job can take it first. */
  #leave(share: Share): void {
    share.running -= 1;
    for (let next = this.#nextShare(); next; next = this.#nextShare()) {
      const waiter = next.waiting.shift();
      if (!waiter) break;
      this.#waiting -= 1;
      if (this.#now() + waiter.ms > waiter.until) {
        waiter.refuse(this.#lateFailure(0));
        continue;
      }
      return waiter.admit(this.#serve(next, waiter.ms));
    }
    this.#running -= 1;
  }

  #nextShare(): Share | undefined {
    let next: Share | undefined;
    for (const other of this.#shares.values()) {
      if (other.waiting.length > 0 && (!next || this.#comesBefore(other, next))) next = other;
    }
    return next;
  }

  #comesBefore(left: Share, right: Share): boolean {
    if (left.running !== right.running) return left.running < right.running;
    const [one, other] = [turnOf(left), turnOf(right)];
    return one === other ? left.lastServed < right.lastServed : one < other;
  }

  /** @throws QueueFull if the jobs that come first would take too long */
  #requireTime(share: Share, { ms, until }: Pick<Waiter, 'ms' | 'until'>): void {
    if (until === Infinity) return;
    const begins = this.#beginsAt(share, ms);
    if (begins + ms > until) throw this.#lateFailure(begins - this.#now());
  }

  /** When a job of a share would begin, if the running jobs end as expected and no further jobs arrive. */
  #beginsAt(share: Share, ms: number): number {
    const own = share.waiting.reduce((sum, other) => sum + (other.ms <= ms ? other.ms : 0), 0);
    const turn = share.used + own + ms;
    const before = [...this.#shares.values()].map(other => (other === share ? own : timeBefore(other, turn)));
    const now = this.#now();
    const running = [...this.#begun].map(({ endsAt }) => Math.max(0, endsAt - now));
    const total = [...before, ...running].reduce((sum, each) => sum + each, 0);
    return now + total / this.#options.slots;
  }

  #serve(share: Share, ms: number): Running {
    this.#turn += ms / Math.max(1, this.#shares.size);
    share.used += ms;
    share.running += 1;
    share.lastServed = this.#served += 1;
    const running = { endsAt: this.#now() + ms };
    this.#begun.add(running);
    return running;
  }

  #lateFailure(waitMs: number): QueueFull {
    const { fullMessage, lateMessage = fullMessage } = this.#options;
    const retryAfterSeconds = Math.min(30, Math.max(1, Math.ceil(waitMs / 1_000)));
    return new QueueFull('unavailable', lateMessage, { retryAfterSeconds });
  }

  #fullFailure(): QueueFull {
    const { slots, fullMessage } = this.#options;
    const rounds = Math.ceil((this.#waiting + 1) / slots);
    const retryAfterSeconds = Math.min(30, Math.max(1, Math.ceil((rounds * this.#averageMs) / 1_000)));
    return new QueueFull('unavailable', fullMessage, { retryAfterSeconds, fault: 'none' });
  }
}

/** The time that a share will have used once its next job is done. */
function turnOf({ used, waiting }: Share): number {
  return used + (waiting[0]?.ms ?? 0);
}

/** The total expected duration of a share's waiting jobs that come before a given turn. */
function timeBefore({ used, waiting }: Share, turn: number): number {
  let time = 0;
  for (const { ms } of waiting) {
    if (used + time + ms > turn) break;
    time += ms;
  }
  return time;
}
