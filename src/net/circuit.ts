import {
  BrokenCircuitError,
  circuitBreaker,
  CircuitState,
  handleWhen,
  type CircuitBreakerPolicy,
  type IBackoff,
  type IBreaker,
} from 'cockatiel';

/**
 * `failures`: the consecutive failures that open the circuit. `restMs`: how long it then stays open; this doubles with each further
 * failure, up to `maxRestMs` (default one minute).
 */
export type CircuitOptions = {
  failures?: number | undefined;
  restMs?: number | undefined;
  maxRestMs?: number | undefined;
};

const FAILURES = 5;
const REST_MS = 5_000;
const MAX_REST_MS = 60_000;

/** The service is resting: nothing was sent to it. */
export class Resting extends Error {
  /** Whole seconds until the next call may reach the service, at least 1. */
  readonly seconds: number;

  constructor(seconds: number) {
    super(`paused after failures, for ${seconds} s`);
    this.seconds = seconds;
  }
}

/** The caller left, which is not a failure of the service. */
class CallerLeft extends Error {}

/** Counts consecutive failures. */
class ConsecutiveOrTripped implements IBreaker {
  state = 0;
  tripped = false;
  readonly #limit: number;
  constructor(limit: number) {
    this.#limit = limit;
  }
  success(): void {
    this.state = 0;
  }
  failure(): boolean {
    this.state += 1;
    const open = this.tripped || this.state >= this.#limit;
    this.tripped = false;
    return open;
  }
}

/** The circuit breaker of one service: after several failures in a row, calls fail immediately until it has rested. */
export class Circuit {
  readonly #restMs: number;
  readonly #maxRestMs: number;
  readonly #counter: ConsecutiveOrTripped;
  readonly #policy: CircuitBreakerPolicy;
  #askedToWaitUntil = 0;
  #restsUntil = 0;

  constructor({ failures = FAILURES, restMs = REST_MS, maxRestMs = MAX_REST_MS }: CircuitOptions = {}) {
    this.#restMs = restMs;
    this.#maxRestMs = maxRestMs;
    this.#counter = new ConsecutiveOrTripped(failures);
    this.#policy = circuitBreaker(
      // A probe whose caller left has no result, so it must not close the circuit.
      handleWhen(error => !(error instanceof CallerLeft) || this.#policy.state === CircuitState.HalfOpen),
      { breaker: this.#counter, halfOpenAfter: { next: context => this.#rest(context.attempt) } },
    );
  }

  /**
   * Runs `work` unless the service is resting. Whatever it throws counts as a failure of the service, unless `signal` has aborted.
   * @throws Resting, what `work` throws, or the signal's reason
   */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    // While one call probes a recovering service, the others fail immediately instead of waiting for it.
    if (this.#policy.state === CircuitState.HalfOpen) throw this.#resting();
    try {
      return await this.#policy.execute(() => unlessLeft(signal, work));
    } catch (error) {
      if (error instanceof CallerLeft) throw signal.reason;
      throw error instanceof BrokenCircuitError ? this.#resting() : error;
    }
  }

  /** Opens the circuit with the failure that `work` is about to throw, for as long as the service asked or, by default, for `restMs`. */
  trip(seconds?: number): void {
    const ms = seconds === undefined ? Math.max(this.#restMs, 1_000) : seconds * 1_000;
    this.#askedToWaitUntil = Date.now() + ms;
    this.#counter.tripped = true;
  }

  /** Whether the service is neither resting nor waiting for a call that probes it. */
  get closed(): boolean {
    return this.#policy.state === CircuitState.Closed;
  }

  /** Whole seconds until the next call may reach the service; 0 if it may now. */
  get restSeconds(): number {
    return this.closed ? 0 : Math.max(Math.ceil((this.#restsUntil - Date.now()) / 1_000), 0);
  }

  #rest(attempt: number): IBackoff<{ attempt: number }> {
    const now = Date.now();
    const asked = this.#askedToWaitUntil - now;
    const duration =
      asked > 0 ? asked : Math.min(this.#restMs * 2 ** Math.min(attempt - 1, 16), this.#maxRestMs);
    this.#restsUntil = now + duration;
    return { duration, next: context => this.#rest(context.attempt) };
  }

  #resting(): Resting {
    return new Resting(Math.max(this.restSeconds, 1));
  }
}

async function unlessLeft<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw signal.aborted ? new CallerLeft('the caller left') : error;
  }
}
