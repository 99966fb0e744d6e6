import { ASSOCIATED_TOKEN_PROGRAM, MEMO_PROGRAM, TOKEN_PROGRAM } from '../rails/solana/networks.js';
import { toAddress } from '../rails/solana/address.js';
import { readTransaction, type SolanaTransaction } from '../rails/solana/message.js';
import type { LandedTransaction, SignatureEntry } from '../rails/solana/rpc-results.js';
import { isExternalId } from '../methods/mpp/charge-challenge.js';
import type { Hints } from '../rails/rail.js';
import { feePayerOf, isSelfPaid, TransactionChecker } from '../rails/solana/transaction.js';

/** A transfer to a receiver of the ledger, as the chain shows it. Amount in atomic units, time in ms since 1970. */
export type TransferIn = {
  /** The id that its payment has, or would have. */
  id: string;
  transaction: string;
  slot: number;
  at: number | null;
  amount: bigint;
  /** The sender; null if the RPC server does not report it. */
  payer: string | null;
  /** The memo of its sender. */
  memo: string | null;
  /** The payment as buyers send it, base64. Null if no server can have accepted it, as for a transfer from a wallet program. */
  evidence: string | null;
};

const MAX_MEMO = 200;
const checker = new TransactionChecker();

/** @param amount the amount moved to the receiver */
export async function describeTransfer(
  { entry, landed, id }: { entry: SignatureEntry; landed: LandedTransaction; id: string },
  { asset, payTo }: { asset: string; payTo: string },
  amount: bigint,
): Promise<TransferIn> {
  const encoded = Buffer.from(landed.transaction).toString('base64');
  const memo = memoOf(landed.transaction);
  const check = await checker.check(encoded, { asset, payTo, amount }, formOf(encoded, memo));
  const payment = check.ok && check.checked.id === id ? check.checked : undefined;
  return {
    id,
    transaction: entry.signature,
    slot: landed.slot,
    at: landed.blockTime === null ? null : landed.blockTime * 1_000,
    amount,
    payer: payment?.payer ?? senderOf(landed, asset) ?? null,
    memo,
    evidence: payment?.evidence ?? null,
  };
}

/**
 * The hints with which to check a transaction; undefined if no server can have accepted it. If the payer paid
 * the fee, the transaction can only answer an MPP challenge. Otherwise its hint is the fee payer: x402 and
 * MPP require the same instructions, and MPP allows any order.
 */
function formOf(encoded: string, memo: string | null): Hints | undefined {
  if (!isSelfPaid(encoded)) return { feePayer: feePayerOf(encoded) };
  return isExternalId(memo ?? '') ? {} : undefined;
}

/** The owner whose accounts lost the most of a token. */
function senderOf({ tokens }: LandedTransaction, mint: string): string | undefined {
  const changes = new Map<string, bigint>();
  for (const { owner, change } of (tokens ?? []).filter(each => each.mint === mint))
    changes.set(owner, (changes.get(owner) ?? 0n) + change);
  const lost = [...changes].filter(([, change]) => change < 0n);
  return lost.sort(([, a], [, b]) => (a < b ? -1 : 1))[0]?.[0];
}

function memoOf(bytes: Uint8Array): string | null {
  const { instructions, keys } = readTransaction(Buffer.from(bytes));
  const memos = instructions.filter(({ program }) => nameOf(keys[program]) === MEMO_PROGRAM);
  const text = memos.map(({ data }) => data.toString('utf8')).join(' ');
  return text === '' ? null : text.slice(0, MAX_MEMO);
}

const nameOf = (key: string | undefined): string =>
  key === undefined ? '' : toAddress(Buffer.from(key, 'latin1'));

/**
 * @returns the amount that the top-level instructions of a transaction move into a token account (SPL Token: Transfer 3, MintTo 7,
 *   TransferChecked 12, MintToChecked 14), or undefined if another program may have moved tokens too
 */
export function incoming(bytes: Uint8Array, account: string): bigint | undefined {
  const transaction = readTransaction(Buffer.from(bytes));
  const keys = transaction.keys.map(nameOf);
  const index = keys.indexOf(account);
  if (index < 0) return undefined;
  let sum = 0n;
  for (const { program, accounts, data } of transaction.instructions) {
    if (!accounts.includes(index) || keys[program] === ASSOCIATED_TOKEN_PROGRAM) continue;
    if (keys[program] === TOKEN_PROGRAM) sum += tokenAmount(data, accounts, index);
    else if (isWritable(transaction, index)) return undefined;
  }
  return sum;
}

/** Signers come first. Among the signers, and among the other accounts, the writable ones come first. */
function isWritable(
  { signatures, readonlySigners, readonlyOthers, keys }: SolanaTransaction,
  index: number,
): boolean {
  return index < signatures ? index < signatures - readonlySigners : index < keys.length - readonlyOthers;
}

function tokenAmount(data: Buffer, accounts: Buffer, index: number): bigint {
  const [source, target] = data[0] === 12 ? [accounts[0], accounts[2]] : [accounts[0], accounts[1]];
  const moves = [3, 7, 12, 14].includes(data[0] ?? 0) && data.length >= 9;
  return moves && target === index && source !== index ? data.readBigUInt64LE(1) : 0n;
}
