import { readAddress, toAddress } from './address.js';
import { readTransaction, signedPartOf } from './message.js';
import { badAnswer } from './rpc-failures.js';

/** The commitment of a read. `processed` is not used, because it can be rolled back. */
export type Finality = 'confirmed' | 'finalized';

/** An account as it was at `slot`. `data` holds its first bytes, at most as many as were requested. */
export type Account = { owner: string; lamports: number; executable: boolean; data: Buffer; slot: number };

/** A token account and what it holds, in atomic units. */
export type Holding = { address: string; amount: bigint };

export type LatestBlockhash = { blockhash: string; lastValidBlockHeight: number; slot: number };

/** One entry of an address's history. `failed`: the transaction had no effect except its fee. */
export type SignatureEntry = { signature: string; slot: number; failed: boolean; blockTime: number | null };

/** A landed transaction; `message` holds the signed bytes exactly as on chain. */
export type LandedTransaction = {
  slot: number;
  failed: boolean;
  transaction: Uint8Array;
  message: Uint8Array;
  /** Seconds since 1970; null if the server does not know. */
  blockTime: number | null;
  /** The change of each token account's balance, in atomic units; null if the server does not report it. */
  tokens: TokenChange[] | null;
  /** The accounts that the transaction created: they had no lamports before. Empty if the server does not report balances. */
  opened: string[];
};

/** `account`: the token account's address, empty if the server does not report it. `after`: the balance after the transaction. */
export type TokenChange = { account: string; mint: string; owner: string; change: bigint; after: bigint };

/** How far a transaction has come. `failed`: it had no effect except its fee. */
export type SignatureStatus = { finality: 'processed' | Finality; failed: boolean; slot: number };

/** `error`: why the transaction would fail, as the RPC server names it; null if it would succeed. */
export type Simulation = { error: string | null };

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

export function readFlag(result: unknown): boolean {
  const value = readValue(result);
  if (typeof value !== 'boolean') throw badAnswer('unreadable blockhash state');
  return value;
}

/** One status per requested signature; null where the server knows none. */
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
    message: signedPartOf(transaction),
    blockTime: typeof result.blockTime === 'number' ? result.blockTime : null,
    tokens: readTokenChanges(transaction, result.meta),
    opened: readOpened(transaction, result.meta),
  };
}

function readOpened(transaction: Buffer, meta: Record<string, unknown>): string[] {
  const { preBalances, postBalances } = meta;
  if (!Array.isArray(preBalances) || !Array.isArray(postBalances)) return [];
  return addressesOf(transaction, meta).filter(
    (key, index) => key !== '' && preBalances[index] === 0 && Number(postBalances[index]) > 0,
  );
}

/** The addresses of a transaction are those of its message, then those that it loads: writable, then read-only. */
function addressesOf(transaction: Buffer, { loadedAddresses }: Record<string, unknown>): string[] {
  const loaded = isRecord(loadedAddresses) ? [loadedAddresses.writable, loadedAddresses.readonly] : [];
  const named: unknown[] = loaded.flat();
  return [...ownAddressesOf(transaction), ...named.map(key => (typeof key === 'string' ? key : ''))];
}

function ownAddressesOf(transaction: Buffer): string[] {
  try {
    return readTransaction(transaction).keys.map(key => toAddress(Buffer.from(key, 'latin1')));
  } catch {
    return [];
  }
}

/** The balance of token accounts after the transaction minus the balance before. An account that is not listed had none. */
function readTokenChanges(transaction: Buffer, meta: Record<string, unknown>): TokenChange[] | null {
  const { preTokenBalances: before, postTokenBalances: after } = meta;
  if (!Array.isArray(before) || !Array.isArray(after)) return null;
  const addresses = addressesOf(transaction, meta);
  const changes = new Map<unknown, TokenChange>();
  for (const entry of after) {
    const { index, amount, ...whose } = readTokenBalance(entry);
    changes.set(index, { ...whose, account: addresses[index] ?? '', change: amount, after: amount });
  }
  for (const entry of before) {
    const { index, amount, ...whose } = readTokenBalance(entry);
    const known = changes.get(index);
    if (known?.owner === whose.owner && known.mint === whose.mint) known.change -= amount;
    // The account was closed or has another owner now.
    else
      changes.set(known ? `${index} before` : index, {
        ...{ ...whose, account: addresses[index] ?? '', change: -amount, after: 0n },
      });
  }
  return [...changes.values()];
}

function readTokenBalance(entry: unknown): { index: number; mint: string; owner: string; amount: bigint } {
  const { accountIndex, mint, owner, uiTokenAmount } = isRecord(entry) ? entry : {};
  const amount: unknown = isRecord(uiTokenAmount) ? uiTokenAmount.amount : undefined;
  if (
    !isCount(accountIndex) ||
    typeof mint !== 'string' ||
    typeof owner !== 'string' ||
    typeof amount !== 'string' ||
    !/^\d{1,20}$/.test(amount)
  )
    throw badAnswer('unreadable token balance');
  return { index: accountIndex, mint, owner, amount: BigInt(amount) };
}

export function readAccount(result: unknown, bytes: number): Account | null {
  const { slot, value } = readInContext(result);
  return value === null ? null : accountOf(value, slot, bytes);
}

/** The requested accounts, in the order of the request. */
export function readAccounts(
  result: unknown,
  count: number,
  bytes: number,
): { slot: number; accounts: (Account | null)[] } {
  const { slot, value } = readInContext(result);
  const listed: unknown = value;
  if (!Array.isArray(listed) || listed.length !== count) throw badAnswer('unreadable accounts');
  const accounts = listed.map((entry: unknown) => {
    if (entry === null) return null;
    if (!isRecord(entry)) throw badAnswer('unreadable account');
    return accountOf(entry, slot, bytes);
  });
  return { slot, accounts };
}

/** RPC servers return at most this many accounts. Any further ones are ignored. */
const MAX_HOLDINGS = 20;

export function readHoldings(result: unknown): Holding[] {
  const value = readValue(result);
  if (!Array.isArray(value)) throw badAnswer('unreadable holdings');
  return value.slice(0, MAX_HOLDINGS).map((entry: unknown) => {
    const { address, amount } = isRecord(entry) ? entry : {};
    const sound =
      typeof address === 'string' &&
      readAddress(address) !== undefined &&
      typeof amount === 'string' &&
      /^\d{1,20}$/.test(amount);
    if (!sound) throw badAnswer('unreadable holding');
    return { address, amount: BigInt(amount) };
  });
}

function accountOf(
  { owner, lamports, executable, data }: Record<string, unknown>,
  slot: number,
  bytes: number,
): Account {
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
