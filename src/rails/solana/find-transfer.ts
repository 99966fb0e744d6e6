import { base58 } from '@scure/base';
import { setTimeout as sleep } from 'node:timers/promises';
import { BLOCKHASH_LIFE_BLOCKS, EXPIRED_AFTER_BLOCKS } from './blocks.js';
import { growingCache } from '../../net/growing-cache.js';
import { hash } from 'node:crypto';
import type { Named } from '../rail.js';
import type { Payment as Row } from '../../ledger/store.js';
import type { Finality, LandedTransaction, LatestBlockhash, SignatureEntry } from './rpc-results.js';
import { sourceAccountOf } from './transaction.js';

/** The reads that prove a payment's fate. Methods reject if the chain can't be read. */
export type ChainHistory = {
  /** `lastValidBlockHeight`: 150 above the height of the block at `slot`. */
  latestBlockhash(finality: Finality, signal: AbortSignal): Promise<Omit<LatestBlockhash, 'blockhash'>>;
  /** Newest first, older than the signature `before`. Rejects if the RPC server has not reached `minContextSlot`. */
  signaturesFor(
    address: string,
    page: { finality: Finality; before?: string; limit?: number; minContextSlot?: number },
    signal: AbortSignal,
  ): Promise<Omit<SignatureEntry, 'blockTime'>[]>;
  /** Null if the RPC server does not have the transaction. */
  transaction(
    signature: string,
    finality: Finality,
    signal: AbortSignal,
  ): Promise<Pick<LandedTransaction, 'slot' | 'failed' | 'message'> | null>;
};

/** `absent`: the search was complete. `unclear`: a listed transaction could not be read, or there were too many to read now. */
export type SearchResult =
  { kind: 'found'; signature: string; failed: boolean } | { kind: 'absent' } | { kind: 'unclear' };

/** The fields of a payment by which its transfer is recognised. `after`: only a transfer in a later slot counts. */
export type TransferOf = Pick<Row, 'id' | 'after'>;

/** `maxReads`: how many transactions that are not in `known` may be read. */
export type SearchOptions = { finality: Finality; minContextSlot?: number; maxReads?: number };

const PAGE = 1_000;
const MAX_PAGES = 10;
const MAX_KNOWN = 50_000;
const CONFIRM_DEADLINE_MS = 30_000;
const CONFIRM_POLL_MS = 400;
const DENIED_AFTER_MS = 1_000;
const DENIED_DEADLINE_MS = 5_000;

/**
 * A bounded cache that maps landed signatures to their payments, so that a search after a timeout, or for the next payment of the same
 * payer, does not fetch the same transactions again. A signature always belongs to the same message.
 */
export type KnownTransfers = {
  get(signature: string): string | undefined;
  set(signature: string, id: string): unknown;
};

export function knownTransfers(): KnownTransfers {
  return growingCache(MAX_KNOWN);
}

/**
 * Looks for a payment on chain: pages the history of the payer's token account back to the slot of the claim and compares the
 * hash of the message bytes. A transaction is indexed by the fee payer's signature, so the payer's can't be looked up, and amounts
 * and addresses prove nothing. Only transactions that landed after the claim's slot count.
 */
export async function findTransfer(
  chain: ChainHistory,
  row: TransferOf & Pick<Row, 'evidence'>,
  { finality, minContextSlot, maxReads = PAGE * MAX_PAGES }: SearchOptions,
  signal: AbortSignal,
  known: KnownTransfers = new Map(),
): Promise<SearchResult> {
  const account = sourceAccountOf(row.evidence);
  const least = minContextSlot === undefined ? {} : { minContextSlot };
  let complete = true;
  const reads = { left: maxReads };
  let last: string | undefined;
  let before: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const of = { finality, limit: PAGE, ...least, ...(before ? { before } : {}) };
    const listed = await chain.signaturesFor(account, of, signal);
    // A page begins with the last entry of the page before. An RPC server that does not know that entry returns nothing.
    if (last !== undefined && listed[0]?.signature !== last) return { kind: 'unclear' };
    for (const entry of last === undefined ? listed : listed.slice(1)) {
      if (entry.slot <= row.after) return searched(complete);
      const id = await idAt(chain, entry.signature, finality, signal, known, reads);
      if (id === row.id) return { kind: 'found', signature: entry.signature, failed: entry.failed };
      complete &&= id !== undefined;
    }
    if (listed.length < PAGE) return searched(complete);
    [before, last] = listed.slice(-2).map(({ signature }) => signature);
  }
  return { kind: 'unclear' };
}

