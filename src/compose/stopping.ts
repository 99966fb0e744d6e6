import { setTimeout as pause } from 'node:timers/promises';

/** A load balancer asks more often than this, in ms; whoever asks less often would not hear in time that the server leaves. */
const WATCHED_MS = 5_000;
/** One that asks every half second, and believes the first refusal, sends nothing any more by then, also on a busy machine. */
const LEAVE_MS = 3_000;

/** How a server stops: it leaves the load balancers that ask whether it is ready, and closes then. */
export class Stopping {
  readonly #leaving = new AbortController();
  readonly #closing = new AbortController();
  #askedAt = -Infinity;

  get signals(): { leaving: AbortSignal; closing: AbortSignal } {
    return { leaving: this.#leaving.signal, closing: this.#closing.signal };
  }

  /** Somebody asked whether the server is ready. */
  readonly readyAsked = (): void => {
    this.#askedAt = performance.now();
  };

  /** Resolves when no load balancer sends anything any more. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    if (performance.now() - this.#askedAt < WATCHED_MS) await pause(LEAVE_MS);
  }

  close(): void {
    this.#closing.abort(new Error('the server is shutting down'));
  }
}
