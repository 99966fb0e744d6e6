import { base58 } from '@scure/base';
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { toAddress } from './address.js';
import { readTransaction } from './message.js';

const SEED_BYTES = 32;
const PAIR_BYTES = 64;
const SIGNATURE_BYTES = 64;

/** A key pair that signs transactions. */
export type KeyPair = {
  readonly address: string;
  /** Signs a transaction (base64), in the slot for this key. @throws Error if the transaction has no such slot */
  sign(transaction: string): string;
  /**
   * Signs a transaction (base64) as its fee payer.
   * @returns the transaction with the signature in its first slot (base64), and the signature (base58)
   */
  signAsFeePayer(transaction: string): { transaction: string; signature: string };
};

/** The text or the file is not a key pair. The message says what is wrong without quoting the contents. */
export class KeyPairFault extends Error {}

/**
 * Reads a key pair from a file that only its owner can read.
 * @throws KeyPairFault
 */
export function readKeyPairFile(file: string): KeyPair {
  return readKeyPair(readOwnFile(file));
}

/**
 * The 64 bytes of a key pair, seed and public key, from a file that only its owner can read.
 * @throws KeyPairFault
 */
export function readSecretKeyFile(file: string): Uint8Array {
  const text = readOwnFile(file);
  readKeyPair(text);
  return readBytes(text);
}

function readOwnFile(file: string): string {
  let fd: number | undefined;
  try {
    fd = openSync(file, 'r');
    const mode = fstatSync(fd).mode & 0o777;
    if ((mode & 0o077) !== 0)
      throw new KeyPairFault(
        `others can read or change it (mode ${mode.toString(8)}): run chmod 600 ${file}`,
      );
    return readFileSync(fd, 'utf8');
  } catch (error) {
    if (error instanceof KeyPairFault) throw error;
    throw new KeyPairFault(`it cannot be read (${String((error as NodeJS.ErrnoException).code ?? error)})`);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/**
 * Reads a key pair as the Solana CLI writes it: a JSON list of 64 numbers, seed and public key.
 * @throws KeyPairFault
 */
export function readKeyPair(text: string): KeyPair {
  const bytes = readBytes(text);
  const d = bytes.toString('base64url', 0, SEED_BYTES);
  const x = bytes.toString('base64url', SEED_BYTES);
  // Node derives the public key from `d` and ignores `x`.
  const secret = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
  if (createPublicKey(secret).export({ format: 'jwk' }).x !== x)
    throw new KeyPairFault(
      'its public key (the last 32 numbers) does not belong to its secret key (the first 32)',
    );
  const address = toAddress(bytes.subarray(SEED_BYTES));
  return {
    address,
    sign(transaction) {
      const signed = Buffer.from(transaction, 'base64');
      const { message, keys, signatures } = readTransaction(signed);
      const slot = keys
        .slice(0, signatures)
        .findIndex(key => toAddress(Buffer.from(key, 'latin1')) === address);
      if (slot < 0) throw new Error(`${address} is not a signer of this transaction`);
      sign(null, message, secret).copy(signed, 1 + slot * SIGNATURE_BYTES);
      return signed.toString('base64');
    },
    signAsFeePayer(transaction) {
      const signed = Buffer.from(transaction, 'base64');
      const { message, keys } = readTransaction(signed);
      if (toAddress(Buffer.from(keys[0] ?? '', 'latin1')) !== address)
        throw new Error(`${address} is not the fee payer of this transaction`);
      const signature = sign(null, message, secret);
      signature.copy(signed, 1);
      return { transaction: signed.toString('base64'), signature: base58.encode(signature) };
    },
  };
}

function readBytes(text: string): Buffer {
  let numbers: unknown;
  try {
    numbers = JSON.parse(text);
  } catch {
    throw new KeyPairFault('it is not JSON');
  }
  const isPair =
    Array.isArray(numbers) &&
    numbers.length === PAIR_BYTES &&
    numbers.every(byte => Number.isInteger(byte) && byte >= 0 && byte <= 255);
  if (!isPair) throw new KeyPairFault(`it is not a list of ${PAIR_BYTES} numbers from 0 to 255`);
  return Buffer.from(numbers as number[]);
}
