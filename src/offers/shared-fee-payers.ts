import type { Log } from '../net/log.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledger } from '../ledger/store.js';
import type { Facilitators } from '../facilitators/facilitators.js';
import type { SolanaHints } from '../rails/solana/solana-hints.js';

/** The interval between lookups of unknown fee payers, and the longest that a request waits for one. */
const LOOK_EVERY_MS = 1_000;
const MAX_WAITING = 1_000;
const MAX_RECORDED = 64;
/** Well below the time for which other servers accept a fee payer after it was recorded. */
const RECORD_LASTS_MS = 60_000;

type KnownFacilitators = Pick<Facilitators, 'nameOf' | 'learn' | 'choice' | 'feePayers'>;

/**
 * Shares offered fee payers with the other servers on the ledger. A facilitator may name another one each time, there may be several
 * facilitators, and a buyer may pay at one server what another one offered.
 */
export class SharedFeePayers {
  readonly #ledger: Pick<Ledger, 'offerFeePayer' | 'offeredFeePayers'>;
  readonly #hints: SolanaHints;
  readonly #facilitators: KnownFacilitators | undefined;
  readonly #log: Log;
  readonly #lookEveryMs: number;
  /** When each fee payer was last recorded here. */
  readonly #recorded = new Map<string, number>();
  #following: Promise<void> | undefined;
  #lookedAt = -Infinity;
  #look: Promise<void> | undefined;
  #waiting = 0;

  constructor(options: {
    ledger: Pick<Ledger, 'offerFeePayer' | 'offeredFeePayers'>;
    hints: SolanaHints;
    /** Without it, the ledger does not learn whose fee payers these are. */
    facilitators?: KnownFacilitators;
    log: Log;
    /** Default 1 s. */
    lookEveryMs?: number;
  }) {
    this.#ledger = options.ledger;
    this.#hints = options.hints;
    this.#facilitators = options.facilitators;
    this.#log = options.log;
    this.#lookEveryMs = options.lookEveryMs ?? LOOK_EVERY_MS;
  }

  /** Offers a fee payer from now on. Other servers can read it before any challenge names it. */
  async offer(feePayer: string): Promise<void> {
    const former = this.#hints.feePayer;
    const recordedAt = this.#recorded.get(feePayer) ?? -Infinity;
    if (performance.now() - recordedAt > RECORD_LASTS_MS) await this.#record(feePayer);
    this.#hints.setFeePayer(feePayer);
    if (former !== feePayer) await this.#record(former);
  }

  /** Offers the fee payer that the facilitators choose now. Never rejects. */
  follow(): Promise<void> {
    this.#following ??= this.#follow().finally(() => {
      this.#following = undefined;
    });
    return this.#following;
  }

  /** Stores what this server offers or may offer next, and reads what the others offer. */
  async share(): Promise<void> {
    const own = new Set([this.#hints.feePayer, ...(this.#facilitators?.feePayers ?? [])]);
    for (const feePayer of own) await this.#record(feePayer);
    await this.#refresh();
  }

  /** Looks up a fee payer that was not offered here in the ledger, at most once per second for all requests. */
  async lookUp(feePayer: string): Promise<void> {
    if (this.#hints.isOffered(feePayer) || this.#waiting >= MAX_WAITING) return;
    this.#waiting += 1;
    try {
      await (this.#look ??= this.#lookSoon());
    } catch (error) {
      this.#log.warn({ error }, 'could not read the fee payers of other servers from the ledger');
    } finally {
      this.#waiting -= 1;
    }
  }

  async #follow(): Promise<void> {
    try {
      for (;;) {
        const choice = this.#facilitators?.choice;
        if (choice === undefined || choice === this.#hints.feePayer) return;
        const facilitator = this.#facilitators?.nameOf(choice);
        this.#log.info({ facilitator, feePayer: choice }, 'new challenges name another fee payer');
        await this.offer(choice);
      }
    } catch (error) {
      this.#log.warn({ error }, 'could not offer another fee payer');
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

  async #record(feePayer: string): Promise<void> {
    await this.#ledger.offerFeePayer(feePayer, this.#facilitators?.nameOf(feePayer));
    this.#recorded.delete(feePayer);
    this.#recorded.set(feePayer, performance.now());
    const [oldest] = this.#recorded.keys();
    if (this.#recorded.size > MAX_RECORDED && oldest !== undefined) this.#recorded.delete(oldest);
  }

  async #refresh(): Promise<void> {
    const offered = await this.#ledger.offeredFeePayers();
    this.#hints.addOfferedElsewhere(this.#facilitators?.learn(offered) ?? offered);
  }
}
