import { fixed } from './fixed.js';
import { ofHandler } from './of-handler.js';
import type { PriceKind } from './price.js';
import { tiered } from './tiered.js';

/** The kinds of price by their `mode`. */
export const PRICES: Readonly<Record<string, PriceKind>> = { fixed, tiered, handler: ofHandler };
