import { BLOCKHASH_LIFE_BLOCKS, blocksWithin } from './blocks.js';
import { withDeadline } from '../../net/deadline.js';
import type { SolanaHints } from './solana-hints.js';
import type { Key } from './message.js';

/** The chain's recent blockhashes as keys, newest first, one per block; undefined if the chain does not serve them. */
export type RecentBlockhashes = (signal: AbortSignal) => Promise<Key[] | undefined>;
/** How long one read of the chain is reused, even if it failed. */
const READ_LIFE_MS = 2_000;
const READ_DEADLINE_MS = 1_000;

/** Computes how long a blockhash stays valid, from the blockhashes that this server has read, else from the chain's recent ones. */
export class BlockhashLife {
  readonly #hints: SolanaHints;
  readonly #recent: RecentBlockhashes;
  readonly #closing: AbortSignal;
  readonly #now: () => number;
  #read: { at: number; ages: Promise<ReadonlyMap<Key, number>> } | undefined;

  constructor(parts: {
    hints: SolanaHints;
    recent: RecentBlockhashes;
    closing: AbortSignal;
    now?: () => number;
  }) {
    this.#hints = parts.hints;
    this.#recent = parts.recent;
    this.#closing = parts.closing;
    this.#now = parts.now ?? Date.now;
  }

  /** The number of blocks in which a transaction with this blockhash can still land; undefined if unknown. Never rejects. */
  async blocksLeft(blockhash: Key): Promise<number | undefined> {
    const seen = this.#hints.blockhashAge(blockhash);
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
