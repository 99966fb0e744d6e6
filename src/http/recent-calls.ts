import type { AnyServed, Serving } from '../contract/operation.js';
import { UpstreamFailure } from '../net/failure.js';
import { QueueFull } from '../upstreams/fair-queue.js';

/** Consecutive failed calls of a backend. Times are in ms since 1970; `why` is public. */
export type FailureStreak = { failures: number; since: number; last: number; why: string };

const MAX_WHY_CHARACTERS = 200;
/** After this long without a failed call, a successful probe clears the failures. */
const QUIET_MS = 60_000;

/** The outcome of the last real calls of each backend. */
export class RecentCalls {
  readonly #troubles = new Map<string, FailureStreak>();
  readonly #quietMs: number;

  constructor(quietMs = QUIET_MS) {
    this.#quietMs = quietMs;
  }

  succeeded(backend: string): void {
    this.#troubles.delete(backend);
  }

  /** `why` is public. */
  failed(backend: string, why: string): void {
    const now = Date.now();
    const { failures, since } = this.#troubles.get(backend) ?? { failures: 0, since: now };
    this.#troubles.set(backend, {
      failures: failures + 1,
      since,
      last: now,
      why: why.slice(0, MAX_WHY_CHARACTERS),
    });
  }

  /** A probe succeeded. It clears the failures only if no call failed for a while, because a call shows more than a probe. */
  probed(backend: string): void {
    const trouble = this.#troubles.get(backend);
    if (trouble && Date.now() - trouble.last >= this.#quietMs) this.#troubles.delete(backend);
  }

  /** Undefined if the last call succeeded or there was none. */
  failureStreak(backend: string): FailureStreak | undefined {
    return this.#troubles.get(backend);
  }

  /** Wraps the handlers to record their outcomes. */
  observe(handlers: Serving): Serving {
    return Object.fromEntries(
      Object.entries(handlers).map(([id, served]) => [
        id,
        served.backend === undefined ? served : this.#watched(served, served.backend),
      ]),
    );
  }

  #watched(served: AnyServed, backend: string): AnyServed {
    return {
      ...served,
      call: async call => {
        try {
          const reply = await served.call(call);
          this.succeeded(backend);
          return reply;
        } catch (error) {
          // A cancelled call or an invalid request shows nothing about the backend.
          if (!call.signal.aborted && isBackendFault(error)) this.failed(backend, publicReason(error));
          throw error;
        }
      },
    };
  }
}

function isBackendFault(error: unknown): boolean {
  return !(error instanceof UpstreamFailure) || (error.kind !== 'invalid' && !(error instanceof QueueFull));
}

/** Only the message of an UpstreamFailure may be public. */
function publicReason(error: unknown): string {
  return error instanceof UpstreamFailure ? error.message : 'the server could not use the backend’s answer';
}
