import { UpstreamFailure } from '../net/failure.js';

/** No place in the queue: says something about the other callers, nothing about the backend. */
export class QueueFull extends UpstreamFailure {}

type Waiter = { admit: () => void; refuse: (reason: unknown) => void };
type Share = { waiting: Waiter[]; running: number; lastServed: number };

export type FairQueueOptions = {
  /** Jobs that run at a time. */
  slots: number;
  /** Jobs that wait, of all callers together. */
  maxWaiting: number;
  /** What a caller is told whose job can't wait. */
  fullMessage: string;
};

/**
 * Lets a fixed number of jobs run and keeps a bounded number waiting. The next slot goes to the caller with the fewest running jobs,
 * among those to the one that was served longest ago; jobs of one caller keep their order. When the queue is full, a caller with fewer
 * waiting jobs takes the place of the last job of the caller with the most. A job whose signal aborts while it waits leaves at once.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  /** Only callers with a job that runs or waits. */
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
   * Runs `job` when its turn comes. `caller`: whose share of the queue it takes, any string.
   * @throws QueueFull (`unavailable`) when there is no place, also for a job that lost its place; the signal's reason once it aborts
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

  /** Refuses everyone who waits. */
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

  /** Takes the last job of the caller with the most, or throws where `share` would itself have as many. */
  #makeRoomFor(share: Share): void {
    let greatest = share;
    for (const other of this.#shares.values()) {
      if (other.waiting.length > greatest.waiting.length) greatest = other;
    }
    if (greatest.waiting.length <= share.waiting.length + 1) throw this.#fullFailure();
    greatest.waiting.pop()?.refuse(this.#fullFailure());
    this.#waiting -= 1;
  }

  /** The slot passes straight to the next in line, so nobody overtakes. */
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
    return new QueueFull('unavailable', fullMessage, { retryAfterSeconds });
  }
}

function comesBefore(left: Share, right: Share): boolean {
  return left.running === right.running ? left.lastServed < right.lastServed : left.running < right.running;
}
