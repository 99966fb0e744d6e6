/**
 * The headers that carry a payment. Node joins a repeated header with commas, which are not base64, so the joined value is rejected.
 */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** Whether a request carries a payment. */
export function carriesPayment(rawHeaders: string[]): boolean {
  return PAYMENT_HEADERS.some(name => hasHeader(rawHeaders, name));
}

/**
 * Whether a request has a header. Takes the raw headers, because Node builds its header object on first access.
 * @param name in lower case
 */
export function hasHeader(rawHeaders: string[], name: string): boolean {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] ?? '';
    if (header.length === name.length && header.toLowerCase() === name) return true;
  }
  return false;
}
