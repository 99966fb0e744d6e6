import { ed25519 } from '@noble/curves/ed25519.js';
import { base58 } from '@scure/base';
import { createHash } from 'node:crypto';

const KEY_BYTES = 32;
/** Base58 of 32 bytes is never longer; decoding costs the square of the length. */
const MAX_ADDRESS_LENGTH = 44;
const MAX_BUMP = 255;

/** Base58 of a key's 32 bytes, as Solana writes addresses. */
export function toAddress(key: Uint8Array): string {
  return base58.encode(key);
}

/** The 32 bytes of a base58 address, or undefined where the text is none. */
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

/** @throws Error where the text is no address: check what comes from outside with `readAddress`. */
export function keyOf(address: string): Buffer {
  const key = readAddress(address);
  if (key === undefined) throw new Error(`'${address}' is not a Solana address`);
  return key;
}

/** The address that a program derives from seeds: the first hash, counting down from 255, that is no point of the curve. */
export function programAddress(seeds: Uint8Array[], program: Uint8Array): Buffer {
  for (let bump = MAX_BUMP; bump >= 0; bump--) {
    const hash = createHash('sha256');
    for (const seed of [...seeds, Buffer.of(bump), program]) hash.update(seed);
    const address = hash.update('ProgramDerivedAddress').digest();
    if (!isOnCurve(address)) return address;
  }
  throw new Error('no program address belongs to these seeds');
}

/** Whether 32 bytes are a point of ed25519 (RFC 8032, section 5.1.3), so that somebody may hold a key for them. */
function isOnCurve(key: Uint8Array): boolean {
  try {
    ed25519.Point.fromHex(key);
    return true;
  } catch {
    return false;
  }
}
