/**
 * The headers that carry a payment. Node joins a repeated header with commas, which no base64 contains: it is refused as one value.
 */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** Whether a request carries a payment at all. */
export function carriesPayment(rawHeaders: string[]): boolean {
  return PAYMENT_HEADERS.some(name => hasHeader(rawHeaders, name));
}

/**
 * Whether a request has a header. Of its raw headers, since Node makes its object of all headers when first asked for one.
 * @param name in lower case
 */
export function hasHeader(rawHeaders: string[], name: string): boolean {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] ?? '';
    if (header.length === name.length && header.toLowerCase() === name) return true;
  }
  return false;
}
