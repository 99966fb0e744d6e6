import { RECENT_BLOCKHASHES_SYSVAR } from './networks.js';
import type { SolanaChain } from './rpc.js';

const COUNT_BYTES = 8;
const HASH_BYTES = 32;
/** The size of an entry: a hash and its fee per signature (u64). */
const ENTRY_BYTES = 40;
const MAX_ENTRIES = 150;

/**
 * The hashes of the last 150 blocks as latin1 keys of 32 bytes, the newest first, from the chain's own list
 * (https://docs.rs/solana-sysvar/latest/solana_sysvar/recent_blockhashes). Undefined if the chain does not have the list.
 */
export async function recentBlockhashes(
  chain: Pick<SolanaChain, 'account'>,
  signal: AbortSignal,
): Promise<string[] | undefined> {
  const account = await chain.account(RECENT_BLOCKHASHES_SYSVAR, signal);
  if (!account || account.data.length < COUNT_BYTES) return undefined;
  const { data } = account;
  const fitting = Math.floor((data.length - COUNT_BYTES) / ENTRY_BYTES);
  const count = Math.min(Number(data.readBigUInt64LE()), fitting, MAX_ENTRIES);
  return Array.from({ length: count }, (_, age) => {
    const from = COUNT_BYTES + age * ENTRY_BYTES;
    return data.toString('latin1', from, from + HASH_BYTES);
  });
}
