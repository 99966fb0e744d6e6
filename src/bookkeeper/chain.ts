import { setTimeout as sleep } from 'node:timers/promises';
import type { Identity } from '../ledger/books.js';
import type { SolanaChain } from '../solana/rpc.js';
import { BookFault } from './print.js';

/** USDC on the networks that a ledger can belong to. */
const MINTS: Record<string, string> = {
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1': '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
};
const MAX_TRIES = 4;

/** @throws BookFault */
export function usdcMintOf({ network }: Identity): string {
  const mint = MINTS[network];
  if (mint !== undefined) return mint;
  throw new BookFault(`This ledger belongs to ${network}, where USDC is not known.`);
}

/** @throws BookFault where the RPC servers are of another network than the ledger */
export async function checkNetwork(
  chain: SolanaChain,
  { network }: Identity,
  signal: AbortSignal,
): Promise<void> {
  const genesis = await patiently(() => chain.genesisHash(signal), signal);
  if (network === `solana:${genesis.slice(0, 32)}`) return;
  throw new BookFault(
    `The ledger belongs to ${network}, the RPC server to solana:${genesis.slice(0, 32)}. Correct SOLANA_RPC_URL.`,
  );
}

/** Public RPC servers answer "not now" often. */
export async function patiently<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await read();
    } catch (error) {
      if (attempt === MAX_TRIES || signal.aborted) throw error;
      await sleep(250 * 2 ** attempt, undefined, { signal });
    }
  }
}
