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

/** The field of ed25519 and the constant of its curve -x² + y² = 1 + dx²y² (RFC 8032, section 5.1). */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/**
 * Whether 32 bytes are a point of ed25519 (RFC 8032, section 5.1.3), so that somebody may hold a key for them. Every y < p is one for
 * which x² = (y² - 1) / (dy² + 1) has a root.
 */
export function isOnCurve(key: Uint8Array): boolean {
  const number = BigInt(`0x${Buffer.from(key).reverse().toString('hex')}`);
  const [y, sign] = [BigInt.asUintN(255, number), number >> 255n];
  if (y >= P) return false;
  const square = (y * y) % P;
  const [u, v] = [(square + P - 1n) % P, (square * D + 1n) % P];
  // Zero has no negative.
  if (u === 0n) return sign === 0n;
  // v is never zero, and u / v is a square where u * v is one (Euler's criterion).
  return power((u * v) % P, (P - 1n) / 2n) === 1n;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}
