import { UpstreamFailure } from '../net/failure.js';

/** The queue is full. This is no failure of the backend. */
export class QueueFull extends UpstreamFailure {}

type Waiter = { admit: () => void; refuse: (reason: unknown) => void };
type Share = { waiting: Waiter[]; running: number; lastServed: number };

export type FairQueueOptions = {
  /** Concurrent jobs. */
  slots: number;
  /** Waiting jobs of all callers together. */
  maxWaiting: number;
  /** The error message when the queue is full. */
  fullMessage: string;
};

/**
 * Runs a fixed number of jobs at a time and keeps a limited number waiting. The next slot goes to the caller with the fewest running
 * jobs; among equals, to the caller served longest ago. Jobs of one caller keep their order. When the queue is full, a caller with
 * fewer waiting jobs replaces the last job of the caller with the most. A waiting job whose signal aborts leaves at once.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  /** Contains only callers with a running or waiting job. */
  readonly #shares = new Map<string, Share>();
  #running = 0;
  #waiting = 0;
  #served = 0;
  #averageMs = 1_000;

  constructor(options: FairQueueOptions) {
    this.#options = options;
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
   * @throws QueueFull (`unavailable`) if the queue is full or the job was replaced; the signal's reason once it aborts
   */
  async run<T>(job: () => Promise<T>, signal: AbortSignal, caller = ''): Promise<T> {
    signal.throwIfAborted();
    const share = this.#shareOf(caller);
    try {
      await this.#enter(share, signal);
    } finally {
      this.#forgetIdle(caller, share);
    }
    const startedAt = performance.now();
    try {
      return await job();
    } finally {
      this.#averageMs = 0.8 * this.#averageMs + 0.2 * (performance.now() - startedAt);
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
    const share: Share = { waiting: [], running: 0, lastServed: 0 };
    this.#shares.set(caller, share);
    return share;
  }

  #forgetIdle(caller: string, { waiting, running }: Share): void {
    if (waiting.length === 0 && running === 0) this.#shares.delete(caller);
  }

  async #enter(share: Share, signal: AbortSignal): Promise<void> {
    if (this.#running < this.#options.slots) {
      this.#running += 1;
      return this.#serve(share);
    }
    if (this.full) this.#makeRoomFor(share);
    let abandon = (): void => {};
    try {
      await new Promise<void>((admit, refuse) => {
        const waiter = { admit, refuse };
        abandon = () => this.#abandon(share, waiter, signal.reason);
        signal.addEventListener('abort', abandon, { once: true });
        share.waiting.push(waiter);
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

  /** Removes the last job of the caller with the most jobs, or throws if `share` would then have as many. */
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
    let next: Share | undefined;
    for (const other of this.#shares.values()) {
      if (other.waiting.length > 0 && (!next || comesBefore(other, next))) next = other;
    }
    const waiter = next?.waiting.shift();
    if (!next || !waiter) {
      this.#running -= 1;
      return;
    }
    this.#waiting -= 1;
    this.#serve(next);
    waiter.admit();
  }

  #serve(share: Share): void {
    share.running += 1;
    share.lastServed = this.#served += 1;
  }

  #fullFailure(): QueueFull {
    const { slots, fullMessage } = this.#options;
    const rounds = Math.ceil((this.#waiting + 1) / slots);
    const retryAfterSeconds = Math.min(30, Math.max(1, Math.ceil((rounds * this.#averageMs) / 1_000)));
    return new QueueFull('unavailable', fullMessage, { retryAfterSeconds, fault: 'none' });
  }
}

function comesBefore(left: Share, right: Share): boolean {
  return left.running === right.running ? left.lastServed < right.lastServed : left.running < right.running;
}
