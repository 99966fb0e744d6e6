import { ComputeBudgetProgram, PublicKey, VersionedTransaction, type VersionedMessage } from '../web3.js';
import { createHash, createPublicKey, verify } from 'node:crypto';
import { USDC_DECIMALS } from './price.js';

/** A payment whose transaction we checked ourselves: layout, mint, amount, receiver and the payer's signature. */
export type CheckedTransaction = {
  /** The payment's identity: hex sha256 of the message bytes that the payer's signature covers. Nothing else can vary it. */
  id: string;
  /** Base58 address whose money moves. */
  payer: string;
  /** Base58 token account that the money leaves. */
  source: string;
  feePayer: string;
  /** Base64 of the transaction as we pass it on: our own encoding, the fee payer's slot emptied. */
  transaction: string;
};

/** What a transfer must be to pay an offer. Amount in atomic units. */
export type Expected = { asset: string; payTo: string; amount: bigint };

export type TransactionCheck = { ok: true; checked: CheckedTransaction } | { ok: false; error: string };

const MAX_TRANSACTION_BYTES = 1232;
/** web3.js keeps the data of legacy instructions in base58, whose cost grows with its square. */
const MAX_LEGACY_BYTES = 700;
const SIGNATURE_BYTES = 64;
const COMPUTE_BUDGET = ComputeBudgetProgram.programId.toBase58();
/** Written out: @solana/spl-token takes longer to load than all else here, and the receiver's account is one derivation. */
export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const ASSOCIATED_TOKEN_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
const MEMO = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
const LIGHTHOUSE = 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95';
const SET_COMPUTE_UNIT_LIMIT = 2;
const SET_COMPUTE_UNIT_PRICE = 3;
const TRANSFER_CHECKED = 12;
const MAX_INSTRUCTIONS = 7;
const MAX_COMPUTE_UNITS = 1_400_000;
/** What the reference facilitator accepts (x402 scheme exact on SVM): 5 lamports per compute unit. */
const MAX_MICROLAMPORTS_PER_UNIT = 5_000_000n;

class Fault extends Error {}

/** Computes our token account once per receiver and mint. */
export class TransactionChecker {
  readonly #destinations = new Map<string, string>();

  /**
   * Checks a half-signed transaction against an offer without asking anybody (x402 scheme `exact` on SVM, and stricter: two
   * signers, no lookup tables, canonical bytes). Never throws; `error` names the fault.
   */
  check(base64: string, expected: Expected): TransactionCheck {
    try {
      return { ok: true, checked: this.#check(base64, expected) };
    } catch (error) {
      if (error instanceof Fault) return { ok: false, error: error.message };
      return { ok: false, error: 'transaction: can not be decoded' };
    }
  }

  #check(base64: string, expected: Expected): CheckedTransaction {
    const bytes = decodeBytes(base64);
    const transaction = decodeTransaction(bytes);
    const { message } = transaction;
    const messageBytes = bytes.subarray(1 + SIGNATURE_BYTES * transaction.signatures.length);
    const keys = keysOf(messageBytes, message.staticAccountKeys.length);
    checkSigners(transaction, keys);
    // Read once: a legacy message decodes it anew at every look.
    const instructions = message.compiledInstructions;
    checkLayout(instructions, keys);
    const { source, payer } = checkTransfer(instructions, keys, expected, this.#destination(expected));
    checkSignature(message.staticAccountKeys[1], messageBytes, transaction.signatures[1]);
    // The fee payer's signature is not the buyer's to give, and varying it does not vary the payment.
    bytes.fill(0, 1, 1 + SIGNATURE_BYTES);
    return {
      id: createHash('sha256').update(messageBytes).digest('hex'),
      payer,
      source,
      feePayer: String(keys[0]),
      transaction: bytes.toString('base64'),
    };
  }

  #destination({ asset, payTo }: Expected): string {
    const key = `${asset} ${payTo}`;
    let account = this.#destinations.get(key);
    if (account === undefined) {
      account = receiverAccount({ asset, payTo });
      this.#destinations.set(key, account);
    }
    return account;
  }
}

