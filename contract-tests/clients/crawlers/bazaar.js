import assert from 'node:assert/strict';
import {
  extractDiscoveryInfoFromExtension,
  validateAndExtract,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import {
  appendPaymentIdentifierToExtensions,
  declarePaymentIdentifierExtension,
  extractAndValidatePaymentIdentifier,
  isPaymentIdentifierExtension,
  validatePaymentIdentifier,
} from '@x402/extensions/payment-identifier';
import { challenges } from './challenges.js';

for (const { url, method, body } of await challenges()) {
  const { bazaar, 'payment-identifier': identifier } = body.extensions;
  for (const check of [validateDiscoveryExtension, validateDiscoveryExtensionSpec, validateAndExtract]) {
    const { valid, errors } = check(bazaar);
    if (!valid) throw new Error(`${url}: ${check.name}: ${errors.join('; ')}`);
  }
  const { input } = extractDiscoveryInfoFromExtension(bazaar);
  if (input.method !== method || (method === 'POST' && !input.body))
    throw new Error(`${url}: no example of the call`);
  if (!isPaymentIdentifierExtension(identifier))
    throw new Error(`${url}: payment-identifier is not advertised`);
  assert.deepEqual(identifier, declarePaymentIdentifierExtension(false), url);
  assert.deepEqual(validatePaymentIdentifier(identifier), { valid: true }, url);
  // The extensions as the official client sends them back, and what the official server reads from them.
  const extensions = appendPaymentIdentifierToExtensions(structuredClone(body.extensions));
  const { id, validation } = extractAndValidatePaymentIdentifier({ extensions });
  assert.ok(id?.startsWith('pay_') && validation.valid, `${url}: ${JSON.stringify(validation)}`);
}
