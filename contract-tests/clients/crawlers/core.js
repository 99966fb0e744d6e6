import { decodePaymentRequiredHeader } from '@x402/core/http';
import { parsePaymentRequired, PaymentRequiredV1Schema, PaymentRequiredV2Schema } from '@x402/core/schemas';
import { challenges } from './challenges.js';

for (const { url, method, header, body } of await challenges()) {
  for (const challenge of [decodePaymentRequiredHeader(header), body]) {
    const { success, error } = parsePaymentRequired(challenge);
    if (!success) throw new Error(`${url}: ${error.message}`);
    PaymentRequiredV2Schema.parse(challenge);
  }
  const first = await (await fetch(`${url}?x402Version=1`, { method })).json();
  PaymentRequiredV1Schema.parse(first);
}
