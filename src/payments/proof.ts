import { createHash } from 'node:crypto';
import { VersionedTransaction } from '@solana/web3.js';
import type { Payment as Row } from '../ledger/store.js';

export type Finality = 'confirmed' | 'finalized';

/** What must be read from the chain to prove anything about a payment. Methods reject when the chain can't be read. */
export type ChainHistory = {
  blockHeight(finality: Finality, signal: AbortSignal): Promise<number>;
  /** Newest first, older than the signature `before`. */
  signaturesFor(
    address: string,
    page: { finality: Finality; before?: string; limit?: number },
    signal: AbortSignal,
  ): Promise<{ signature: string; slot: number; failed: boolean }[]>;
  /** `message`: the bytes that the signatures cover. Null where the server doesn't have it. */
  transaction(
    signature: string,
    finality: Finality,
    signal: AbortSignal,
  ): Promise<{ slot: number; failed: boolean; message: Uint8Array } | null>;
};

/** `absent` only after a complete search; `unclear` where a listed transaction could not be read or there were too many. */
export type Finding =
  { kind: 'found'; signature: string; failed: boolean } | { kind: 'absent' } | { kind: 'unclear' };

const PAGE = 1_000;
const MAX_PAGES = 10;
const CONFIRM_DEADLINE_MS = 30_000;
const CONFIRM_POLL_MS = 400;
/** A payment whose claim is this many blocks old can't land any more: a blockhash lives 150. */
export const DEAD_AFTER_BLOCKS = 300;

/**
 * Looks for a payment on chain: pages the history of the payer's token account back to the slot of the claim and compares the
 * hash of the message bytes. A transaction is indexed by the fee payer's signature, so the payer's can't be looked up, and amounts
 * and names prove nothing. Only what landed after the claim's slot counts.
 */
export async function findPayment(
  chain: ChainHistory,
  row: Pick<Row, 'id' | 'transaction' | 'claimSlot'>,
  finality: Finality,
  signal: AbortSignal,
): Promise<Finding> {
  const account = sourceAccount(row.transaction);
  let complete = true;
  let before: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const listed = await chain.signaturesFor(
      account,
      { finality, limit: PAGE, ...(before ? { before } : {}) },
      signal,
    );
    for (const { signature, slot } of listed) {
      if (slot <= row.claimSlot) return complete ? { kind: 'absent' } : { kind: 'unclear' };
      const landed = await chain.transaction(signature, finality, signal);
      if (!landed) complete = false;
      else if (idOf(landed.message) === row.id) return { kind: 'found', signature, failed: landed.failed };
    }
    before = listed.at(-1)?.signature;
    if (listed.length < PAGE || before === undefined)
      return complete ? { kind: 'absent' } : { kind: 'unclear' };
  }
  return { kind: 'unclear' };
}

/**
 * Whether this signature is this payment's transfer, and took effect.
 * @returns undefined while the chain does not show it
 */
export async function isTransfer(
  chain: ChainHistory,
  id: string,
  signature: string,
  finality: Finality,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const landed = await chain.transaction(signature, finality, signal);
  return landed ? !landed.failed && idOf(landed.message) === id : undefined;
}

/** Whether no payment of this claim can land any more, by finalized block height and never by the clock. */
export async function isDead(
  chain: ChainHistory,
  row: Pick<Row, 'claimHeight'>,
  signal: AbortSignal,
): Promise<boolean> {
  return (await chain.blockHeight('finalized', signal)) > row.claimHeight + DEAD_AFTER_BLOCKS;
}

function idOf(message: Uint8Array): string {
  return createHash('sha256').update(message).digest('hex');
}

/** The token account that the third instruction, TransferChecked, takes the money from. */
function sourceAccount(base64: string): string {
  const { message } = VersionedTransaction.deserialize(Buffer.from(base64, 'base64'));
  const index = message.compiledInstructions[2]?.accountKeyIndexes[0];
  const key = index === undefined ? undefined : message.staticAccountKeys[index];
  if (!key) throw new Error('the stored transaction has no transfer');
  return key.toBase58();
}

/** No work that was paid up front begins, and no answer is released on a distrusted word, before we saw the transfer ourselves. */
export async function confirmTransfer(chain: ChainHistory, id: string, signature: string): Promise<boolean> {
  const signal = AbortSignal.timeout(CONFIRM_DEADLINE_MS);
  while (!signal.aborted) {
    const seen = await isTransfer(chain, id, signature, 'confirmed', signal).catch(() => undefined);
    if (seen !== undefined) return seen;
    await new Promise(resolve => setTimeout(resolve, CONFIRM_POLL_MS));
  }
  return false;
}