/**
 * Whether this signature is this payment's transfer, and whether it took effect after the claim.
 * @returns undefined while the chain does not show the transaction
 */
export async function isTransfer(
  chain: ChainHistory,
  row: TransferOf,
  signature: string,
  finality: Finality,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  if (signature === '') return undefined;
  const landed = await chain.transaction(signature, finality, signal);
  return landed ? !landed.failed && landed.slot > row.after && idOf(landed.message) === row.id : undefined;
}

/** The slot in which a payment's transfer with this signature landed; undefined if the chain does not show it. */
export async function landedTransfer(
  chain: Pick<ChainHistory, 'transaction'>,
  { id, signature }: { id: string; signature: string },
  signal: AbortSignal,
): Promise<{ slot: number; failed: boolean } | undefined> {
  const landed = await chain.transaction(signature, 'confirmed', signal);
  return landed && idOf(landed.message) === id ? landed : undefined;
}

/** The confirmed transaction with this signature, encoded with only one signature: that of its fee payer, the buyer. */
export async function findSelfPaid(
  chain: Pick<ChainHistory, 'transaction'>,
  signature: string,
  signal: AbortSignal,
): Promise<Named> {
  const landed = await chain.transaction(signature, 'confirmed', signal);
  if (!landed) return { kind: 'not-seen' };
  if (landed.failed) return { kind: 'failed' };
  const bytes = Buffer.concat([Buffer.of(1), base58.decode(signature), landed.message]);
  return { kind: 'found', evidence: bytes.toString('base64') };
}

/** The height of the block to which a blockhash belongs. */
export function heightOf({ lastValidBlockHeight }: { lastValidBlockHeight: number }): number {
  return lastValidBlockHeight - BLOCKHASH_LIFE_BLOCKS;
}

/**
 * Whether the payment of this claim can no longer land, judged by the finalized block height and never by the clock.
 * @param moreBlocks additional blocks to wait
 * @returns the finalized slot at which that held; only a server that has reached this slot can prove absence
 */
export async function expiredSince(
  chain: ChainHistory,
  row: Pick<Row, 'position'>,
  signal: AbortSignal,
  moreBlocks = 0,
): Promise<number | undefined> {
  const latest = await chain.latestBlockhash('finalized', signal);
  const { slot } = latest;
  return heightOf(latest) > row.position + EXPIRED_AFTER_BLOCKS + moreBlocks ? slot : undefined;
}

/**
 * Waits until the chain shows the transfer. Required before upfront work starts, and before an answer is released on the report of
 * a distrusted facilitator.
 * @returns false if the transfer is not this payment's, failed, or was not seen in time
 */
export async function confirmTransfer(
  chain: ChainHistory,
  row: TransferOf,
  signature: string,
  { deadlineMs = CONFIRM_DEADLINE_MS, pollMs = CONFIRM_POLL_MS } = {},
): Promise<boolean> {
  const signal = AbortSignal.timeout(deadlineMs);
  while (!signal.aborted) {
    const seen = await isTransfer(chain, row, signature, 'confirmed', signal).catch(() => undefined);
    if (seen !== undefined) return seen;
    await sleep(pollMs);
  }
  return false;
}

/**
 * Looks once for a transfer that a facilitator denies, after waiting as long as RPC servers may lag behind each other. @param
 * minContextSlot answers from servers that have not reached this slot do not count
 */
export async function findDenied(
  chain: ChainHistory,
  row: TransferOf & Pick<Row, 'evidence'>,
  minContextSlot: number,
  { afterMs = DENIED_AFTER_MS, deadlineMs = DENIED_DEADLINE_MS } = {},
): Promise<SearchResult> {
  await sleep(afterMs);
  const how = { finality: 'confirmed' as const, minContextSlot };
  return findTransfer(chain, row, how, AbortSignal.timeout(deadlineMs));
}

function searched(complete: boolean): SearchResult {
  return { kind: complete ? 'absent' : 'unclear' };
}

async function idAt(
  chain: ChainHistory,
  signature: string,
  finality: Finality,
  signal: AbortSignal,
  known: KnownTransfers,
  reads: { left: number },
): Promise<string | undefined> {
  const before = known.get(signature);
  if (before !== undefined) return before;
  if (reads.left <= 0) return undefined;
  reads.left -= 1;
  const landed = await chain.transaction(signature, finality, signal);
  if (!landed) return undefined;
  const id = idOf(landed.message);
  known.set(signature, id);
  return id;
}

function idOf(message: Uint8Array): string {
  return hash('sha256', message);
}
