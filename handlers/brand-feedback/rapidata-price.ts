import type { RapidataJobs } from './rapidata-jobs.js';

const PRICE_TTL_MS = 3_600_000;

/** The price of one reply in millionths of a dollar, cached for an hour. */
export class ReplyPrice {
  readonly #jobs: RapidataJobs;
  readonly #quoteMs: number;
  #price: { perResponse: bigint; readAt: number } | undefined;
  #pending: Promise<bigint> | undefined;

  constructor(jobs: RapidataJobs, quoteMs: number) {
    this.#jobs = jobs;
    this.#quoteMs = quoteMs;
  }

  /** The last known price, however old. */
  get known(): bigint | undefined {
    return this.#price?.perResponse;
  }

  record(perResponse: bigint): void {
    this.#price = { perResponse, readAt: Date.now() };
  }

  /** Concurrent calls share one request to the marketplace. */
  current(signal: AbortSignal): Promise<bigint> {
    if (this.#price && Date.now() - this.#price.readAt < PRICE_TTL_MS)
      return Promise.resolve(this.#price.perResponse);
    if (!this.#pending) {
      this.#pending = this.#read(signal).finally(() => (this.#pending = undefined));
      // Callers that are still waiting get the error; without this line, an error that nobody awaits would end the process.
      this.#pending.catch(() => {});
    }
    return this.#pending;
  }

  /** Gets a quote for a job definition that is never published. */
  async #read(signal: AbortSignal): Promise<bigint> {
    const definition = await this.#jobs.define(
      'coinslot-price',
      'Price',
      'What do you think of it?',
      1,
      signal,
    );
    const { perResponse } = await this.#jobs.quote(definition, this.#quoteMs, signal);
    this.record(perResponse);
    return perResponse;
  }
}
