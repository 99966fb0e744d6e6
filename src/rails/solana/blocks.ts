/** A transaction can't land later than this many blocks after its blockhash (Solana's MAX_PROCESSING_AGE). */
export const BLOCKHASH_LIFE_BLOCKS = 150;

const BLOCK_MS = 400;

/** The number of blocks that the chain produces in `ms`. */
export function blocksWithin(ms: number): number {
  return Math.floor(Math.max(0, ms) / BLOCK_MS);
}

/**
 * A payment whose claim is this many blocks old can no longer land: a blockhash is valid for 150, and the height of the claim was at
 * most 40 s old and came from an RPC server at most 50 blocks behind. In 40 s, a chain with 400 ms slots makes 100 blocks, and one with 200
 * ms slots 200. With the margin of a quarter that `ChainRate` allows, this is 150 + 50 + 250.
 */
export const EXPIRED_AFTER_BLOCKS = 450;
