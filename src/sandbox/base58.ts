import { base58 } from '@scure/base';

/** Writes bytes in Bitcoin's base58, as Solana writes addresses, signatures and instruction data. */
export function toBase58(bytes: Uint8Array): string {
  return base58.encode(bytes);
}

/**
 * Reads base58. Decoding is quadratic, so the length is bounded.
 * @returns null for a character outside the alphabet or a string longer than `maxLength`.
 */
export function fromBase58(text: string, maxLength = 2048): Uint8Array | null {
  if (text.length > maxLength) return null;
  try {
    return base58.decode(text);
  } catch {
    return null;
  }
}
