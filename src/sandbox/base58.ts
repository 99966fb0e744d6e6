const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const DIGIT = new Map([...ALPHABET].map((character, index) => [character, index]));

/** Writes bytes in Bitcoin's base58, as Solana writes addresses, signatures and instruction data. */
export function toBase58(bytes: Uint8Array): string {
  const digits: number[] = [];
  for (const byte of bytes) {
    let carry = byte;
    for (let i = 0; i < digits.length; i++) {
      carry += (digits[i] ?? 0) << 8;
      digits[i] = carry % 58;
      carry = (carry / 58) | 0;
    }
    for (; carry > 0; carry = (carry / 58) | 0) digits.push(carry % 58);
  }
  let text = '';
  for (let i = 0; i < bytes.length && bytes[i] === 0; i++) text += '1';
  for (let i = digits.length - 1; i >= 0; i--) text += ALPHABET[digits[i] ?? 0];
  return text;
}

/**
 * Reads base58. Decoding is quadratic, so the length is bounded.
 * @returns null for a character outside the alphabet or a text longer than `maxLength`.
 */
export function fromBase58(text: string, maxLength = 2048): Uint8Array | null {
  if (text.length > maxLength) return null;
  const bytes: number[] = [];
  for (const character of text) {
    let carry = DIGIT.get(character);
    if (carry === undefined) return null;
    for (let i = 0; i < bytes.length; i++) {
      carry += (bytes[i] ?? 0) * 58;
      bytes[i] = carry & 0xff;
      carry >>= 8;
    }
    for (; carry > 0; carry >>= 8) bytes.push(carry & 0xff);
  }
  for (let i = 0; i < text.length && text[i] === '1'; i++) bytes.push(0);
  return Uint8Array.from(bytes.reverse());
}
