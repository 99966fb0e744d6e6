import type { PricedOperation } from '../contract/contract.js';
import type { Ledger } from '../ledger/store.js';
import type { Log } from '../net/log.js';

/**
 * A server records its prices this often. If it is killed, it can't record them a last time, so they expire
 * up to this much sooner.
 */
const TELL_EVERY_MS = 15_000;

type Parts = { paid: readonly PricedOperation[]; ledger: Pick<Ledger, 'offerPrices'>; log: Log };

/**
 * Publishes this server's prices in the ledger. Every server accepts the prices that any server on the ledger
 * offered in the last five minutes, including its own from before its last start. Prices that
 * depend on the call are not included.
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

  /** Resolves when the prices are recorded. Never rejects. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.#tell(), TELL_EVERY_MS).unref();
    await this.#tell();
  }

  /** Records that the prices are still offered at this moment. Never rejects. */
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
