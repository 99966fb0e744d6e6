import { ed25519 } from '@noble/curves/ed25519.js';
import { base58 } from '@scure/base';
import { createHash } from 'node:crypto';

const KEY_BYTES = 32;
/** The longest base58 text of 32 bytes. Checked first, because the cost of decoding grows with the square of the length. */
const MAX_ADDRESS_LENGTH = 44;
const MAX_BUMP = 255;

/** Base58 of a key's 32 bytes, as Solana writes addresses. */
export function toAddress(key: Uint8Array): string {
  return base58.encode(key);
}

/** The 32 bytes of a base58 address, or undefined if the text is not an address. */
export function readAddress(text: string): Buffer | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  let bytes: Uint8Array;
  try {
    bytes = base58.decode(text);
  } catch {
    return undefined;
  }
  return bytes.length === KEY_BYTES ? Buffer.from(bytes) : undefined;
}

export function isAddress(text: string): boolean {
  return readAddress(text) !== undefined;
}

/** Whether a text can be the signature of a transaction: 64 bytes in base58. */
export function isSignature(text: string): boolean {
  return /^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text);
}

/** @throws Error if the text is not an address. Use `readAddress` for input from outside. */
export function keyOf(address: string): Buffer {
  const key = readAddress(address);
  if (key === undefined) throw new Error(`'${address}' is not a Solana address`);
  return key;
}

/** The address that a program derives from seeds: the first hash, counting down from 255, that is not a point on the curve. */
export function programAddress(seeds: Uint8Array[], program: Uint8Array): Buffer {
  for (let bump = MAX_BUMP; bump >= 0; bump--) {
    const hash = createHash('sha256');
    for (const seed of [...seeds, Buffer.of(bump), program]) hash.update(seed);
    const address = hash.update('ProgramDerivedAddress').digest();
    if (!isOnCurve(address)) return address;
  }
  throw new Error('no program address belongs to these seeds');
}

/** Whether 32 bytes are a point on ed25519 (RFC 8032, section 5.1.3), so that they may have a private key. */
export function isOnCurve(key: Uint8Array): boolean {
  try {
    ed25519.Point.fromHex(key);
    return true;
  } catch {
    return false;
  }
}
