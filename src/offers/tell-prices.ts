import type { PricedOperation } from '../contract/contract.js';
import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';

/** A killed server records nothing more, so its prices expire sooner. */
const TELL_EVERY_MS = 15_000;

type Parts = { paid: readonly PricedOperation[]; ledger: Pick<Ledger, 'offerPrices'>; log: Log };

/**
 * Publishes this server's prices in the ledger, so that every server accepts a price that another one, or this one before its last start,
 * offered in the last five minutes. Prices that depend on the call are not included.
 */
export class OfferedPrices {
  readonly #parts: Parts;
  readonly #prices: Record<string, string>;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    const fixed = parts.paid.filter(({ pricing }) => !pricing.needsBody);
    this.#prices = Object.fromEntries(fixed.map(({ id, price }) => [id, price.atomic.toString()]));
  }

  /** Resolves when they are recorded. Never rejects. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#tell(), TELL_EVERY_MS).unref();
    await this.#tell();
  }

  /** Records that the prices were offered until now. Never rejects. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#tell();
  }

  async #tell(): Promise<void> {
    const { ledger, log } = this.#parts;
    try {
      await ledger.offerPrices(this.#prices);
    } catch (error) {
      log.warn({ error }, 'could not record the offered prices in the ledger');
    }
  }
}
