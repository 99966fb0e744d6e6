import type { Log } from '../net/log.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledger } from '../ledger/store.js';
import type { Facilitators } from './facilitators.js';
import type { Offers } from './offers.js';

/** The interval between lookups of unknown fee payers, and the longest that a request waits for one. */
const LOOK_EVERY_MS = 1_000;
const MAX_WAITING = 1_000;

/**
 * Shares offered fee payers with the other servers on the ledger. A facilitator may name another one each time, and a buyer may pay
 * at one server what another one offered.
 */
export class SharedFeePayers {
  readonly #ledger: Pick<Ledger, 'offerFeePayer' | 'offeredFeePayers'>;
  readonly #offers: Offers;
  readonly #facilitators: Pick<Facilitators, 'nameOf' | 'learn'> | undefined;
  readonly #log: Log;
  readonly #lookEveryMs: number;
  #lookedAt = -Infinity;
  #look: Promise<void> | undefined;
  #waiting = 0;

  constructor(options: {
    ledger: Pick<Ledger, 'offerFeePayer' | 'offeredFeePayers'>;
    offers: Offers;
    /** Without it, the ledger does not learn whose fee payers these are. */
    facilitators?: Pick<Facilitators, 'nameOf' | 'learn'>;
    log: Log;
    /** Default 1 s. */
    lookEveryMs?: number;
  }) {
    this.#ledger = options.ledger;
    this.#offers = options.offers;
    this.#facilitators = options.facilitators;
    this.#log = options.log;
    this.#lookEveryMs = options.lookEveryMs ?? LOOK_EVERY_MS;
  }

  /** Offers a fee payer from now on. Other servers can read it before any challenge names it. */
  async offer(feePayer: string): Promise<void> {
    const former = this.#offers.feePayer;
    await this.#record(feePayer);
    this.#offers.setFeePayer(feePayer);
    if (former !== feePayer) await this.#record(former);
  }

  /** Stores what this server offers, and reads what the others offer. */
  async share(): Promise<void> {
    await this.#record(this.#offers.feePayer);
    await this.#refresh();
  }

  /** Looks up a fee payer that was not offered here in the ledger, at most once per second for all requests. */
  async lookUp(feePayer: string): Promise<void> {
    if (this.#offers.isOffered(feePayer) || this.#waiting >= MAX_WAITING) return;
    this.#waiting += 1;
    try {
      await (this.#look ??= this.#lookSoon());
    } catch (error) {
      this.#log.warn({ error }, 'could not read the fee payers of other servers from the ledger');
    } finally {
      this.#waiting -= 1;
    }
  }

  async #lookSoon(): Promise<void> {
    const wait = this.#lookedAt + this.#lookEveryMs - performance.now();
    await sleep(Math.max(0, wait), undefined, { ref: false });
    // Later requests need a new lookup.
    this.#look = undefined;
    this.#lookedAt = performance.now();
    await this.#refresh();
  }

  #record(feePayer: string): Promise<void> {
    return this.#ledger.offerFeePayer(feePayer, this.#facilitators?.nameOf(feePayer));
  }

  async #refresh(): Promise<void> {
    const offered = await this.#ledger.offeredFeePayers();
    this.#facilitators?.learn(offered);
    this.#offers.addOfferedElsewhere(offered);
  }
}
