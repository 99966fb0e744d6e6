import { CLOCK_SYSVAR } from './networks.js';
import type { Finality } from './rpc-results.js';
import type { SolanaChain } from './rpc.js';

/** A block of the chain: its slot, and its time in ms since 1970. */
export type ChainClock = { slot: number; time: number };

/** https://docs.rs/solana-clock/latest/solana_clock/struct.Clock.html */
const LAYOUT = { slot: 0, unixSeconds: 32, bytes: 40 };

/**
 * The chain's own clock in its newest block of this finality. Slot and time belong to the same block, because both are read from one
 * account.
 * @throws UpstreamFailure, or Error if the RPC server does not serve the account
 */
export async function readChainClock(
  chain: Pick<SolanaChain, 'account'>,
  finality: Finality,
  signal: AbortSignal,
): Promise<ChainClock> {
  const account = await chain.account(CLOCK_SYSVAR, signal, LAYOUT.bytes, finality);
  if (!account || account.data.length < LAYOUT.bytes)
    throw new Error('the RPC server does not serve the time of the chain');
  const { data } = account;
  return {
    slot: Number(data.readBigUInt64LE(LAYOUT.slot)),
    time: Number(data.readBigInt64LE(LAYOUT.unixSeconds)) * 1_000,
  };
}
