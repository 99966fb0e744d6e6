import type { IncomingHttpHeaders } from 'node:http';

/**
 * In what a payment travels. Node joins a repeated header with commas, which no base64 contains: it is refused as one value.
 */
export const PAYMENT_HEADERS = ['payment-signature', 'x-payment'] as const;

/** Whether a request carries a payment at all. */
export function carriesPayment(headers: IncomingHttpHeaders): boolean {
  return headers['payment-signature'] !== undefined || headers['x-payment'] !== undefined;
}
