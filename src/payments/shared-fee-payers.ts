import type { Log } from '../net/log.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledger } from '../ledger/store.js';
import type { Offers } from './offers.js';

/** Between two looks for fee payers that we don't know; whoever sends one waits that long at most. */
const LOOK_EVERY_MS = 1_000;
const MAX_WAITING = 1_000;

/**
 * Shares offered fee payers with the other servers of the ledger: a facilitator may name another one each time, and what one server
 * offered is paid at another.
 */
export class SharedFeePayers {
  readonly #ledger: Pick<Ledger, 'offerFeePayer' | 'offeredFeePayers'>;
  readonly #offers: Offers;
  readonly #log: Log;
  readonly #lookEveryMs: number;
  #lookedAt = -Infinity;
  #look: Promise<void> | undefined;
  #waiting = 0;

  constructor(options: {
    ledger: Pick<Ledger, 'offerFeePayer' | 'offeredFeePayers'>;
    offers: Offers;
    log: Log;
    /** Default 1 s. */
    lookEveryMs?: number;
  }) {
    this.#ledger = options.ledger;
    this.#offers = options.offers;
    this.#log = options.log;
    this.#lookEveryMs = options.lookEveryMs ?? LOOK_EVERY_MS;
  }

  /** Offers a fee payer from now on: the others can know it before any challenge names it. */
  async offer(feePayer: string): Promise<void> {
    const former = this.#offers.feePayer;
    await this.#ledger.offerFeePayer(feePayer);
    this.#offers.setFeePayer(feePayer);
    if (former !== feePayer) await this.#ledger.offerFeePayer(former);
  }

  /** Says what this server offers, and learns what the others do. */
  async share(): Promise<void> {
    await this.#ledger.offerFeePayer(this.#offers.feePayer);
    await this.#refresh();
  }

  /** Looks into the ledger for a fee payer that was not offered here, at most once a second however many are asked for. */
  async lookUp(feePayer: string): Promise<void> {
    if (this.#offers.isOffered(feePayer) || this.#waiting >= MAX_WAITING) return;
    this.#waiting += 1;
    try {
      await (this.#look ??= this.#lookSoon());
    } catch (error) {
      this.#log.warn({ error }, 'the ledger could not be asked for the fee payers of other servers');
    } finally {
      this.#waiting -= 1;
    }
  }

  async #lookSoon(): Promise<void> {
    const wait = this.#lookedAt + this.#lookEveryMs - performance.now();
    await sleep(Math.max(0, wait), undefined, { ref: false });
    // Whoever comes from here on wants to know what is in the ledger then.
    this.#look = undefined;
    this.#lookedAt = performance.now();
    await this.#refresh();
  }

  async #refresh(): Promise<void> {
    this.#offers.addOfferedElsewhere(await this.#ledger.offeredFeePayers());
  }
}
