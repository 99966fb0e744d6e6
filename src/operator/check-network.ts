import { setTimeout as sleep } from 'node:timers/promises';
import type { Identity } from '../ledger/reader.js';
import { networkOf, NETWORKS } from '../rails/solana/networks.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { OperatorFault } from './operator-fault.js';

const MAX_TRIES = 4;

/** @throws OperatorFault */
export function usdcMintOf({ network }: Identity): string {
  const known = Object.values(NETWORKS).find(({ caip2 }) => caip2 === network);
  if (known) return known.usdcMint;
  throw new OperatorFault(`This ledger belongs to ${network}; the USDC mint of that network is not known.`);
}

/** @throws OperatorFault if the RPC servers are on a network other than the ledger's */
export async function checkNetwork(
  chain: SolanaChain,
  { network }: Identity,
  signal: AbortSignal,
): Promise<void> {
  const served = networkOf(await patiently(() => chain.genesisHash(signal), signal));
  if (network === served) return;
  throw new OperatorFault(
    `The ledger belongs to ${network}, the RPC server to ${served}. Correct SOLANA_RPC_URL.`,
  );
}

/** Retries, because public RPC servers often refuse requests temporarily. */
export async function patiently<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await read();
    } catch (error) {
      if (attempt === MAX_TRIES || signal.aborted) throw error;
      await sleep(250 * 2 ** attempt, undefined, { signal }).catch(() => {
        throw error;
      });
    }
  }
}
