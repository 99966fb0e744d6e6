import { LRUCache } from 'lru-cache';
import { createPublicKey, hash, verify, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { toDecimal, USDC } from '../../price/amount.js';
import type { Check, Checked, Hints } from '../rail.js';
import { keyOf, programAddress, toAddress } from './address.js';
import { feeFault, SIGNATURES, usesFeePayer, type TransactionForm } from './fee-limits.js';
import {
  isSane,
  MessageFault,
  readTransaction,
  type Instruction,
  type Key,
  type SolanaTransaction,
} from './message.js';
import { smartWalletFault } from './smart-wallets.js';
import { ASSOCIATED_TOKEN_PROGRAM, LIGHTHOUSE_PROGRAM, MEMO_PROGRAM, TOKEN_PROGRAM } from './networks.js';

/**
 * A transaction that passed the local check of layout, mint, amount, receiver and payer's signature. Its id is the hex sha256 of the message
 * bytes that the payer's signature covers. Its evidence is the base64 of the transaction as it is sent to the facilitator, in our own
 * encoding, with an empty fee payer signature unless the payer pays the fee.
 */
export type CheckedTransaction = Checked & {
  readonly feePayer: string;
  /** The transaction's blockhash, as a key. */
  readonly blockhash: Key;
  /** Whether a memo distinguishes the payment from others with the same payer, price and blockhash. */
  readonly hasNonce: boolean;
  /** Whether the payment was checked against the challenge that it answers, including its fee payer. */
  readonly answers: boolean;
  /** Whether the payer also pays the fee; the transaction is then fully signed. */
  readonly selfPaid: boolean;
};

/** The transfer that pays an offer. Amount in atomic units. */
export type Expected = { asset: string; payTo: string; amount: bigint };

const MAX_TRANSACTION_BYTES = 1232;
const SIGNATURE_BYTES = 64;
/** An address or blockhash as a key. */
export const bytesOf = (address: string): Key => keyOf(address).toString('latin1');
const TOKEN = bytesOf(TOKEN_PROGRAM);
const MEMO = bytesOf(MEMO_PROGRAM);
const LIGHTHOUSE = bytesOf(LIGHTHOUSE_PROGRAM);
const TRANSFER_CHECKED = 12;
const MAX_INSTRUCTIONS = 7;

/** The accounts that an offer's transfer must name. */
type Accounts = { mint: Key; destination: Key };

/** Checks transactions. Caches the token account of each receiver and mint. */
export class TransactionChecker {
  readonly #accounts = new Map<string, Accounts>();

  /**
   * Checks a half-signed transaction against an offer locally (x402 scheme `exact` on SVM, but stricter: two signers, no lookup
   * tables, canonical bytes). Never rejects; `error` names the fault.
   * @param challenge the values in the challenge that it answers, if known (MPP): `memo`, which must then be the only one, and `feePayer`;
   * without a fee payer, the payer pays the fee
   */
  async check(base64: string, expected: Expected, challenge?: Hints): Promise<Check<CheckedTransaction>> {
    try {
      return await this.#check(base64, expected, challenge);
    } catch (error) {
      if (error instanceof MessageFault) return { ok: false, error: `transaction: ${error.message}` };
      return { ok: false, error: 'transaction: cannot be decoded' };
    }
  }

  async #check(base64: string, expected: Expected, challenge?: Hints): Promise<Check<CheckedTransaction>> {
    const bytes = decodeBytes(base64);
    const transaction = readTransaction(bytes);
    const ofSmartWallet = smartWalletFault(transaction);
    if (ofSmartWallet !== undefined) throw new MessageFault(ofSmartWallet);
    const selfPaid = challenge !== undefined && challenge['feePayer'] === undefined;
    checkLayout(transaction, { signatures: selfPaid ? 1 : SIGNATURES, anyOrder: challenge !== undefined });
    const { payer, mismatch } = checkTransfer(transaction, expected, this.#accountsOf(expected));
    const [start, end] = selfPaid ? [0, 1] : [1, 2];
    const signature = bytes.subarray(1 + start * SIGNATURE_BYTES, 1 + end * SIGNATURE_BYTES);
    await checkSignature(payer, transaction.message, signature);
    if (!isSane(transaction)) {
      throw new MessageFault('its header or an instruction refers to accounts that it does not list');
    }
    // The buyer does not supply the fee payer's signature, and its value does not change the payment's id.
    if (!selfPaid) bytes.fill(0, 1, 1 + SIGNATURE_BYTES);
    const checked = {
      id: hash('sha256', transaction.message),
      payer: nameOf(payer),
      feePayer: nameOf(transaction.keys[0]),
      evidence: bytes.toString('base64'),
      blockhash: transaction.blockhash,
      hasNonce: hasMemo(transaction),
      answers: challenge !== undefined,
      selfPaid,
    };
    const error = mismatch ?? (challenge && unlike(challenge, transaction));
    return error === undefined ? { ok: true, checked } : { ok: false, error, checked };
  }

  #accountsOf({ asset, payTo }: Expected): Accounts {
    const name = `${asset} ${payTo}`;
    let accounts = this.#accounts.get(name);
    if (accounts === undefined) {
      accounts = { mint: bytesOf(asset), destination: bytesOf(receiverAccount({ asset, payTo })) };
      this.#accounts.set(name, accounts);
    }
    return accounts;
  }
}

