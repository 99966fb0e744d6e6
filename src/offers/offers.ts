import { blocksWithin } from '../rails/solana/blocks.js';
import { BLOCKHASH_LIFE_BLOCKS } from '../rails/solana/blocks.js';
import { LRUCache } from 'lru-cache';
import type { PaymentRequirements } from '@x402/core/types';
import type { PricedOperation } from '../contract/contract.js';
import type { OfferedFeePayer } from '../ledger/store.js';
import type { Method, OfferState } from '../methods/method.js';
import type { Challenges, Methods } from '../methods/methods.js';
import { SharedBucket } from '../admission/admission.js';
import type { Key } from '../rails/solana/message.js';
import { requirementsOf, type Terms } from '../methods/x402/requirements.js';
import { bytesOf, type CheckedTransaction } from '../rails/solana/transaction.js';

/** The state of the chain at the last read, at commitment `confirmed`. */
export type ChainView = { blockhash: string; slot: number; height: number };

/** How long a fee payer is accepted after challenges stopped naming it. */
const OFFER_LIFE_MS = 5 * 60_000;
/** A blockhash is valid for 60 to 90 s, and the buyer needs most of that. */
const BLOCKHASH_LIFE_MS = 20_000;
/** No payment is claimed on an older view of the chain; see `EXPIRED_AFTER_BLOCKS`. */
const VIEW_LIFE_MS = 40_000;
/** The interval between reads of the chain: while calls come in, otherwise, and after the offered blockhash was used. */
const LOOK_MS = { busy: 2_000, idle: 10_000, usedUp: 400 };
/** Limits how often unpaid requests can use up the offered blockhash, since clients without an RPC server depend on it. */
const UNPROVEN_USES = { rate: 0.5, burst: 1 };
const MAX_USED = 256;
const MAX_SEEN = 256;
const MAX_FEE_PAYERS = 64;
const MAX_REQUIREMENTS = 1_024;

/** What was built for an operation and the method that was asked for. */
type Built = Map<PricedOperation, Map<Method, Challenges>>;

/** The transaction that used a blockhash. */
type Signed = Pick<CheckedTransaction, 'payer' | 'blockhash' | 'hasNonce'>;

/**
 * The current offers: fee payer, blockhash, the fee payers that were offered recently, and the challenges. A challenge is
 * built when it is first asked for, and kept until the fee payer or the blockhash changes.
 *
 * Two payments without a nonce, of the same payer and price with the same blockhash, are the same transaction. A blockhash that such a
 * payment has used is therefore no longer offered.
 */
export class Offers {
  readonly #terms: Terms;
  readonly methods: Methods;
  readonly #now: () => number;
  #live: OfferState;
  #offered: OfferedFeePayer[];
  /** The current challenges, with or without a blockhash. */
  #withoutBlockhash: Built = new Map();
  #challenges = this.#withoutBlockhash;
  /** The offered blockhash, as a key. */
  #offeredHash: string | undefined;
  readonly #used = new Set<string>();
  /** The heights of the blockhashes that this server has read. */
  readonly #seen = new Map<Key, number>();
  readonly #unproven: SharedBucket;
  #asked = false;
  #usedUp = false;
  /** Called when the offered blockhash was used up, so that the chain is read again. */
  onUsedUp: () => void = () => {};
  readonly #requirements = new LRUCache<string, PaymentRequirements>({ max: MAX_REQUIREMENTS });
  #view: (ChainView & { readAt: number }) | undefined;
  #blockhashTimer: NodeJS.Timeout | undefined;

  constructor(
    { terms, methods }: { terms: Terms; methods: Methods },
    feePayer: string,
    offered: OfferedFeePayer[] = [],
    now: () => number = Date.now,
  ) {
    this.#terms = terms;
    this.methods = methods;
    this.#now = now;
    this.#unproven = new SharedBucket({ ...UNPROVEN_USES, now });
    this.#live = { feePayer };
    this.#offered = offered.filter(entry => entry.feePayer !== feePayer);
  }

  get terms(): Terms {
    return this.#terms;
  }

