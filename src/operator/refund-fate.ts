import type { LandedRepayment, Repayment } from '../ledger/store.js';
import { BLOCKHASH_LIFE_BLOCKS } from '../rails/solana/blocks.js';
import type { ChainHeights } from '../rails/solana/chain-heights.js';
import { heightOf } from '../rails/solana/find-transfer.js';
import { referenceOf } from '../rails/solana/pay-link.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { memoOf, readRefund } from './refund-transaction.js';

/** A refund that was signed and stored. */
export type WrittenRefund = Repayment & { evidence: string; signature: string; position: number };

/**
 * `never`: it refunded nothing and never will. `open`: neither outcome is proven, or a server can't be asked.
 */
export type RefundFate =
  | { kind: 'landed'; landed: LandedRepayment }
  | { kind: 'never'; why: string }
  | { kind: 'open'; trouble?: unknown };

export type FateChain = Pick<
  SolanaChain,
  'signaturesFor' | 'transaction' | 'latestBlockhash' | 'blockhashLives'
>;

/** A refund counts as expired only this many blocks after the last one in which its blockhash is valid, in case a server lags behind. */
const MARGIN_BLOCKS = BLOCKHASH_LIFE_BLOCKS;
/** At most this many transfers of a refund are read. If there are more, nothing is proven. */
const MAX_LISTED = 1_000;
const NEVER_LANDED = 'it never landed, and its blockhash has expired';
const FAILED = 'it failed on chain';

export function isWritten(repayment: Repayment): repayment is WrittenRefund {
  return repayment.evidence !== null && repayment.signature !== null && repayment.position !== null;
}

/**
 * The outcome of a signed refund. A refund has landed if a single RPC server shows it as final. It counts as
 * never landed only if every server reports so, because a single server may have lost it. Never rejects.
 * @param servers the RPC servers, each with its own client
 */
export async function fateOfRefund(
  servers: readonly FateChain[],
  refund: WrittenRefund,
  heights: Pick<ChainHeights, 'checkRise'>,
  signal: AbortSignal,
): Promise<RefundFate> {
  const looks = await Promise.allSettled(servers.map(each => fateAt(each, refund, heights, signal)));
  const fates = looks.flatMap(look => (look.status === 'fulfilled' ? [look.value] : []));
  const decided = fates.find(({ kind }) => kind === 'landed');
  if (decided) return decided;
  const [first] = fates;
  const agreed = fates.length === servers.length && fates.every(({ kind }) => kind === 'never');
  if (first && agreed) return first;
  const failed = looks.find(look => look.status === 'rejected');
  return { kind: 'open', ...(failed && { trouble: failed.reason as unknown }) };
}

async function fateAt(
  chain: FateChain,
  refund: WrittenRefund,
  heights: Pick<ChainHeights, 'checkRise'>,
  signal: AbortSignal,
): Promise<RefundFate> {
  const { evidence, signature, position } = refund;
  const signed = readRefund(evidence);
  const landed = await chain.transaction(signature, 'finalized', signal);
  if (landed) {
    if (!signed.message.equals(landed.message)) throw new Error('the RPC server shows another transaction');
    if (landed.failed) return { kind: 'never', why: FAILED };
    const at = (landed.blockTime ?? 0) * 1_000 || Date.now();
    return { kind: 'landed', landed: { signature, slot: landed.slot, at, source: signed.owner ?? '' } };
  }
  const latest = await chain.latestBlockhash('finalized', signal, heights.checkRise);
  if (heightOf(latest) <= position + MARGIN_BLOCKS) return { kind: 'open' };
  if (await chain.blockhashLives(signed.blockhash, signal, 'finalized')) return { kind: 'open' };
  const page = { finality: 'confirmed', limit: MAX_LISTED, minContextSlot: latest.slot } as const;
  const listed = await chain.signaturesFor(referenceOf(memoOf(refund)), page, signal);
  if (listed.length === MAX_LISTED || listed.some(entry => entry.signature === signature))
    return { kind: 'open' };
  if (await chain.transaction(signature, 'confirmed', signal)) return { kind: 'open' };
  return { kind: 'never', why: NEVER_LANDED };
}
