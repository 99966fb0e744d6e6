import type { AnyServed, Serving } from '../contract/operation.js';
import { UpstreamFailure } from '../net/failure.js';
import { UNOBSERVED, type Observer, type UpstreamAnswered } from '../observe/observer.js';
import { TooLate } from '../sale/work.js';
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
  readonly #observer: Pick<Observer, 'tell'>;

  constructor(quietMs = QUIET_MS, observer: Pick<Observer, 'tell'> = UNOBSERVED) {
    this.#quietMs = quietMs;
    this.#observer = observer;
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

  /**
   * Records a successful probe. It clears the failures only if no call has failed for a while, because a call
   * proves more than a probe.
   */
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
        served.backend === undefined ? served : this.#watched(id, served, served.backend),
      ]),
    );
  }

  #watched(operation: string, served: AnyServed, upstream: string): AnyServed {
    return {
      ...served,
      call: async call => {
        const began = performance.now();
        const tell = (result: UpstreamAnswered['result'], why?: string): void => {
          const ms = performance.now() - began;
          this.#observer.tell({ kind: 'upstream', upstream, operation, result, ms, ...(why && { why }) });
        };
        try {
          const reply = await served.call(call);
          this.succeeded(upstream);
          tell('ok');
          return reply;
        } catch (error) {
          const result = resultOf(error, call.signal);
          const why = result === 'failed' ? publicReason(error) : undefined;
          if (why !== undefined) this.failed(upstream, why);
          tell(result, why);
          throw error;
        }
      },
    };
  }
}

/** A cancelled call or an invalid request says nothing about the backend. A call that timed out does. */
function resultOf(error: unknown, { aborted, reason }: AbortSignal): UpstreamAnswered['result'] {
  if (aborted) return reason instanceof TooLate ? 'failed' : 'cancelled';
  return isBackendFault(error) ? 'failed' : 'invalid';
}

function isBackendFault(error: unknown): boolean {
  return !(error instanceof UpstreamFailure) || (error.kind !== 'invalid' && !(error instanceof QueueFull));
}

/** Only the message of an UpstreamFailure may be published. */
function publicReason(error: unknown): string {
  return error instanceof UpstreamFailure ? error.message : 'the server could not use the backend’s answer';
}
