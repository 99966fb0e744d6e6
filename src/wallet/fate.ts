import {
  findTransfer,
  knownTransfers,
  type ChainHistory,
  type KnownTransfers,
} from '../rails/solana/find-transfer.js';
import { readChainClock, type ChainClock } from '../rails/solana/chain-clock.js';
import { createChain, type SolanaChain } from '../rails/solana/rpc.js';
import { NETWORKS } from '../rails/solana/networks.js';
import type { PendingPayment } from './purse.js';

/**
 * The state of a payment on chain. `open`: it may still be settled, or the chain can't tell. `dead`: it was not settled, and never will
 * be.
 */
export type Fate = { kind: 'open'; why: string } | { kind: 'dead' } | { kind: 'landed'; signature: string };

/** Solana's own public servers. They are slow and limited, but payments rarely lose their answers. */
const PUBLIC_RPC: Record<string, string> = {
  [NETWORKS.mainnet.caip2]: 'https://api.mainnet-beta.solana.com',
  [NETWORKS.devnet.caip2]: 'https://api.devnet.solana.com',
};
const CALL_MS = 5_000;
const DEADLINE_MS = 12_000;
/** A purchase does not wait longer than this for the chain's clock. */
const CLOCK_DEADLINE_MS = 1_500;
/** How long a reading of the chain's clock is cached, even a failed one. */
const CLOCK_LIFE_MS = { read: 5 * 60_000, failed: 60_000 };
/** A blockhash is valid for 150 blocks, about a minute. After this time by the chain's clock, it has expired. */
const YOUNG_MS = 90_000;
/** An upper bound for the slots in a second. If the slot at signing is unknown, this rate determines how far back the search goes. */
const SLOTS_PER_SECOND = 5;
const SLACK_SECONDS = 120;
/**
 * One search reads at most this many transactions, because public servers limit requests. They are remembered, so that the next search
 * gets further back.
 */
const MAX_READS = 40;

type FateChain = Pick<SolanaChain, 'blockhashLives' | 'latestBlockhash' | 'account'> & ChainHistory;

type Reading = { clock: ChainClock | undefined; at: number };

export class Fates {
  readonly #rpcUrl: string | undefined;
  readonly #now: () => number;
  readonly #known = knownTransfers();
  readonly #clocks = new Map<string, Reading>();

  constructor(rpcUrl: string | undefined, now: () => number = Date.now) {
    this.#rpcUrl = rpcUrl;
    this.#now = now;
  }

  /** Never rejects. */
  async of(payment: PendingPayment): Promise<Fate> {
    if (payment.landed !== undefined) return { kind: 'landed', signature: payment.landed };
    const chain = this.#chainOf(payment.network);
    try {
      return await fateOf(chain, payment, this.#now(), AbortSignal.timeout(DEADLINE_MS), this.#known);
    } catch {
      return { kind: 'open', why: 'the RPC server could not be reached (--rpc)' };
    } finally {
      await chain.close();
    }
  }

  /**
   * The time of the chain's own clock, to be stored with a payment that is about to be signed. The slot given with it may be a little
   * older. Undefined if no RPC server answers quickly. Never rejects.
   */
  async chainClock(network: string): Promise<ChainClock | undefined> {
    const last = this.#clocks.get(network);
    const age = last ? performance.now() - last.at : Infinity;
    const fresh = last && age < (last.clock ? CLOCK_LIFE_MS.read : CLOCK_LIFE_MS.failed);
    if (fresh) return last.clock && { slot: last.clock.slot, time: Math.ceil(last.clock.time + age) };
    const chain = this.#chainOf(network);
    const at = performance.now();
    const signal = AbortSignal.timeout(CLOCK_DEADLINE_MS);
    const clock = await readChainClock(chain, 'confirmed', signal).catch(() => undefined);
    this.#clocks.set(network, { clock, at });
    await chain.close();
    return clock;
  }

  #chainOf(network: string): SolanaChain {
    const url = this.#rpcUrl ?? PUBLIC_RPC[network] ?? '';
    return createChain({ urls: [url], timeoutMs: CALL_MS, network });
  }
}

/**
 * A payment is only dead if this is proven, with all reads at `finalized`: its blockhash is unknown, the chain's own clock is more than
 * 90 s past the signature, and a complete history as far as the block with that clock does not show its transfer. A server that has stopped
 * or lags behind may not know a blockhash because it is too new, but then its clock is not past the signature either. This machine's
 * clock proves nothing.
 *
 * The clock is read at `finalized`, too, because the history must reach its slot. No RPC server has finalized its newest confirmed
 * slot, so none could show a finalized history as far as a clock read at `confirmed`.
 * @throws if a read of the chain fails
 */
export async function fateOf(
  chain: FateChain,
  payment: Pick<PendingPayment, 'id' | 'transaction' | 'blockhash' | 'signedAt' | 'signedOnChain'>,
  now: number,
  signal: AbortSignal,
  known: KnownTransfers = new Map(),
): Promise<Fate> {
  const lives = await chain.blockhashLives(payment.blockhash, signal, 'finalized');
  const { slot: newest } = await chain.latestBlockhash('confirmed', signal);
  const after = payment.signedOnChain?.slot ?? slotBefore(newest, now - payment.signedAt);
  const row = { id: payment.id, evidence: payment.transaction, after };
  const confirmed = { finality: 'confirmed', maxReads: MAX_READS } as const;
  const seen = await findTransfer(chain, row, confirmed, signal, known);
  if (seen.kind === 'found' && !seen.failed) return { kind: 'landed', signature: seen.signature };
  if (lives) return { kind: 'open', why: 'its transaction can still be settled for about a minute' };
  const { slot, time } = await readChainClock(chain, 'finalized', signal);
  if (time <= signedBy(payment) + YOUNG_MS)
    return {
      kind: 'open',
      why: 'the RPC server does not show yet that its transaction can no longer be settled',
    };
  const finalized = { finality: 'finalized', minContextSlot: slot, maxReads: MAX_READS } as const;
  const proof = await findTransfer(chain, row, finalized, signal, known);
  if (proof.kind === 'absent' || (proof.kind === 'found' && proof.failed)) return { kind: 'dead' };
  return { kind: 'open', why: 'the chain does not show the outcome of its transaction yet' };
}

/**
 * The latest time at which a payment can have been signed. The chain's clock may differ from this machine's, and a lagging RPC server
 * reports one that is too early, so the later of the two counts. This can only delay the proof.
 */
function signedBy({ signedAt, signedOnChain }: Pick<PendingPayment, 'signedAt' | 'signedOnChain'>): number {
  return Math.max(signedAt, signedOnChain?.time ?? 0);
}

/** A slot that is earlier than the signing of a payment of this age. */
function slotBefore(newest: number, ageMs: number): number {
  const seconds = Math.max(0, ageMs) / 1_000 + SLACK_SECONDS;
  return Math.max(0, newest - Math.ceil(seconds * SLOTS_PER_SECOND));
}
