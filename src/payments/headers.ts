import type { IncomingHttpHeaders } from 'node:http';

/**
 * The headers that carry a payment. Node joins a repeated header with commas, which no base64 contains: it is refused as one value.
 */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** Whether a request carries a payment at all. */
export function carriesPayment(headers: IncomingHttpHeaders): boolean {
  return PAYMENT_HEADERS.some(name => headers[name] !== undefined);
}
