import { Circuit } from '../net/circuit.js';
import type { Trouble } from './facilitator.js';

/** After this many failures in a row it rests; then one question for what it supports decides whether it is asked for more. */
const FAILURES = 3;
const REST_MS = 1_000;
/** Short, because payments that name its fee payer can't go elsewhere. */
const MAX_REST_MS = 5_000;
const RATE_WINDOW_MS = 1_000;
/** Beyond this share of its rate, new challenges name another facilitator. */
const NEAR_LIMIT = 0.8;
const NEVER = new AbortController().signal;

class Failed extends Error {}

/** How a facilitator answers, as its real answers and the questions that probe it show. */
export class FacilitatorHealth {
  readonly #rate: number | undefined;
  readonly #now: () => number;
  readonly #circuit = new Circuit({ failures: FAILURES, restMs: REST_MS, maxRestMs: MAX_REST_MS });
  /** When it was asked within the last second. */
  #asked: number[] = [];
  #trusted = true;
  /** Answers with 429. */
  #limited = 0;
  #why = '';
  #since = 0;

  /** `rate`: how many requests per second it allows, if it is known. */
  constructor(rate?: number, now: () => number = Date.now) {
    this.#rate = rate;
    this.#now = now;
  }

  /** False while it rests after failures, or because it asked to wait. */
  get available(): boolean {
    return this.#circuit.closed;
  }

  /** Whether it is available and its last answer about a payment was a good one. */
  get healthy(): boolean {
    return this.#trusted && this.available;
  }

  /** Whether more requests may be answered with 429 soon. */
  get nearLimit(): boolean {
    return this.#rate !== undefined && this.#recent() >= this.#rate * NEAR_LIMIT;
  }

  /** Whole seconds, at least 1, after which it may be available again. */
  get retryAfterSeconds(): number {
    return Math.max(this.#circuit.restSeconds, 1);
  }

  /** Whether it is time to ask what it supports, because it has rested. */
  get mayProbe(): boolean {
    return !this.available && this.#circuit.restSeconds === 0;
  }

  /** One line for `/health`. */
  get line(): string {
    const limited = this.#limited === 0 ? '' : `, ${this.#limited} answers with 429`;
    if (this.healthy) return `ok${limited}`;
    const since = new Date(this.#since).toISOString();
    return `${this.available ? 'degraded' : 'down'} since ${since}: ${this.#why}${limited}`;
  }

  /** A request is about to be sent. */
  asking(): void {
    if (this.#rate === undefined) return;
    this.#recent();
    this.#asked.push(this.#now());
  }

  /** It answered a question about a payment. An answer that arrives while it rests changes nothing. */
  async answered(): Promise<void> {
    if (!this.available) return;
    this.#trusted = true;
    await this.#record(undefined);
  }

  /** @returns when the failure has been counted */
  async failed(trouble: Trouble, why: string): Promise<void> {
    const { available } = this;
    this.#note(trouble, why);
    if (available) await this.#record(trouble);
  }

  /**
   * Asks what it supports. While it rests, the answer decides whether it is available again.
   * @throws what `ask` throws; `Resting` if it must not be asked yet
   */
  probe<T>(ask: () => Promise<T>, troubleOf: (error: unknown) => Trouble | undefined): Promise<T> {
    return this.#circuit.run(NEVER, async () => {
      try {
        return await ask();
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble) this.#note(trouble, error instanceof Error ? error.message : String(error));
        if (trouble?.rest) this.#circuit.trip(trouble.seconds);
        throw error;
      }
    });
  }

  #note({ seconds }: Trouble, why: string): void {
    if (this.healthy) this.#since = this.#now();
    this.#trusted = false;
    this.#why = why;
    if (seconds !== undefined) this.#limited += 1;
  }

  async #record(trouble: Trouble | undefined): Promise<void> {
    try {
      await this.#circuit.run(NEVER, async () => {
        if (trouble?.rest) this.#circuit.trip(trouble.seconds);
        if (trouble) throw new Failed();
      });
    } catch {
      // The circuit has counted it, or was open already.
    }
  }

  #recent(): number {
    const since = this.#now() - RATE_WINDOW_MS;
    const first = this.#asked.findIndex(at => at > since);
    this.#asked = first === -1 ? [] : this.#asked.slice(first);
    return this.#asked.length;
  }
}
