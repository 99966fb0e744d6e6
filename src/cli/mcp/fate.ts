import {
  findTransfer,
  knownTransfers,
  type ChainHistory,
  type KnownTransfers,
} from '../../payments/find-transfer.js';
import { createChain, type SolanaChain } from '../../solana/rpc.js';
import { NETWORKS } from '../../solana/networks.js';
import type { PendingPayment } from './purse.js';

/**
 * What the chain shows of a payment. `open`: it may still be settled, or the chain can't tell. `dead`: it was not settled, and
 * never will be.
 */
export type Fate = { kind: 'open'; why: string } | { kind: 'dead' } | { kind: 'landed'; signature: string };

/** Solana's own public servers, which are slow and limited, but a payment whose answer is lost is rare. */
const PUBLIC_RPC: Record<string, string> = {
  [NETWORKS.mainnet.caip2]: 'https://api.mainnet-beta.solana.com',
  [NETWORKS.devnet.caip2]: 'https://api.devnet.solana.com',
};
const CALL_MS = 5_000;
const DEADLINE_MS = 12_000;
/** A blockhash lives for about a minute. Before this, a server that is behind could take a young one for a dead one. */
const YOUNG_MS = 90_000;
/** Fewer slots than this never take a second. The search goes back this far. */
const SLOTS_PER_SECOND = 5;
const SLACK_SECONDS = 120;
/** Public servers limit requests. What was read is remembered, so that the next look goes further back. */
const MAX_READS = 40;

type FateChain = Pick<SolanaChain, 'blockhashLives' | 'latestBlockhash'> & ChainHistory;

export class Fates {
  readonly #rpcUrl: string | undefined;
  readonly #now: () => number;
  readonly #known = knownTransfers();

  constructor(rpcUrl: string | undefined, now: () => number = Date.now) {
    this.#rpcUrl = rpcUrl;
    this.#now = now;
  }

  /** Never rejects. */
  async of(payment: PendingPayment): Promise<Fate> {
    if (payment.landed !== undefined) return { kind: 'landed', signature: payment.landed };
    const { network } = payment;
    const url = this.#rpcUrl ?? PUBLIC_RPC[network] ?? '';
    const chain = createChain({ urls: [url], timeoutMs: CALL_MS, network });
    try {
      return await fateOf(chain, payment, this.#now(), AbortSignal.timeout(DEADLINE_MS), this.#known);
    } catch {
      return { kind: 'open', why: 'the RPC server could not be asked (--rpc)' };
    } finally {
      await chain.close();
    }
  }
}

/**
 * Absence counts only in a complete history, as far as a slot in which the blockhash was dead. Both are asked for at `finalized`, in this
 * order: no RPC server has finalized its newest confirmed slot, so none could show a finalized history as far as that one.
 * @throws what the chain throws
 */
export async function fateOf(
  chain: FateChain,
  payment: Pick<PendingPayment, 'id' | 'transaction' | 'blockhash' | 'signedAt'>,
  now: number,
  signal: AbortSignal,
  known: KnownTransfers = new Map(),
): Promise<Fate> {
  const lives = await chain.blockhashLives(payment.blockhash, signal, 'finalized');
  const { slot: newest } = await chain.latestBlockhash('confirmed', signal);
  const age = Math.max(0, now - payment.signedAt);
  const back = Math.ceil((age / 1_000 + SLACK_SECONDS) * SLOTS_PER_SECOND);
  const row = { id: payment.id, transaction: payment.transaction, claimSlot: Math.max(0, newest - back) };
  const confirmed = { finality: 'confirmed', maxReads: MAX_READS } as const;
  const seen = await findTransfer(chain, row, confirmed, signal, known);
  if (seen.kind === 'found' && !seen.failed) return { kind: 'landed', signature: seen.signature };
  if (lives || age < YOUNG_MS)
    return { kind: 'open', why: 'its transaction can still be settled for about a minute' };
  const { slot } = await chain.latestBlockhash('finalized', signal);
  const finalized = { finality: 'finalized', minContextSlot: slot, maxReads: MAX_READS } as const;
  const proof = await findTransfer(chain, row, finalized, signal, known);
  if (proof.kind === 'absent' || (proof.kind === 'found' && proof.failed)) return { kind: 'dead' };
  return { kind: 'open', why: 'the chain does not show yet what became of its transaction' };
}
