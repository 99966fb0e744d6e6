/** The limit of nginx and other proxies for the status line and all headers of an answer. */
export const MAX_HEADER_BYTES = 4096;
/** Reserved for the status line and other headers, including the receipt of a payment that was refused at settlement. */
export const OTHER_HEADER_BYTES = 1_000;
/** The part of `OTHER_HEADER_BYTES` that is reserved for the receipt. */
export const RECEIPT_HEADER_BYTES = 300;

/** The bytes of headers on the wire. */
export function bytesOf(headers: Record<string, string>): number {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`.length);
  return lines.reduce((sum, bytes) => sum + bytes, 0);
}