/** The fee payer of a transaction that was checked before. */
export function feePayerOf(base64: string): string {
  const { message } = VersionedTransaction.deserialize(Buffer.from(base64, 'base64'));
  return message.staticAccountKeys[0]?.toBase58() ?? '';
}

/** The USDC token account of a receiver: its associated token account under the Token program. */
export function receiverAccount({ asset, payTo }: { asset: string; payTo: string }): string {
  const seeds = [payTo, TOKEN_PROGRAM, asset].map(address => new PublicKey(address).toBuffer());
  const [account] = PublicKey.findProgramAddressSync(seeds, new PublicKey(ASSOCIATED_TOKEN_PROGRAM));
  return account.toBase58();
}

function decodeBytes(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length > MAX_TRANSACTION_BYTES) {
    throw new Fault(`transaction: larger than ${MAX_TRANSACTION_BYTES} bytes`);
  }
  if (bytes.length === 0 || bytes.toString('base64') !== base64) throw new Fault('transaction: not base64');
  return bytes;
}

function decodeTransaction(bytes: Buffer): VersionedTransaction {
  let transaction: VersionedTransaction;
  try {
    transaction = VersionedTransaction.deserialize(bytes);
  } catch {
    throw new Fault('transaction: can not be decoded as a Solana transaction');
  }
  if (transaction.version !== 'legacy' && transaction.version !== 0) {
    throw new Fault('transaction: must be of version 0 or legacy');
  }
  if (transaction.version === 'legacy' && bytes.length > MAX_LEGACY_BYTES) {
    throw new Fault(
      `transaction: of the legacy format and larger than ${MAX_LEGACY_BYTES} bytes, use version 0`,
    );
  }
  // Trailing bytes and non-canonical lengths would let one payment appear as many.
  let again: Uint8Array;
  try {
    again = transaction.serialize();
  } catch {
    throw new Fault('transaction: can not be decoded as a Solana transaction');
  }
  if (!bytes.equals(again)) throw new Fault('transaction: not in canonical encoding');
  return transaction;
}

const KEY_BYTES = 32;
const NAME_CACHE_SIZE = 8_192;
const names = new Map<string, string>();

/** Base58 of an account key. Programs, mint and receiver are in every payment: encoding all its keys cost as much as decoding it. */
function nameOf(key: Buffer): string {
  const bytes = key.toString('latin1');
  let name = names.get(bytes);
  if (name === undefined) {
    name = new PublicKey(key).toBase58();
    if (names.size >= NAME_CACHE_SIZE) names.clear();
    names.set(bytes, name);
  }
  return name;
}

/** The account keys of a canonical message: behind its version (unless legacy), three counts, and how many there are. */
function keysOf(message: Buffer, count: number): string[] {
  const versioned = ((message[0] ?? 0) & 0x80) !== 0;
  // More than 127 keys would take a second byte for their count, and more room than a transaction has.
  const first = versioned ? 5 : 4;
  return Array.from({ length: count }, (_, index) => {
    const at = first + KEY_BYTES * index;
    return nameOf(message.subarray(at, at + KEY_BYTES));
  });
}

function checkSigners({ message, signatures }: VersionedTransaction, keys: string[]): void {
  const { numRequiredSignatures } = message.header;
  if (numRequiredSignatures !== 2 || signatures.length !== 2) {
    throw new Fault(
      `transaction: needs ${numRequiredSignatures} signatures, must be 2: the fee payer's and yours`,
    );
  }
  if (new Set(keys).size !== keys.length) throw new Fault('transaction: names an account twice');
  if (message.addressTableLookups.length > 0)
    throw new Fault('transaction: address lookup tables are not accepted');
}

type Compiled = VersionedMessage['compiledInstructions'][number];

function programOf(instruction: Compiled, keys: string[]): string {
  return keys[instruction.programIdIndex] ?? '';
}

