import type { PaymentRequirements } from '@x402/core/types';
import type { PricedOperation } from '../contract.js';
import {
  renderChallenge,
  MAX_HEADER_BYTES,
  type Challenge,
  type ChallengeVersion,
  type Live,
} from './challenge.js';
import { requirementsOf, type Terms } from './offer.js';

/** Where the chain stood when we last looked, at commitment `confirmed`. */
export type ChainView = { blockhash: string; slot: number; height: number };

/** A fee payer that we named in challenges, and when last (ms). */
export type OfferedFeePayer = { feePayer: string; lastOfferedAt: number };

/** How long a fee payer counts as offered after we stopped naming it. */
const OFFER_LIFE_MS = 5 * 60_000;
/** A blockhash lives 60 to 90 s and the buyer needs most of that. */
const BLOCKHASH_LIFE_MS = 20_000;
/** An older view of the chain is too old to begin a payment on; see `DEAD_AFTER_BLOCKS`. */
const VIEW_LIFE_MS = 40_000;
const MAX_FEE_PAYERS = 64;
const MAX_REQUIREMENTS = 1_024;

type Prebuilt = Record<ChallengeVersion, Challenge>;

/**
 * Where offers are made: knows the fee payer and blockhash of the moment, keeps one prebuilt challenge per operation and
 * version, and remembers which fee payers it named. Challenges are rebuilt when one of the two changes, never per request.
 */
export class Desk {
  readonly #operations: PricedOperation[];
  readonly #terms: Terms;
  readonly #now: () => number;
  #live: Live;
  #offered: OfferedFeePayer[];
  #challenges = new Map<string, Prebuilt>();
  readonly #requirements = new Map<string, PaymentRequirements>();
  #view: (ChainView & { readAt: number }) | undefined;
  #blockhashTimer: NodeJS.Timeout | undefined;

  constructor(
    operations: PricedOperation[],
    terms: Terms,
    feePayer: string,
    offered: OfferedFeePayer[] = [],
    now: () => number = Date.now,
  ) {
    this.#operations = operations;
    this.#terms = terms;
    this.#now = now;
    this.#live = { feePayer };
    this.#offered = offered.filter(entry => entry.feePayer !== feePayer);
    this.#rebuild();
  }

  get terms(): Terms {
    return this.#terms;
  }

  /** What an operation is offered for over a fee payer: the same object for the same offer, so that its text can be kept. */
  requirements(operation: PricedOperation, feePayer: string): PaymentRequirements {
    const key = `${operation.id} ${feePayer}`;
    let requirements = this.#requirements.get(key);
    if (!requirements) {
      requirements = requirementsOf(operation, this.#terms, feePayer);
      if (this.#requirements.size >= MAX_REQUIREMENTS) this.#requirements.clear();
      this.#requirements.set(key, requirements);
    }
    return requirements;
  }

  /** The challenge for a call without payment. */
  challenge(operation: PricedOperation, version: ChallengeVersion): Challenge {
    const prebuilt = this.#challenges.get(operation.id);
    if (!prebuilt) throw new Error(`no challenge for ${operation.id}`);
    return prebuilt[version];
  }

  /**
   * The challenge for a call whose payment was refused. Without a blockhash where the buyer would otherwise sign the very
   * same transaction again.
   */
  refusal(
    operation: PricedOperation,
    version: ChallengeVersion,
    error: string,
    withBlockhash: boolean,
  ): Challenge {
    const live = withBlockhash ? this.#live : { feePayer: this.#live.feePayer };
    const render = (text: string) => renderChallenge(operation, this.#terms, live, version, text);
    const room = (MAX_HEADER_BYTES / 4) * 3 - render('').body.length;
    return render(cutToJsonBytes(error, room));
  }

  /** The facilitator named this fee payer. */
  setFeePayer(feePayer: string): void {
    if (feePayer === this.#live.feePayer) return;
    this.#offered = this.offeredFeePayers().filter(entry => entry.feePayer !== feePayer);
    this.#live = { ...this.#live, feePayer };
    this.#rebuild();
  }

  /** The chain was read just now. A node whose slot does not advance shows nothing new: its view grows old. */
  setView(view: ChainView): void {
    if (this.#view && view.slot <= this.#view.slot) return;
    this.#view = { ...view, readAt: this.#now() };
    this.#live = { ...this.#live, recentBlockhash: view.blockhash };
    clearTimeout(this.#blockhashTimer);
    this.#blockhashTimer = setTimeout(() => {
      this.#live = { feePayer: this.#live.feePayer };
      this.#rebuild();
    }, BLOCKHASH_LIFE_MS);
    this.#blockhashTimer.unref();
    this.#rebuild();
  }

  /** Slot and height of the last look at the chain, unless that was too long ago to begin a payment on. */
  view(): ChainView | undefined {
    return this.#view && this.#now() - this.#view.readAt <= VIEW_LIFE_MS ? this.#view : undefined;
  }

  /** Whether a transaction with this fee payer answers an offer of the last five minutes. */
  isOffered(feePayer: string): boolean {
    return this.offeredFeePayers().some(entry => entry.feePayer === feePayer);
  }

  /** All fee payers that count as offered, the present one first; kept across restarts by the caller. */
  offeredFeePayers(): OfferedFeePayer[] {
    const now = this.#now();
    const former = this.#offered.filter(entry => now - entry.lastOfferedAt <= OFFER_LIFE_MS);
    return [{ feePayer: this.#live.feePayer, lastOfferedAt: now }, ...former].slice(0, MAX_FEE_PAYERS);
  }

  close(): void {
    clearTimeout(this.#blockhashTimer);
  }

  #rebuild(): void {
    this.#challenges = new Map(
      this.#operations.map(operation => [
        operation.id,
        {
          1: renderChallenge(operation, this.#terms, this.#live, 1),
          2: renderChallenge(operation, this.#terms, this.#live, 2),
        },
      ]),
    );
  }
}

/** The longest beginning of a text that takes at most `room` bytes within a JSON string. */
function cutToJsonBytes(text: string, room: number): string {
  let used = 0;
  let end = 0;
  for (const character of text) {
    used += Buffer.byteLength(JSON.stringify(character)) - 2;
    if (used > room) break;
    end += character.length;
  }
  return text.slice(0, end);
}
