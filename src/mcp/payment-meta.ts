import type { IncomingHttpHeaders } from 'node:http';
import type { Json } from '../contract/json.js';
import type { AnswerLink } from '../sale/answer-keys.js';
import type { Receipt } from '../methods/x402/wire.js';

/** Where a request carries its payment. The first is x402's; the second is that of a client package that some hosts use. */
const PAYMENT_KEYS = ['x402/payment', 'x402.payment'] as const;
const RECEIPT_KEYS = ['x402/payment-response', 'x402.payment-response'] as const;
/** Where some clients look for the challenge instead of in the result. */
const CHALLENGE_KEY = 'x402/error';

/**
 * The payment of a tool call as the headers that would carry it over HTTP, so that both are read in one way. A payment is an object
 * or the base64 of one. Two different payments under two keys give two different headers, which is refused.
 */
export function paymentHeaders(meta: Json): IncomingHttpHeaders {
  const [first, second] = PAYMENT_KEYS.map(key => meta[key]);
  return {
    ...(first === undefined ? {} : { 'payment-signature': headerOf(first) }),
    ...(second === undefined ? {} : { 'x-payment': headerOf(second) }),
  };
}

function headerOf(payment: unknown): string {
  return typeof payment === 'string' ? payment : Buffer.from(JSON.stringify(payment)).toString('base64');
}

export function receiptMeta(receipt: Receipt | undefined): Json {
  return receipt ? Object.fromEntries(RECEIPT_KEYS.map(key => [key, receipt])) : {};
}

/** Not x402's: how to fetch the answer without the payment. */
export function linkMeta(link: AnswerLink | undefined): Json {
  return link ? { 'coinslot/pick-up': link } : {};
}

export function challengeMeta(challenge: Json): Json {
  return { [CHALLENGE_KEY]: challenge };
}