function checkLayout(instructions: Compiled[], keys: string[]): void {
  if (instructions.length < 3 || instructions.length > MAX_INSTRUCTIONS) {
    throw new Fault(
      `transaction: has ${instructions.length} instructions, must have 3 to ${MAX_INSTRUCTIONS}`,
    );
  }
  const [limit, price] = instructions;
  if (!limit || !isBudget(limit, keys, SET_COMPUTE_UNIT_LIMIT, 5)) {
    throw new Fault('transaction: the first instruction must set the compute unit limit');
  }
  if (!price || !isBudget(price, keys, SET_COMPUTE_UNIT_PRICE, 9)) {
    throw new Fault('transaction: the second instruction must set the compute unit price');
  }
  if (Buffer.from(limit.data).readUInt32LE(1) > MAX_COMPUTE_UNITS) {
    throw new Fault('transaction: the compute unit limit is too high');
  }
  if (Buffer.from(price.data).readBigUInt64LE(1) > MAX_MICROLAMPORTS_PER_UNIT) {
    throw new Fault('transaction: the compute unit price is too high');
  }
  for (const instruction of instructions.slice(3)) {
    const program = programOf(instruction, keys);
    if (program !== MEMO && program !== LIGHTHOUSE) {
      throw new Fault(
        `transaction: instruction of program ${program} is not accepted, only Memo and Lighthouse are`,
      );
    }
  }
  if (instructions.some(instruction => instruction.accountKeyIndexes.includes(0))) {
    throw new Fault('transaction: the fee payer must not appear in any instruction');
  }
}

function isBudget(instruction: Compiled, keys: string[], type: number, length: number): boolean {
  const { data } = instruction;
  return programOf(instruction, keys) === COMPUTE_BUDGET && data[0] === type && data.length === length;
}

function checkTransfer(
  instructions: Compiled[],
  keys: string[],
  expected: Expected,
  ourAccount: string,
): { source: string; payer: string } {
  const instruction = instructions[2];
  const isTransfer =
    instruction &&
    programOf(instruction, keys) === TOKEN_PROGRAM &&
    instruction.data[0] === TRANSFER_CHECKED &&
    instruction.data.length === 10;
  if (!isTransfer)
    throw new Fault('transaction: the third instruction must be TransferChecked of the Token program');
  const [source, mint, destination, authority, more] = instruction.accountKeyIndexes.map(
    index => keys[index],
  );
  if (!source || !authority || more !== undefined) {
    throw new Fault(
      'transaction: TransferChecked must name source, mint, destination and a single authority',
    );
  }
  const data = Buffer.from(instruction.data);
  const amount = data.readBigUInt64LE(1);
  if (mint !== expected.asset)
    throw new Fault(`transaction: pays in mint ${mint}, must be USDC ${expected.asset}`);
  if (data[9] !== USDC_DECIMALS)
    throw new Fault(`transaction: decimals are ${data[9]}, must be ${USDC_DECIMALS}`);
  if (destination !== ourAccount) {
    throw new Fault(
      `transaction: pays to token account ${destination}, must be ${ourAccount} of ${expected.payTo}`,
    );
  }
  if (source === destination) throw new Fault('transaction: pays from the account that it pays to');
  if (amount !== expected.amount)
    throw new Fault(`transaction: pays ${amount}, must be exactly ${expected.amount}`);
  if (authority !== keys[1]) throw new Fault('transaction: the second signer must be the owner of the money');
  return { source, payer: authority };
}

const KEY_CACHE_SIZE = 4096;
const publicKeys = new Map<string, ReturnType<typeof createPublicKey>>();

/** One check with node:crypto costs a tenth of what the JavaScript implementations take. */
function checkSignature(
  signer: PublicKey | undefined,
  message: Buffer,
  signature: Uint8Array | undefined,
): void {
  const valid = signer && signature && verify(null, message, publicKeyOf(signer), signature);
  if (!valid) throw new Fault('transaction: your signature is missing or does not match');
}

function publicKeyOf(signer: PublicKey): ReturnType<typeof createPublicKey> {
  const x = Buffer.from(signer.toBytes()).toString('base64url');
  let key = publicKeys.get(x);
  if (!key) {
    key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    if (publicKeys.size >= KEY_CACHE_SIZE) publicKeys.clear();
    publicKeys.set(x, key);
  }
  return key;
}
