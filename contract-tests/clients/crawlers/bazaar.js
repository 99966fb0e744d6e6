import {
  extractDiscoveryInfoFromExtension,
  validateAndExtract,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import {
  declarePaymentIdentifierExtension,
  isPaymentIdentifierExtension,
} from '@x402/extensions/payment-identifier';
import { challenges } from './challenges.js';

for (const { url, body } of await challenges()) {
  const { bazaar, 'payment-identifier': identifier } = body.extensions;
  for (const check of [validateDiscoveryExtension, validateDiscoveryExtensionSpec, validateAndExtract]) {
    const { valid, errors } = check(bazaar);
    if (!valid) throw new Error(`${url}: ${check.name}: ${errors.join('; ')}`);
  }
  const { input } = extractDiscoveryInfoFromExtension(bazaar);
  if (input.method !== 'POST' || !input.body) throw new Error(`${url}: no example of the call`);
  if (!isPaymentIdentifierExtension(identifier))
    throw new Error(`${url}: payment-identifier is not advertised`);
  const { properties } = declarePaymentIdentifierExtension().schema;
  if (identifier.schema.properties.id.pattern !== properties.id.pattern) {
    process.stderr.write(`${url}: payment-identifier differs from the official schema in its pattern\n`);
  }
}
