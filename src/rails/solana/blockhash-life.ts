import { BLOCKHASH_LIFE_BLOCKS, blocksWithin } from './blocks.js';
import { withDeadline } from '../../net/deadline.js';
import { RECENT_BLOCKHASHES_SYSVAR } from './networks.js';
import type { SolanaChain } from './rpc.js';
import type { SolanaHints } from './solana-hints.js';
import type { Key } from './message.js';

/** For each blockhash, the number of blocks since it was the newest. */
type Ages = ReadonlyMap<Key, number>;

type Parts = {
  hints: Pick<SolanaHints, 'blockhashAge'>;
  chain: Pick<SolanaChain, 'account'>;
  closing: AbortSignal;
  now?: () => number;
};

/** How long one read of the chain is reused, even if it failed. */
const READ_LIFE_MS = 2_000;
const READ_DEADLINE_MS = 1_000;
const COUNT_BYTES = 8;
const HASH_BYTES = 32;
/** The size of an entry: a hash and its fee per signature (u64). */
const ENTRY_BYTES = 40;
const MAX_ENTRIES = 150;

/** Computes how long a blockhash stays valid. If this server has not read the blockhash, the chain's list of recent ones is used. */
export class BlockhashLife {
  readonly #parts: Parts;
  readonly #now: () => number;
  #read: { at: number; ages: Promise<Ages> } | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
  }

  /** The number of blocks in which a transaction with this blockhash can still land; undefined if unknown. Never rejects. */
  async blocksLeft(blockhash: Key): Promise<number | undefined> {
    const seen = this.#parts.hints.blockhashAge(blockhash);
    if (seen !== undefined) return BLOCKHASH_LIFE_BLOCKS - seen;
    const { at, ages } = this.#ages();
    const age = (await ages).get(blockhash);
    return age === undefined ? undefined : BLOCKHASH_LIFE_BLOCKS - age - blocksWithin(this.#now() - at);
  }

  #ages(): { at: number; ages: Promise<Ages> } {
    const { chain, closing } = this.#parts;
    const now = this.#now();
    if (!this.#read || now - this.#read.at >= READ_LIFE_MS) {
      const ages = withDeadline(READ_DEADLINE_MS, closing, signal => recentBlockhashes(chain, signal));
      this.#read = { at: now, ages: ages.then(agesOf, () => agesOf([])) };
    }
    return this.#read;
  }
}

function agesOf(newestFirst: Key[]): Ages {
  return new Map(newestFirst.map((key, age) => [key, age]));
}

/**
 * The hashes of the last 150 blocks, the newest first, from the chain's own list
 * (https://docs.rs/solana-sysvar/latest/solana_sysvar/recent_blockhashes). None if the chain does not have the list.
 */
export async function recentBlockhashes(
  chain: Pick<SolanaChain, 'account'>,
  signal: AbortSignal,
): Promise<Key[]> {
  const data = (await chain.account(RECENT_BLOCKHASHES_SYSVAR, signal))?.data;
  if (!data || data.length < COUNT_BYTES) return [];
  const fitting = Math.floor((data.length - COUNT_BYTES) / ENTRY_BYTES);
  const count = Math.min(Number(data.readBigUInt64LE()), fitting, MAX_ENTRIES);
  return Array.from({ length: count }, (_, age) => {
    const from = COUNT_BYTES + age * ENTRY_BYTES;
    return data.toString('latin1', from, from + HASH_BYTES);
  });
}
