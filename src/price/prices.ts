import { fixed } from './fixed.js';
import type { PriceKind } from './price.js';

/** The kinds of price by their `mode`. */
export const PRICES: Readonly<Record<string, PriceKind>> = { fixed };