/** The id of the payment of a transaction. */
export function idOf(base64: string): string {
  return hash('sha256', readTransaction(Buffer.from(base64, 'base64')).message);
}

/** The fee payer of a transaction that has passed the check. */
export function feePayerOf(base64: string): string {
  return nameOf(readTransaction(Buffer.from(base64, 'base64')).keys[0]);
}

/** Whether the payer of a transaction that has passed the check also pays the fee. */
export function isSelfPaid(base64: string): boolean {
  return readTransaction(Buffer.from(base64, 'base64')).signatures === 1;
}

/** The source account of the third instruction, TransferChecked, of a transaction that has passed the check. */
export function sourceAccountOf(base64: string): string {
  return transferAccount(base64, 0);
}

/** The token account that receives the transfer of a transaction that has passed the check. */
export function destinationAccountOf(base64: string): string {
  return transferAccount(base64, 2);
}

function transferAccount(base64: string, position: number): string {
  const { instructions, keys } = readTransaction(Buffer.from(base64, 'base64'));
  const account = instructions[2] && accountOf(instructions[2], position, keys);
  if (account === undefined) throw new Error('the stored transaction has no transfer');
  return nameOf(account);
}

/** The USDC token account of a receiver: its associated token account under the Token program. */
export function receiverAccount({ asset, payTo }: { asset: string; payTo: string }): string {
  const seeds = [payTo, TOKEN_PROGRAM, asset].map(keyOf);
  return toAddress(programAddress(seeds, keyOf(ASSOCIATED_TOKEN_PROGRAM)));
}

function decodeBytes(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length > MAX_TRANSACTION_BYTES) {
    throw new MessageFault(`larger than ${MAX_TRANSACTION_BYTES} bytes`);
  }
  if (bytes.length === 0 || bytes.toString('base64') !== base64) throw new MessageFault('not base64');
  return bytes;
}

const NAME_CACHE_SIZE = 8_192;
const names = new LRUCache<Key, string>({ max: NAME_CACHE_SIZE });

/** Base58 of a key; `''` if there is none. Cached, because encoding costs as much as reading the transaction and payers come back. */
export function nameOf(key: Key | undefined): string {
  if (key === undefined) return '';
  let name = names.get(key);
  if (name === undefined) {
    name = toAddress(Buffer.from(key, 'latin1'));
    names.set(key, name);
  }
  return name;
}

function accountOf({ accounts }: Instruction, position: number, keys: Key[]): Key | undefined {
  const index = accounts[position];
  return index === undefined ? undefined : keys[index];
}

function checkLayout(transaction: SolanaTransaction, form: TransactionForm): void {
  const { instructions, keys } = transaction;
  if (instructions.length < 3 || instructions.length > MAX_INSTRUCTIONS) {
    throw new MessageFault(`has ${instructions.length} instructions; it must have 3 to ${MAX_INSTRUCTIONS}`);
  }
  const fault = feeFault(transaction, form);
  if (fault) throw new MessageFault(fault.message);
  if (new Set(keys).size !== keys.length) throw new MessageFault('names an account twice');
  for (const { program } of instructions.slice(3)) {
    if (keys[program] !== MEMO && keys[program] !== LIGHTHOUSE) {
      throw new MessageFault(
        `instruction of program ${nameOf(keys[program])} is not accepted; only Memo and Lighthouse are`,
      );
    }
  }
  if (form.signatures > 1 && usesFeePayer(transaction)) {
    throw new MessageFault('the fee payer must not appear in any instruction');
  }
}

