import type { Ledger, OfferedHint } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import type { SolanaHints } from '../rails/solana/solana-hints.js';
import type { Facilitators } from './facilitators.js';

/** The key under which version 1.0.0 stored all offered fee payers. */
const FORMER_KEY = 'offered-fee-payers';

/** The offered fee payers in the ledger, newest first. */
export async function rememberedFeePayers(
  ledger: Pick<Ledger, 'offeredHints' | 'getMeta'>,
): Promise<OfferedHint[]> {
  const offered = await ledger.offeredHints();
  if (offered.length > 0) return offered;
  const former = JSON.parse((await ledger.getMeta(FORMER_KEY)) ?? '[]') as { feePayer: string }[];
  return former.map(({ feePayer }) => ({ hint: feePayer }));
}

type Parts = {
  ledger: Pick<Ledger, 'offerHint'>;
  hints: Pick<SolanaHints, 'feePayer' | 'setFeePayer'>;
  facilitators: Pick<Facilitators, 'nameOf' | 'choice' | 'feePayers' | 'refresh' | 'probe'>;
  network: string;
  log: Log;
};

/**
 * Makes challenges name the fee payer that the facilitators choose now. The fee payer is recorded in the ledger before any challenge names
 * it, because a buyer may send the payment to a different server from the one that made the offer.
 */
export class OfferedFeePayers {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Offers the fee payer that the facilitators choose now. Never rejects. */
  async follow(): Promise<void> {
    const { hints, facilitators, log } = this.#parts;
    const { choice } = facilitators;
    const former = hints.feePayer;
    if (choice === undefined || choice === former) return;
    try {
      await this.#record(choice);
      hints.setFeePayer(choice);
      const facilitator = facilitators.nameOf(choice);
      log.info({ facilitator, feePayer: choice }, 'new challenges name another fee payer');
      await this.#record(former);
    } catch (error) {
      log.warn({ error }, 'could not offer another fee payer');
    }
  }

  /** Records what this server offers or may offer next. Never rejects. */
  async share(): Promise<void> {
    const { hints, facilitators, log } = this.#parts;
    try {
      for (const feePayer of new Set([hints.feePayer, ...facilitators.feePayers]))
        await this.#record(feePayer);
    } catch (error) {
      log.warn({ error }, 'could not record the offered fee payers in the ledger');
    }
  }

  /** Asks all facilitators for their fee payers. Never rejects. */
  async ask(): Promise<void> {
    const { facilitators, network, log } = this.#parts;
    for (const [facilitator, cause] of await facilitators.refresh(network)) {
      const error = (cause as Error).message;
      log.warn({ facilitator, error }, 'a facilitator did not report which kinds of payment it supports');
    }
  }

  /** Checks whether paused facilitators answer again. Never rejects. */
  probe(): Promise<void> {
    const { facilitators, network } = this.#parts;
    return facilitators.probe(network);
  }

  #record(feePayer: string): Promise<void> {
    const { ledger, facilitators } = this.#parts;
    return ledger.offerHint(feePayer, facilitators.nameOf(feePayer));
  }
}
