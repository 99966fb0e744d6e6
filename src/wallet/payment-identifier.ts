import type { PaymentPayload, PaymentRequired } from '@x402/core/types';
import { randomUUID } from 'node:crypto';

/** The x402 extension with which a buyer marks payments for the same purchase. */
const IDENTIFIER = 'payment-identifier';

/** Gives the purchase an id, if the server supports it, so that it stays one sale even if connections fail. */
export function withIdentifier(payload: PaymentPayload, { extensions }: PaymentRequired): PaymentPayload {
  const offered = extensions?.[IDENTIFIER] as { info?: object } | undefined;
  if (!offered) return payload;
  const identifier = { ...offered, info: { ...offered.info, id: `buy-${randomUUID()}` } };
  return { ...payload, extensions: { ...payload.extensions, [IDENTIFIER]: identifier } };
}
