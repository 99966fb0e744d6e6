import type {
  Account,
  LandedTransaction,
  LatestBlockhash,
  SignatureEntry,
  SignatureStatus,
  Simulation,
  TokenChange,
} from './rpc-types.js';
import { readAddress } from './address.js';
import { badAnswer } from './rpc-failures.js';

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** Whether a value can be a slot or a height. */
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

export function readCount(result: unknown): number {
  if (!isCount(result)) throw badAnswer('unreadable number');
  return result;
}

export function readHash(result: unknown): string {
  // A blockhash has the same encoding as an address.
  if (typeof result !== 'string' || !readAddress(result)) throw badAnswer('unreadable hash');
  return result;
}

/** Reads a result together with its slot. */
function readInContext(result: unknown): { slot: number; value: Record<string, unknown> | null } {
  if (!isRecord(result) || !isRecord(result.context)) throw badAnswer('unreadable result');
  const { slot } = result.context;
  const { value } = result;
  if (!isCount(slot) || !(isRecord(value) || value === null)) throw badAnswer('unreadable result');
  return { slot, value };
}

export function readLatestBlockhash(result: unknown): LatestBlockhash {
  const { slot, value } = readInContext(result);
  return {
    blockhash: readHash(value?.blockhash),
    lastValidBlockHeight: readCount(value?.lastValidBlockHeight),
    slot,
  };
}

export function readHistory(result: unknown): SignatureEntry[] {
  if (!Array.isArray(result)) throw badAnswer('unreadable history');
  return result.map((entry: unknown) => {
    if (!isRecord(entry) || typeof entry.signature !== 'string' || !('err' in entry))
      throw badAnswer('unreadable history');
    const { signature, slot, err, blockTime = null } = entry;
    if (blockTime !== null && typeof blockTime !== 'number') throw badAnswer('unreadable history');
    return { signature, slot: readCount(slot), failed: err !== null, blockTime };
  });
}

/** A value together with its slot, for values that are not objects. */
export function readValue(result: unknown): unknown {
  if (!isRecord(result) || !('value' in result)) throw badAnswer('unreadable result');
  return result.value;
}

/** One status per signature that was asked for; null where the server knows none. */
export function readStatuses(result: unknown, count: number): (SignatureStatus | null)[] {
  const value = readValue(result);
  if (!Array.isArray(value) || value.length !== count) throw badAnswer('unreadable statuses');
  return value.map((entry: unknown) => {
    if (entry === null) return null;
    if (!isRecord(entry) || !('err' in entry)) throw badAnswer('unreadable status');
    const { confirmationStatus: named } = entry;
    const finality = named === 'confirmed' || named === 'finalized' ? named : 'processed';
    return { finality, failed: entry.err !== null, slot: readCount(entry.slot) };
  });
}

export function readSimulation(result: unknown): Simulation {
  const { value } = readInContext(result);
  if (value === null || !('err' in value)) throw badAnswer('unreadable simulation');
  return { error: value.err === null ? null : JSON.stringify(value.err) };
}

/** Cuts the signatures (compact-u16 count, 64 bytes each) off a transaction. */
function messageOf(transaction: Buffer): Uint8Array {
  let count = 0;
  let at = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = transaction[at];
    if (byte === undefined || shift > 14) throw badAnswer('unreadable transaction');
    at += 1;
    count |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  const message = transaction.subarray(at + 64 * count);
  if (count === 0 || message.length === 0) throw badAnswer('unreadable transaction');
  return message;
}

export function readLanded(result: unknown): LandedTransaction | null {
  if (result === null) return null;
  if (!isRecord(result) || typeof result.slot !== 'number' || !isRecord(result.meta))
    throw badAnswer('unreadable transaction');
  const encoded: unknown = Array.isArray(result.transaction) ? result.transaction[0] : undefined;
  if (typeof encoded !== 'string' || !('err' in result.meta)) throw badAnswer('unreadable transaction');
  const transaction = Buffer.from(encoded, 'base64');
  return {
    slot: result.slot,
    failed: result.meta.err !== null,
    transaction,
    message: messageOf(transaction),
    blockTime: typeof result.blockTime === 'number' ? result.blockTime : null,
    tokens: readTokenChanges(result.meta),
  };
}

/** The balance of token accounts after the transaction minus the balance before. An account that is not listed had none. */
function readTokenChanges({
  preTokenBalances,
  postTokenBalances,
}: Record<string, unknown>): TokenChange[] | null {
  if (!Array.isArray(preTokenBalances) || !Array.isArray(postTokenBalances)) return null;
  return [
    ...postTokenBalances.map(entry => readTokenChange(entry, 1n)),
    ...preTokenBalances.map(entry => readTokenChange(entry, -1n)),
  ];
}

function readTokenChange(entry: unknown, sign: bigint): TokenChange {
  const { mint, owner, uiTokenAmount } = isRecord(entry) ? entry : {};
  const amount: unknown = isRecord(uiTokenAmount) ? uiTokenAmount.amount : undefined;
  if (
    typeof mint !== 'string' ||
    typeof owner !== 'string' ||
    typeof amount !== 'string' ||
    !/^\d{1,20}$/.test(amount)
  )
    throw badAnswer('unreadable token balance');
  return { mint, owner, change: sign * BigInt(amount) };
}

export function readAccount(result: unknown, bytes: number): Account | null {
  const { slot, value } = readInContext(result);
  if (value === null) return null;
  const { owner, lamports, executable, data } = value;
  const encoded: unknown = Array.isArray(data) && data[1] === 'base64' ? data[0] : undefined;
  // Lamports may exceed 2^53. They are not used for arithmetic.
  const isAccount =
    typeof owner === 'string' &&
    readAddress(owner) !== undefined &&
    typeof lamports === 'number' &&
    typeof executable === 'boolean' &&
    typeof encoded === 'string';
  if (!isAccount) throw badAnswer('unreadable account');
  return { owner, lamports, executable, data: Buffer.from(encoded, 'base64').subarray(0, bytes), slot };
}
