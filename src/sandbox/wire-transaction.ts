import { createHash, createPublicKey, verify } from 'node:crypto';
import { VersionedTransaction, type VersionedMessage } from '@solana/web3.js';
import { fromBase58, toBase58 } from './base58.js';
import { MEMO_PROGRAM } from '../rails/solana/networks.js';

/** The maximum size of a Solana transaction, in bytes: that of one IPv6 packet. */
const MAX_TRANSACTION_BYTES = 1232;

const MEMO_PROGRAMS = [MEMO_PROGRAM, 'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo'];

/** A transaction as it was received. Signature slots that are still empty hold zeros. */
export type WireTransaction = {
  bytes: Uint8Array;
  signatures: Uint8Array[];
  message: VersionedMessage;
  messageBytes: Uint8Array;
  /** sha256 of the message bytes, which identifies the transaction on chain. */
  hash: string;
  /** Base58 of the first signature, by which a transaction is looked up. */
  signature: string;
  /** Addresses named in the message itself, without those of lookup tables. */
  keys: string[];
};

/** The bytes are not a transaction. */
export class WireFault extends Error {}

/**
 * Reads a signed or half-signed transaction, legacy or v0.
 * @throws WireFault for anything that the VM cannot read (the VM aborts the process on bytes that don't parse), for a wrong number of
 *   signatures and for an encoding other than the canonical one.
 */
export function decodeTransaction(bytes: Uint8Array): WireTransaction {
  if (bytes.length > MAX_TRANSACTION_BYTES) {
    throw new WireFault(`transaction too large: ${bytes.length} bytes (max: ${MAX_TRANSACTION_BYTES} bytes)`);
  }
  let transaction: VersionedTransaction;
  let messageBytes: Uint8Array;
  try {
    transaction = VersionedTransaction.deserialize(bytes);
    messageBytes = transaction.message.serialize();
    if (!Buffer.from(transaction.serialize()).equals(bytes)) throw new Error('not canonical');
  } catch (error) {
    throw new WireFault(
      `failed to deserialize transaction: ${error instanceof Error ? error.message : 'unreadable'}`,
    );
  }
  const { message, signatures } = transaction;
  if (signatures.length !== message.header.numRequiredSignatures || !signatures[0]) {
    throw new WireFault(
      'failed to sanitize transaction: the number of signatures differs from the number that the message requires',
    );
  }
  return {
    bytes,
    signatures,
    message,
    messageBytes,
    hash: createHash('sha256').update(messageBytes).digest('base64'),
    signature: toBase58(signatures[0]),
    keys: message.staticAccountKeys.map(key => key.toBase58()),
  };
}

/** Checks every signature (ed25519) over the message bytes. */
export function signaturesHold(transaction: WireTransaction): boolean {
  return transaction.signatures.every((signature, index) => {
    const signer = transaction.message.staticAccountKeys[index];
    if (!signer) return false;
    const x = Buffer.from(signer.toBytes()).toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return verify(null, transaction.messageBytes, key, signature);
  });
}

/** The same transaction with another blockhash. Its signatures stay as they are, so they are no longer valid. */
export function withBlockhash(transaction: WireTransaction, blockhash: string): WireTransaction {
  const copy = VersionedTransaction.deserialize(transaction.bytes);
  copy.message.recentBlockhash = blockhash;
  return decodeTransaction(copy.serialize());
}

/** The memos of a transaction as RPC nodes list them (`[length] text; …`), or null. */
export function memoOf(transaction: WireTransaction): string | null {
  const memos = transaction.message.compiledInstructions
    .filter(instruction => MEMO_PROGRAMS.includes(transaction.keys[instruction.programIdIndex] ?? ''))
    .map(instruction => `[${instruction.data.length}] ${Buffer.from(instruction.data).toString('utf8')}`);
  return memos.length > 0 ? memos.join('; ') : null;
}

/** Whether a string is a signature: 64 bytes in base58. */
export function isSignature(text: unknown): text is string {
  return typeof text === 'string' && fromBase58(text, 90)?.length === 64;
}
