import { Methods } from './methods.js';
import type { Terms } from './x402/requirements.js';
import { x402Methods } from './x402/x402.js';

/** The list of the ways to carry a payment that a shop takes. */
export function shopMethods(terms: Terms): Methods {
  return new Methods([...x402Methods(terms)]);
}
