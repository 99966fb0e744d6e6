import { SharedBucket } from '../../admission/admission.js';
import { toAddress } from './address.js';
import type { Called, Hinting, Hints } from '../rail.js';
import { BLOCKHASH_LIFE_BLOCKS, blocksWithin } from './blocks.js';
import type { Key } from './message.js';
import { bytesOf, type CheckedTransaction } from './transaction.js';

/**
 * The state of the chain at the last read, at commitment `confirmed`. `earlier`: the blockhashes before that one, the newest first, if they
 * were read.
 */
export type ChainView = { blockhash: string; slot: number; height: number; earlier?: readonly Key[] };

/**
 * Challenges rotate over this many of the newest blockhashes, so that concurrent calls from a wallet that adds no memos make different
 * transactions, and no blockhash is too old for its buyer.
 */
const OFFERED = { hashes: 16, ofNewest: 24 };
/** If fewer blockhashes are left, the chain is read again soon. */
const FEW_HASHES = 10;

/** A blockhash is valid for 60 to 90 s, and the buyer needs most of that. */
const OFFERED_MS = 20_000;
/** No payment is claimed on an older view of the chain; see `EXPIRED_AFTER_BLOCKS`. */
const VIEW_LIFE_MS = 40_000;
/** The intervals between reads of the chain: while calls come in, while none do, and while few of the offered blockhashes are left. */
const LOOK_MS = { busy: 2_000, idle: 10_000, usedUp: 400 };
/** Limits how often unpaid requests can use up an offered blockhash, because clients without an RPC server depend on this blockhash. */
const UNPROVEN_USES = { rate: 0.5, burst: 1 };
const MAX_USED = 256;
const MAX_SEEN = 256;

/** The transaction that used a blockhash. */
type Signed = Pick<CheckedTransaction, 'payer' | 'blockhash' | 'hasNonce'>;

/**
 * The current hints for buyers on Solana (the fee payer and a recent blockhash), and the current view of the chain.
 *
 * Two payments without a nonce are the same transaction if they have the same payer, price and blockhash. So no two challenges in a row
 * name the same blockhash, and a blockhash that such a payment has used is no longer offered.
 */
export class SolanaHints implements Hinting<CheckedTransaction> {
  readonly #now: () => number;
  #feePayer: string;
  /** The hints without a blockhash: the same object until the fee payer changes. */
  #bare: Hints;
  /** The offered blockhashes, the next one first. Each keeps the same object while it is offered. */
  #offered = new Map<Key, Hints>();
  readonly #used = new Set<string>();
  /** The heights of the blockhashes that this server has read. */
  readonly #seen = new Map<Key, number>();
  readonly #unproven: SharedBucket;
  #asked = false;
  #usedUp = false;
  /** Called when few of the offered blockhashes are left, so that the chain is read again. */
  onUsedUp: () => void = () => {};
  /** The fee payer for this call, if it differs from the usual one. The server must already accept payments with this fee payer. */
  elsewhere: (called: Called) => string | undefined = () => undefined;
  /** The fee payer whose key this server has, while it can pay, for methods whose payments only this server settles. */
  sponsor: () => string | undefined = () => undefined;
  /** Hints with other fee payers, keyed by the hints with the usual one. */
  readonly #others = new WeakMap<Hints, Map<string, Hints>>();
  #view: (ChainView & { readAt: number }) | undefined;
  #blockhashTimer: NodeJS.Timeout | undefined;

  constructor(feePayer: string, now: () => number = Date.now) {
    this.#now = now;
    this.#unproven = new SharedBucket({ ...UNPROVEN_USES, now });
    this.#feePayer = feePayer;
    this.#bare = { feePayer };
  }

  /** The hints for the challenge of a call without payment. */
  hints(called?: Called): Hints {
    this.#asked = true;
    const elsewhere = called && this.elsewhere(called);
    const next = this.#next();
    return this.#sponsored(elsewhere === undefined ? next : this.#with('feePayer', elsewhere, next));
  }

  /**
   * The hints for the challenge after a refusal.
   * @param fresh whether the buyer may reuse the refused payment's blockhash; otherwise the challenge has another blockhash, or none
   */
  hintsAfter(fresh: boolean, payment?: CheckedTransaction): Hints {
    this.#asked = true;
    if (fresh) return this.#sponsored(this.#next());
    return this.#sponsored(payment && !payment.hasNonce ? this.#next(payment.blockhash) : this.#bare);
  }

