import { blocksWithin } from '../solana/blocks.js';
import { BLOCKHASH_LIFE_BLOCKS } from '../solana/blocks.js';
import { withDeadline } from '../net/deadline.js';
import type { Offers } from './offers.js';
import type { Key } from '../solana/message.js';

/** The chain's recent blockhashes as keys, the newest first, one per block; undefined where it does not serve them. */
export type RecentBlockhashes = (signal: AbortSignal) => Promise<Key[] | undefined>;
/** How long one read of the chain serves, also one that failed. */
const READ_LIFE_MS = 2_000;
const READ_DEADLINE_MS = 1_000;

/** Says how long a blockhash still lives, by what our own looks at the chain saw, else by the chain's list of recent ones. */
export class BlockhashLife {
  readonly #offers: Offers;
  readonly #recent: RecentBlockhashes;
  readonly #closing: AbortSignal;
  readonly #now: () => number;
  #read: { at: number; ages: Promise<ReadonlyMap<Key, number>> } | undefined;

  constructor(parts: {
    offers: Offers;
    recent: RecentBlockhashes;
    closing: AbortSignal;
    now?: () => number;
  }) {
    this.#offers = parts.offers;
    this.#recent = parts.recent;
    this.#closing = parts.closing;
    this.#now = parts.now ?? Date.now;
  }

  /** How many more blocks a transaction over it can land in; undefined where nobody knows. Never rejects. */
  async blocksLeft(blockhash: Key): Promise<number | undefined> {
    const seen = this.#offers.blockhashAge(blockhash);
    if (seen !== undefined) return BLOCKHASH_LIFE_BLOCKS - seen;
    const { at, ages } = this.#ages();
    const age = (await ages).get(blockhash);
    return age === undefined ? undefined : BLOCKHASH_LIFE_BLOCKS - age - blocksWithin(this.#now() - at);
  }

  #ages(): { at: number; ages: Promise<ReadonlyMap<Key, number>> } {
    const now = this.#now();
    if (!this.#read || now - this.#read.at >= READ_LIFE_MS) {
      const ages = withDeadline(READ_DEADLINE_MS, this.#closing, this.#recent)
        .catch(() => undefined)
        .then(hashes => new Map(hashes?.map((hash, age) => [hash, age])));
      this.#read = { at: now, ages };
    }
    return this.#read;
  }
}