  /** The requirements of an operation with a fee payer: the same object for the same offer, so that its text can be cached. */
  requirements(operation: PricedOperation, feePayer: string): PaymentRequirements {
    const key = `${operation.id} ${feePayer}`;
    let requirements = this.#requirements.get(key);
    if (!requirements) {
      requirements = requirementsOf(operation, this.#terms, feePayer);
      this.#requirements.set(key, requirements);
    }
    return requirements;
  }

  /** The challenge for a call without payment. */
  challenge(operation: PricedOperation, asked: Method): Challenges {
    this.#asked = true;
    let built = this.#challenges.get(operation);
    if (!built) this.#challenges.set(operation, (built = new Map<Method, Challenges>()));
    let challenges = built.get(asked);
    if (challenges) return challenges;
    challenges = this.methods.challenges(asked, operation, this.#live);
    if (!challenges.each.some(({ method }) => method.fresh)) built.set(asked, challenges);
    return challenges;
  }

  /**
   * The challenge for a call whose payment was refused.
   * @param fresh whether the buyer may use the blockhash of that payment again; otherwise the challenge has none unless it is another
   */
  refusal(
    operation: PricedOperation,
    asked: Method,
    error: string,
    fresh: boolean,
    payment?: Signed,
  ): Challenges {
    this.#asked = true;
    const another = payment !== undefined && !payment.hasNonce && payment.blockhash !== this.#offeredHash;
    const live = fresh || another ? this.#live : { feePayer: this.#live.feePayer };
    return this.methods.challenges(asked, operation, live, error);
  }

  /** Sets the fee payer that the facilitator named. */
  setFeePayer(feePayer: string): void {
    if (feePayer === this.#live.feePayer) return;
    this.#offered = this.offeredFeePayers().filter(entry => entry.feePayer !== feePayer);
    this.#live = { ...this.#live, feePayer };
    this.#withoutBlockhash = new Map();
    if (this.#live.recentBlockhash) this.#challenges = new Map();
    else this.#challenges = this.#withoutBlockhash;
  }

  /** Sets the view of the chain. A view whose slot has not advanced does not renew the previous one. */
  setView(view: ChainView): void {
    this.#asked = false;
    this.#see(view);
    const another = view.slot === this.#view?.slot && this.#usedUp;
    if (this.#view && view.slot <= this.#view.slot && !another) return;
    if (!another) this.#view = { ...view, readAt: this.#now() };
    const key = bytesOf(view.blockhash);
    if (!this.#used.has(key)) this.#offer(view.blockhash, key);
  }

  /**
   * Stops offering the blockhash of a payment without a nonce.
   * @param paid whether its money moved or may have moved; otherwise the rate is limited, since unpaid requests cost nothing
   */
  markBlockhashUsed({ payer, blockhash, hasNonce }: Signed, paid: boolean): void {
    if (hasNonce || this.#used.has(blockhash)) return;
    const offered = blockhash === this.#offeredHash;
    // A blockhash that is not offered now may come back with the next read: reads in one slot return the same one.
    if (!paid && (!offered || !this.#unproven.take(payer))) return;
    const [oldest] = this.#used;
    if (this.#used.size >= MAX_USED && oldest !== undefined) this.#used.delete(oldest);
    this.#used.add(blockhash);
    if (!offered) return;
    this.#usedUp = true;
    this.#withdraw();
    this.onUsedUp();
  }

  /** The time from the last read of the chain to the next one, in ms. */
  nextReadAfterMs(): number {
    if (!this.#asked && !this.#usedUp) return LOOK_MS.idle;
    return this.#usedUp ? LOOK_MS.usedUp : LOOK_MS.busy;
  }

  /** The last view of the chain, unless it is too old to claim a payment on. */
  view(): ChainView | undefined {
    return this.#view && this.#now() - this.#view.readAt <= VIEW_LIFE_MS ? this.#view : undefined;
  }

  /** How old the last view of the chain is, in ms; undefined if there was none. */
  viewAge(): number | undefined {
    return this.#view && this.#now() - this.#view.readAt;
  }

  /** How many blocks ago a blockhash was the newest; undefined if this server has not read it. */
  blockhashAge(blockhash: Key): number | undefined {
    const height = this.#seen.get(blockhash);
    if (height === undefined || !this.#view) return undefined;
    const passed = blocksWithin(this.#now() - this.#view.readAt);
    return Math.max(0, this.#view.height + passed - height);
  }

  /** The fee payer in the current challenges. */
  get feePayer(): string {
    return this.#live.feePayer;
  }

  /** Adds the fee payers that other servers on the ledger have offered. */
  addOfferedElsewhere(offers: readonly OfferedFeePayer[]): void {
    const now = this.#now();
    const known = new Map(this.offeredFeePayers().map(entry => [entry.feePayer, entry.lastOfferedAt]));
    for (const { feePayer, lastOfferedAt } of offers)
      known.set(feePayer, Math.max(Math.min(lastOfferedAt, now), known.get(feePayer) ?? 0));
    known.delete(this.feePayer);
    this.#offered = [...known]
      .map(([feePayer, lastOfferedAt]) => ({ feePayer, lastOfferedAt }))
      .sort((a, b) => b.lastOfferedAt - a.lastOfferedAt)
      .slice(0, MAX_FEE_PAYERS);
  }

  /** Whether this fee payer was offered in the last five minutes. */
  isOffered(feePayer: string): boolean {
    return feePayer === this.feePayer || this.offeredFeePayers().some(entry => entry.feePayer === feePayer);
  }

  /** All fee payers that are accepted, the current one first. */
  offeredFeePayers(): OfferedFeePayer[] {
    const now = this.#now();
    const former = this.#offered.filter(entry => now - entry.lastOfferedAt <= OFFER_LIFE_MS);
    return [{ feePayer: this.#live.feePayer, lastOfferedAt: now }, ...former].slice(0, MAX_FEE_PAYERS);
  }

  close(): void {
    clearTimeout(this.#blockhashTimer);
  }

  #see({ blockhash, height }: ChainView): void {
    this.#seen.set(bytesOf(blockhash), height);
    for (const [key, seen] of this.#seen) {
      if (this.#seen.size <= MAX_SEEN && seen + BLOCKHASH_LIFE_BLOCKS >= height) break;
      this.#seen.delete(key);
    }
  }

  #offer(recentBlockhash: string, key: string): void {
    this.#usedUp = false;
    this.#offeredHash = key;
    this.#live = { feePayer: this.#live.feePayer, recentBlockhash };
    this.#challenges = new Map();
    clearTimeout(this.#blockhashTimer);
    this.#blockhashTimer = setTimeout(() => this.#withdraw(), BLOCKHASH_LIFE_MS);
    this.#blockhashTimer.unref();
  }

  /** Switches to the challenges without a blockhash. */
  #withdraw(): void {
    clearTimeout(this.#blockhashTimer);
    this.#offeredHash = undefined;
    this.#live = { feePayer: this.#live.feePayer };
    this.#challenges = this.#withoutBlockhash;
  }
}