  /** Sets the fee payer that the facilitator named. */
  setFeePayer(feePayer: string): void {
    if (feePayer === this.#feePayer) return;
    this.#feePayer = feePayer;
    this.#bare = { feePayer };
    for (const [key, hints] of this.#offered) this.#offered.set(key, { ...hints, feePayer });
  }

  /** Sets the view of the chain. A view whose slot has not advanced does not renew the previous one. */
  setView(view: ChainView): void {
    this.#asked = false;
    this.#see(view);
    const another = view.slot === this.#view?.slot && this.#usedUp;
    if (this.#view && view.slot <= this.#view.slot && !another) return;
    if (!another) this.#view = { ...view, readAt: this.#now() };
    this.#offer(view);
  }

  /**
   * Stops offering the blockhash of a payment without a nonce.
   * @param paid whether its money moved or may have moved; otherwise the rate is limited, since unpaid requests cost nothing
   */
  markBlockhashUsed({ payer, blockhash, hasNonce }: Signed, paid: boolean): void {
    if (hasNonce || this.#used.has(blockhash)) return;
    const offered = this.#offered.has(blockhash);
    // A blockhash that is not offered now may come back with the next read, because reads in one slot return the same one.
    if (!paid && (!offered || !this.#unproven.take(payer))) return;
    const [oldest] = this.#used;
    if (this.#used.size >= MAX_USED && oldest !== undefined) this.#used.delete(oldest);
    this.#used.add(blockhash);
    if (!this.#offered.delete(blockhash) || this.#offered.size >= FEW_HASHES) return;
    this.#usedUp = true;
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
    return this.#feePayer;
  }

  close(): void {
    clearTimeout(this.#blockhashTimer);
  }

  #sponsored(hints: Hints): Hints {
    const sponsor = this.sponsor();
    return sponsor === undefined ? hints : this.#with('sponsor', sponsor, hints);
  }

  /** The same object for the same hints and the same name. */
  #with(key: 'feePayer' | 'sponsor', address: string, base: Hints): Hints {
    const known = this.#others.get(base) ?? new Map<string, Hints>();
    this.#others.set(base, known);
    const name = `${key} ${address}`;
    const hints = known.get(name) ?? { ...base, [key]: address };
    known.set(name, hints);
    return hints;
  }

  /** The next hints; without a blockhash if only `except` is offered. */
  #next(except?: Key): Hints {
    for (const [key, hints] of this.#offered) {
      if (key === except) continue;
      this.#offered.delete(key);
      this.#offered.set(key, hints);
      return hints;
    }
    return this.#bare;
  }

  #see({ blockhash, height, earlier = [] }: ChainView): void {
    // In a list from another RPC server, this blockhash may not be the newest.
    const before = earlier.slice(earlier.indexOf(bytesOf(blockhash)) + 1);
    before.slice(0, OFFERED.ofNewest).forEach((key, index) => {
      if (!this.#seen.has(key)) this.#seen.set(key, height - 1 - index);
    });
    this.#seen.set(bytesOf(blockhash), height);
    for (const [key, seen] of this.#seen) {
      if (this.#seen.size <= MAX_SEEN && seen + BLOCKHASH_LIFE_BLOCKS >= height) break;
      this.#seen.delete(key);
    }
  }

  /** Blockhashes that have not been offered yet come next. */
  #offer({ blockhash, earlier = [] }: ChainView): void {
    const newest = [bytesOf(blockhash), ...earlier.slice(0, OFFERED.ofNewest - 1)];
    const unused = new Set(newest.filter(key => !this.#used.has(key)).slice(0, OFFERED.hashes));
    if (unused.size === 0) return;
    const known = [...this.#offered].filter(([key]) => unused.has(key));
    const added = [...unused].filter(key => !this.#offered.has(key));
    this.#offered = new Map([...added.map((key): [Key, Hints] => [key, this.#hintsOf(key)]), ...known]);
    this.#usedUp = false;
    clearTimeout(this.#blockhashTimer);
    this.#blockhashTimer = setTimeout(() => this.#withdraw(), OFFERED_MS);
    this.#blockhashTimer.unref();
  }

  #hintsOf(key: Key): Hints {
    return { feePayer: this.#feePayer, recentBlockhash: toAddress(Buffer.from(key, 'latin1')) };
  }

  /** Offers no blockhash until the next read. */
  #withdraw(): void {
    clearTimeout(this.#blockhashTimer);
    this.#offered.clear();
  }
}
