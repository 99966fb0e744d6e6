import { setTimeout as pause } from 'node:timers/promises';

/** A load balancer must poll at intervals shorter than this, in ms, to notice in time that the server is stopping. */
const WATCHED_MS = 5_000;
/** A load balancer that polls every half second and reacts to the first refusal stops sending within this time, even on a busy machine. */
const LEAVE_MS = 3_000;

/** How a server stops: it waits until polling load balancers have noticed, then closes. */
export class Stopping {
  readonly #leaving = new AbortController();
  readonly #closing = new AbortController();
  #askedAt = -Infinity;

  get signals(): { leaving: AbortSignal; closing: AbortSignal } {
    return { leaving: this.#leaving.signal, closing: this.#closing.signal };
  }

  /** Records a readiness poll. */
  readonly readyAsked = (): void => {
    this.#askedAt = performance.now();
  };

  /** Resolves when no load balancer sends calls any more. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    if (performance.now() - this.#askedAt < WATCHED_MS) await pause(LEAVE_MS);
  }

  close(): void {
    this.#closing.abort(new Error('the server is shutting down'));
  }
}
