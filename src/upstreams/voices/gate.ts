import { UpstreamFailure } from '../failure.js';

type Waiter = { admit: () => void; refuse: (reason: unknown) => void };

/**
 * Lets a fixed number of jobs in and keeps a bounded number waiting, first come, first served. A job that is given up while it
 * waits leaves at once. (The worker pool's own limit does not hold for jobs that can be aborted.)
 */
export class Gate {
  readonly #slots: number;
  readonly #maxWaiting: number;
  readonly #waiting: Waiter[] = [];
  #running = 0;
  #averageMs = 1_000;

  constructor(slots: number, maxWaiting: number) {
    this.#slots = slots;
    this.#maxWaiting = maxWaiting;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get full(): boolean {
    return this.#running >= this.#slots && this.#waiting.length >= this.#maxWaiting;
  }

  /** Runs `job` when its turn comes. Throws `unavailable` when the queue is full, the signal's reason once it aborts. */
  async run<T>(job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    await this.#enter(signal);
    const startedAt = performance.now();
    try {
      return await job();
    } finally {
      this.#averageMs = 0.8 * this.#averageMs + 0.2 * (performance.now() - startedAt);
      this.#leave();
    }
  }

  /** Refuses everyone who waits. */
  close(reason: unknown): void {
    for (const waiter of this.#waiting.splice(0)) waiter.refuse(reason);
  }

  async #enter(signal: AbortSignal): Promise<void> {
    if (this.#running < this.#slots) {
      this.#running += 1;
      return;
    }
    if (this.full) throw this.#busy();
    let waiter: Waiter | undefined;
    const abandon = () => {
      const index = waiter ? this.#waiting.indexOf(waiter) : -1;
      if (index < 0) return;
      this.#waiting.splice(index, 1);
      waiter?.refuse(signal.reason);
    };
    signal.addEventListener('abort', abandon, { once: true });
    try {
      await new Promise<void>((admit, refuse) => {
        waiter = { admit, refuse };
        this.#waiting.push(waiter);
      });
    } finally {
      signal.removeEventListener('abort', abandon);
    }
  }

  /** The slot passes straight to the next in line, so nobody overtakes. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next.admit();
    else this.#running -= 1;
  }

  #busy(): UpstreamFailure {
    const rounds = Math.ceil((this.#waiting.length + 1) / this.#slots);
    const retryAfterSeconds = Math.min(30, Math.max(1, Math.ceil((rounds * this.#averageMs) / 1_000)));
    return new UpstreamFailure('unavailable', 'The speech queue is full; try again shortly.', {
      retryAfterSeconds,
    });
  }
}
