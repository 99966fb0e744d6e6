import { Circuit } from '../net/circuit.js';
import type { Trouble } from '../rails/rail.js';

/** After this many failures in a row, a facilitator is paused; then one `/supported` request decides whether it is used again. */
const FAILURES = 3;
const REST_MS = 1_000;
/** The longest pause. It is short, because payments that name this facilitator's fee payer can't go elsewhere. */
const MAX_REST_MS = 5_000;
const RATE_WINDOW_MS = 1_000;
/** Above this share of its rate limit, new challenges name another facilitator. */
const NEAR_LIMIT = 0.8;
const NEVER = new AbortController().signal;

/** The health of a facilitator, from its real answers and from probes. */
export class FacilitatorHealth {
  readonly #rate: number;
  readonly #now: () => number;
  readonly #circuit = new Circuit({ failures: FAILURES, restMs: REST_MS, maxRestMs: MAX_REST_MS });
  /** The times of the requests within the last second. */
  #asked: number[] = [];
  /** Since when and why the facilitator has given no usable answer about a payment. */
  #trouble: { since: number; why: string } | undefined;
  /** The number of answers with 429. */
  #limited = 0;
  /** The number of consecutive unusable answers. */
  #useless = 0;
  #doubtedUntil = 0;
  /** True from when the facilitator becomes doubtful until the next `/supported` request. */
  #unsure = false;

  /** `rate`: how many requests per second the facilitator allows, if known. */
  constructor(rate = Infinity, now: () => number = Date.now) {
    this.#rate = rate;
    this.#now = now;
  }

  /** False while the facilitator is paused after failures, or because it asked us to wait. */
  get available(): boolean {
    return this.#circuit.closed;
  }

  /** Whether the facilitator is available and its last answer about a payment was usable. */
  get healthy(): boolean {
    return !this.#trouble && this.available;
  }

  /** Whether several answers in a row were unusable: new challenges then name another facilitator, but this one is still used. */
  get doubtful(): boolean {
    return this.#useless >= FAILURES && this.#now() < this.#doubtedUntil;
  }

  /** Whether further requests may soon be answered with 429. */
  get nearLimit(): boolean {
    return this.#recent().length >= this.#rate * NEAR_LIMIT;
  }

  /** Whole seconds, at least 1, after which the facilitator may be available again. */
  get retryAfterSeconds(): number {
    return Math.max(this.#circuit.restSeconds, 1);
  }

  /** Whether to request `/supported`, because the facilitator's pause is over or the facilitator has become doubtful. */
  get mayProbe(): boolean {
    return this.available ? this.#unsure : this.#circuit.restSeconds === 0;
  }

  /** One line for `/health`. */
  get line(): string {
    const limited = this.#limited === 0 ? '' : `, ${this.#limited} answers with 429`;
    if (!this.#trouble) return `ok${limited}`;
    const { since, why } = this.#trouble;
    return `${this.available ? 'degraded' : 'down'} since ${new Date(since).toISOString()}: ${why}${limited}`;
  }

  /** Records that a request is about to be sent. */
  asking(): void {
    if (this.#rate < Infinity) this.#asked = [...this.#recent(), this.#now()];
  }

  /** Records an answer about a payment. An answer during a pause changes nothing. */
  async answered(): Promise<void> {
    if (!this.available) return;
    this.#trouble = undefined;
    this.#useless = 0;
    await this.#count(async () => {});
  }

  /** Resolves when the failure has been counted. */
  async failed(trouble: Trouble, why: string): Promise<void> {
    if (trouble.answered) return this.#doubt(trouble, why);
    const failure = (): Promise<never> => Promise.reject(new Error(why));
    if (this.available) await this.#count(failure, () => trouble).catch(() => {});
    else this.#note(trouble, why);
  }

  /**
   * Sends a `/supported` request. During a pause, the answer decides whether the facilitator is available again. Otherwise it is paused if
   * it does not answer, or if its answers about payments are also unusable.
   * @throws what `ask` throws; `Resting` if it must not be asked yet
   */
  async probe<T>(ask: () => Promise<T>, troubleOf: (error: unknown) => Trouble | undefined): Promise<T> {
    const { available, doubtful } = this;
    this.#unsure = false;
    if (!available) return this.#count(ask, troubleOf);
    try {
      return await ask();
    } catch (error) {
      const trouble = troubleOf(error);
      const down = trouble && (!trouble.answered || doubtful);
      const failure = async (): Promise<never> => {
        throw error;
      };
      if (down && this.available)
        await this.#count(failure, () => ({ ...trouble, rest: true })).catch(() => {});
      throw error;
    }
  }

  /** Records an unusable answer. It may be due to this payment only, so it causes no pause. */
  #doubt(trouble: Trouble, why: string): void {
    this.#note(trouble, why);
    this.#useless += 1;
    if (this.#useless < FAILURES) return;
    this.#unsure ||= !this.doubtful;
    this.#doubtedUntil = this.#now() + MAX_REST_MS;
  }

  #note({ seconds }: Trouble, why: string): void {
    this.#trouble = { since: this.#trouble?.since ?? this.#now(), why };
    if (seconds !== undefined) this.#limited += 1;
  }

  /** Runs `ask` in the circuit breaker, which counts its exceptions. @throws what `ask` throws, or `Resting` */
  #count<T>(ask: () => Promise<T>, troubleOf?: (error: unknown) => Trouble | undefined): Promise<T> {
    return this.#circuit.run(NEVER, async () => {
      try {
        return await ask();
      } catch (error) {
        const trouble = troubleOf?.(error);
        if (trouble) this.#note(trouble, (error as Error).message);
        if (trouble?.rest) this.#circuit.trip(trouble.seconds);
        throw error;
      }
    });
  }

  #recent(): number[] {
    const since = this.#now() - RATE_WINDOW_MS;
    return this.#asked.filter(at => at > since);
  }
}
