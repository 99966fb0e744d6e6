/** A transaction can't land later than this many blocks after its blockhash (Solana's MAX_PROCESSING_AGE). */
export const BLOCKHASH_LIFE_BLOCKS = 150;

const BLOCK_MS = 400;

/** The number of blocks that the chain produces in `ms`. */
export function blocksWithin(ms: number): number {
  return Math.floor(Math.max(0, ms) / BLOCK_MS);
}
