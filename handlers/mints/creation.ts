import type { ChainReads } from 'coinslot';

/** The transaction that created a mint's account. `at`: ISO 8601; null if the server does not know the time of its block. */
export type Creation = { signature: string; slot: number; at: string | null };

/** The transactions in one page of a history. Only the newest page of a mint's history is read. */
const PAGE = 1_000;

/**
 * When a mint was created: its oldest transaction, if one page reaches that far, and if that transaction did create the account (an RPC
 * server that keeps no old transactions shows a later one as the oldest). Null otherwise.
 */
export async function readCreation(
  chain: ChainReads,
  mint: string,
  signal: AbortSignal,
): Promise<Creation | null> {
  const page = await chain.signaturesFor(mint, { finality: 'confirmed', limit: PAGE }, signal);
  const oldest = page.length < PAGE ? page.findLast(({ failed }) => !failed) : undefined;
  if (oldest === undefined) return null;
  const landed = await chain.transaction(oldest.signature, 'confirmed', signal);
  if (!landed?.opened.includes(mint)) return null;
  const { signature, slot } = oldest;
  const seconds = landed.blockTime ?? oldest.blockTime;
  return { signature, slot, at: seconds === null ? null : new Date(seconds * 1_000).toISOString() };
}
