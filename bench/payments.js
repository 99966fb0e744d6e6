import { createHash, sign } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import {
  createTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
  TOKEN_PROGRAM_ID,
} from '@solana/spl-token';
import {
  ComputeBudgetProgram,
  PublicKey,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { FEE_PAYER, keyOf, PAY_TO, PAYERS, signingKeyOf, USDC } from './terms.js';

/**
 * Correctly signed payments with the layout of the official client: compute limit, compute price, TransferChecked, memo. Payment `n` is signed by
 * payer `n % PAYERS` and is unique because of its memo. Signatures are made in advance, in worker threads, and stored in a file, because
 * signing is the slow part.
 */

const MEMO = new PublicKey('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');
const CACHE = fileURLToPath(new URL('.cache/', import.meta.url));
const SIGNATURE_BYTES = 64;
const NONCE_CHARACTERS = 32;
/** The offset of the payer's signature: after the signature count and the fee payer's empty signature. */
const PAYER_SIGNATURE_AT = 1 + SIGNATURE_BYTES;
const MESSAGE_AT = 1 + 2 * SIGNATURE_BYTES;

/** @param {number} payer @param {bigint} amount @returns {{ bytes: Buffer, nonceAt: number }} */
function templateOf(payer, amount) {
  const owner = keyOf(`payer ${payer}`).publicKey;
  const mint = new PublicKey(USDC);
  const from = getAssociatedTokenAddressSync(mint, owner);
  const to = getAssociatedTokenAddressSync(mint, new PublicKey(PAY_TO), true);
  const nonce = '-'.repeat(NONCE_CHARACTERS);
  const message = new TransactionMessage({
    payerKey: new PublicKey(FEE_PAYER),
    recentBlockhash: keyOf('blockhash').publicKey.toBase58(),
    instructions: [
      ComputeBudgetProgram.setComputeUnitLimit({ units: 20_000 }),
      ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 1n }),
      createTransferCheckedInstruction(from, mint, to, owner, amount, 6, [], TOKEN_PROGRAM_ID),
      new TransactionInstruction({ programId: MEMO, keys: [], data: Buffer.from(nonce) }),
    ],
  }).compileToV0Message();
  const bytes = Buffer.from(new VersionedTransaction(message).serialize());
  return { bytes, nonceAt: bytes.indexOf(nonce) };
}

/** Builds transactions without signatures. */
class Press {
  #templates;

  /** @param {bigint} amount atomic units */
  constructor(amount) {
    this.#templates = Array.from({ length: PAYERS }, (_, payer) => templateOf(payer, amount));
  }

  /** @param {number} number @returns {Buffer} the transaction with both signatures empty */
  unsigned(number) {
    const { bytes, nonceAt } = this.#templates[number % PAYERS];
    const copy = Buffer.from(bytes);
    const nonce = createHash('sha256').update(String(number)).digest('hex').slice(0, NONCE_CHARACTERS);
    copy.write(nonce, nonceAt, 'latin1');
    return copy;
  }
}

/** @param {bigint} amount @param {number} count */
function fileOf(amount, count) {
  const what = createHash('sha256').update(new Press(amount).unsigned(0)).digest('hex').slice(0, 12);
  return join(CACHE, `signatures-${what}-${PAYERS}-${amount}-${count}.bin`);
}

/** Signs payments 0 to `count` unless they are already in the file. @param {bigint} amount @param {number} count */
export async function prepareSignatures(amount, count) {
  const file = fileOf(amount, count);
  if (existsSync(file)) return;
  const workers = Math.max(1, availableParallelism());
  const share = Math.ceil(count / workers);
  const parts = await Promise.all(
    Array.from({ length: workers }, (_, index) => {
      const from = index * share;
      return signInWorker({ amount, from, to: Math.min(count, from + share) });
    }),
  );
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(`${file}.new`, Buffer.concat(parts));
  renameSync(`${file}.new`, file);
}

/** @param {{ amount: bigint, from: number, to: number }} part @returns {Promise<Buffer>} */
function signInWorker(part) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: part });
    worker.once('message', bytes => resolve(Buffer.from(bytes)));
    worker.once('error', reject);
  });
}

/** @param {{ amount: bigint, from: number, to: number }} part */
function signPart({ amount, from, to }) {
  const press = new Press(amount);
  const keys = Array.from({ length: PAYERS }, (_, payer) => signingKeyOf(`payer ${payer}`));
  const signatures = Buffer.alloc(SIGNATURE_BYTES * Math.max(0, to - from));
  for (let number = from; number < to; number++) {
    const signature = sign(null, press.unsigned(number).subarray(MESSAGE_AT), keys[number % PAYERS]);
    signature.copy(signatures, SIGNATURE_BYTES * (number - from));
  }
  return signatures;
}

/** Signed payments by number. */
export class Payments {
  #press;
  #signatures;

  /** @param {bigint} amount @param {number} count the number that was signed */
  constructor(amount, count) {
    this.#press = new Press(amount);
    this.#signatures = readFileSync(fileOf(amount, count));
  }

  /** @param {number} number @returns {string} base64 of the half-signed transaction */
  transaction(number) {
    const bytes = this.#press.unsigned(number);
    const at = SIGNATURE_BYTES * number;
    if (at >= this.#signatures.length) throw new Error(`payment ${number} was not signed in advance`);
    this.#signatures.copy(bytes, PAYER_SIGNATURE_AT, at, at + SIGNATURE_BYTES);
    return bytes.toString('base64');
  }
}

/**
 * The value of the header PAYMENT-SIGNATURE, which repeats the challenge, as the official v2 client writes it.
 * @param {{ resource: object, accepts: object[], extensions?: object }} challenge
 * @param {string} transaction base64
 */
export function paymentHeader({ resource, accepts: [accepted], extensions }, transaction) {
  const payload = { x402Version: 2, payload: { transaction }, extensions, resource, accepted };
  return Buffer.from(JSON.stringify(payload)).toString('base64');
}

if (!isMainThread && parentPort && workerData?.amount !== undefined)
  parentPort.postMessage(signPart(workerData));
