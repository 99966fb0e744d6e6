import type { Methods } from '../../src/methods/methods.js';
import type { Method } from '../../src/methods/method.js';
import { shopMethods } from '../../src/methods/shop-methods.js';
import type { Terms } from '../../src/methods/x402/requirements.js';

/** A shop that takes x402 payments on the given terms. */
export function sellingOf(terms: Terms): { terms: Terms; publicUrl: string; methods: Methods } {
  return { terms, publicUrl: terms.publicUrl, methods: shopMethods(terms) };
}

/** One version of x402. */
export function x402In({ methods }: { methods: Methods }, version: 1 | 2): Method {
  return methods.named(`x402-v${version}`);
}
