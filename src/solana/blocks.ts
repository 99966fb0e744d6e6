/** A transaction can't land later than this many blocks after its blockhash (Solana's MAX_PROCESSING_AGE). */
export const BLOCKHASH_LIFE_BLOCKS = 150;

export const BLOCK_MS = 400;

/** How many blocks the chain makes in so many ms. */
export function blocksWithin(ms: number): number {
  return Math.floor(Math.max(0, ms) / BLOCK_MS);
}
