import type { Within } from '../ledger/store.js';
import { patiently } from '../operator/check-network.js';
import { OperatorFault } from '../operator/operator-fault.js';
import type { SignatureEntry } from '../rails/solana/rpc-results.js';
import type { SolanaChain } from '../rails/solana/rpc.js';

const PAGE = 1_000;

/** The history of a token account on chain in a period. Amounts in atomic units. */
export type AccountHistory = {
  account: string;
  opening: bigint;
  closing: bigint;
  /** Transactions that landed in the period, newest first. */
  within: SignatureEntry[];
  /** Transactions that landed shortly before or after the period. */
  around: SignatureEntry[];
};

type Wanted = Within & {
  /** Transactions this long (ms) before and after the period are listed, too. */
  marginMs: number;
  /** The finalized slot at which the history is read. */
  slot: number;
  /** The maximum number of transactions to list. */
  most: number;
};

export type HistoryChain = Pick<SolanaChain, 'signaturesFor' | 'transaction'>;

/**
 * The history of a token account at `finalized`. Its balance at a time is the balance after the last earlier transaction.
 * @throws OperatorFault if it has more than `most` transactions, or the server lacks a part of it; UpstreamFailure
 */
export async function accountHistory(
  chain: HistoryChain,
  account: string,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<AccountHistory> {
  const { from, to, marginMs } = wanted;
  const entries = await entriesSince(chain, account, wanted, signal);
  const balanceBefore = async (before: number): Promise<bigint> => {
    const last = entries.find(entry => !entry.failed && timeOf(entry) < before);
    return last ? balanceAfter(chain, account, last.signature, signal) : 0n;
  };
  const within = entries.filter(entry => timeOf(entry) >= from && timeOf(entry) < to);
  const around = entries.filter(
    entry => !within.includes(entry) && timeOf(entry) >= from - marginMs && timeOf(entry) < to + marginMs,
  );
  return { account, opening: await balanceBefore(from), closing: await balanceBefore(to), within, around };
}

/** The account's transactions, newest first, back to one that shows the balance before the period. */
async function entriesSince(
  chain: HistoryChain,
  account: string,
  { from, marginMs, slot, most }: Wanted,
  signal: AbortSignal,
): Promise<SignatureEntry[]> {
  const entries: SignatureEntry[] = [];
  for (;;) {
    const before = entries.at(-1)?.signature;
    const query = { finality: 'finalized' as const, minContextSlot: slot, limit: PAGE };
    const page = await patiently(
      () => chain.signaturesFor(account, { ...query, ...(before === undefined ? {} : { before }) }, signal),
      signal,
    );
    for (const entry of page) entries.push(entry);
    const isDone = page.some(entry => !entry.failed && timeOf(entry) < from - marginMs);
    if (page.length < PAGE || isDone) return entries.filter(entry => entry.slot <= slot);
    if (entries.length > most)
      throw new OperatorFault(
        `The account ${account} has more than ${most} transactions since the period began: raise --limit, or use --no-chain.`,
      );
  }
}

/** Ms since 1970. */
function timeOf({ blockTime, signature }: SignatureEntry): number {
  if (blockTime !== null) return blockTime * 1_000;
  throw new OperatorFault(
    `The RPC server does not say when ${signature} landed; use an archive server, or --no-chain.`,
  );
}

async function balanceAfter(
  chain: HistoryChain,
  account: string,
  signature: string,
  signal: AbortSignal,
): Promise<bigint> {
  const landed = await patiently(() => chain.transaction(signature, 'finalized', signal), signal);
  const { tokens } = landed ?? { tokens: null };
  // All token accounts of a transaction are listed; a missing one is empty.
  if (tokens?.every(each => each.account !== ''))
    return tokens.find(each => each.account === account)?.after ?? 0n;
  throw new OperatorFault(
    `The RPC server has no record of the balances of transaction ${signature}. Use an archive server, or --no-chain.`,
  );
}
