import type { Methods } from '../../src/methods/methods.js';
import type { Method } from '../../src/methods/method.js';
import { shopMethods } from '../../src/methods/shop-methods.js';
import type { Terms } from '../../src/methods/x402/requirements.js';

/** A shop that is paid by x402, under the given terms. */
export function sellingOf(terms: Terms): { terms: Terms; publicUrl: string; methods: Methods } {
  return { terms, publicUrl: terms.publicUrl, methods: shopMethods(terms) };
}

/** x402 in one of its versions. */
export function x402In({ methods }: { methods: Methods }, version: 1 | 2): Method {
  return methods.named(`x402-v${version}`);
}
