/** What nginx and other proxies have room for: the status line and all headers of an answer together. */
export const MAX_HEADER_BYTES = 4096;
/** The status line and the other headers, with the receipt of a payment that was refused when it was settled. */
export const OTHER_HEADER_BYTES = 1_000;
/** What that receipt takes of them. */
export const RECEIPT_HEADER_BYTES = 300;

/** What headers take on the wire. */
export function bytesOf(headers: Record<string, string>): number {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`.length);
  return lines.reduce((sum, bytes) => sum + bytes, 0);
}