/** How a transaction differs from the values in its challenge; undefined if it does not. */
function unlike({ feePayer, memo }: Hints, { instructions, keys }: SolanaTransaction): string | undefined {
  if (feePayer !== undefined && nameOf(keys[0]) !== feePayer)
    return `transaction: its fee payer is ${nameOf(keys[0])}, but must be ${feePayer}, as in the challenge`;
  const memos = instructions.filter(({ program }) => keys[program] === MEMO);
  if (memo !== undefined && (memos.length !== 1 || memos[0]?.data.toString('utf8') !== memo))
    return 'transaction: its memo must be the externalId of the challenge, and the only one';
  return undefined;
}

function hasMemo({ instructions, keys }: SolanaTransaction): boolean {
  return instructions.some(({ program, data }) => keys[program] === MEMO && data.length > 0);
}

function checkTransfer(
  { instructions, keys, signatures }: SolanaTransaction,
  expected: Expected,
  ours: Accounts,
): { payer: Key; mismatch: string | undefined } {
  const instruction = instructions[2];
  const isTransfer =
    instruction &&
    keys[instruction.program] === TOKEN &&
    instruction.data[0] === TRANSFER_CHECKED &&
    instruction.data.length === 10;
  if (!isTransfer)
    throw new MessageFault('the third instruction must be TransferChecked of the Token program');
  const source = accountOf(instruction, 0, keys);
  const authority = accountOf(instruction, 3, keys);
  if (source === undefined || authority === undefined || instruction.accounts.length !== 4) {
    throw new MessageFault('TransferChecked must name source, mint, destination and a single authority');
  }
  const { data } = instruction;
  const mint = accountOf(instruction, 1, keys);
  const destination = accountOf(instruction, 2, keys);
  if (data[9] !== USDC.decimals)
    throw new MessageFault(`decimals are ${data[9]}, but must be ${USDC.decimals}`);
  if (source === destination) throw new MessageFault('source and destination are the same account');
  if (authority !== keys[signatures - 1])
    throw new MessageFault('the second signer must be the owner of the money');
  const amount = data.readBigUInt64LE(1);
  return { payer: authority, mismatch: mismatchOf({ mint, destination, amount }, expected, ours) };
}

/** Why a transfer does not pay an offer; undefined if it does. */
function mismatchOf(
  transfer: { mint: Key | undefined; destination: Key | undefined; amount: bigint },
  expected: Expected,
  ours: Accounts,
): string | undefined {
  const { mint, destination, amount } = transfer;
  if (mint !== ours.mint)
    return `transaction: pays in mint ${nameOf(mint)} instead of USDC ${expected.asset}`;
  if (destination !== ours.destination)
    return `transaction: pays to token account ${nameOf(destination)} instead of ${nameOf(ours.destination)} of ${expected.payTo}`;
  if (amount !== expected.amount) {
    return `transaction: pays ${toDecimal(amount)} USDC, must be exactly ${toDecimal(expected.amount)} USDC`;
  }
  return undefined;
}

const KEY_CACHE_SIZE = 4096;
const publicKeys = new LRUCache<Key, KeyObject>({ max: KEY_CACHE_SIZE });

const verifyInThread = promisify<null, Buffer, KeyObject, Buffer, boolean>(verify);

/** Uses node:crypto, which takes a tenth of the time of the JavaScript implementations, in one of Node's own threads. */
async function checkSignature(signer: Key, message: Buffer, signature: Buffer): Promise<void> {
  if (!(await verifyInThread(null, message, publicKeyOf(signer), signature))) {
    throw new MessageFault('your signature is missing or does not match');
  }
}

function publicKeyOf(signer: Key): KeyObject {
  let key = publicKeys.get(signer);
  if (!key) {
    const x = Buffer.from(signer, 'latin1').toString('base64url');
    key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    publicKeys.set(signer, key);
  }
  return key;
}
