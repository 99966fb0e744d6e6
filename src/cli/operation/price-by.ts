import type { Json } from '../../contract/json.js';
import { OperationFault } from './contract-text.js';

const EXAMPLES =
  "'length of /body/text, 0.001 per 1000, at most 0.50' (or value, items, bytes), or 'handler, at most 0.50'";
const UNITS = /^(value|length|items|bytes) of (\/\S+), (\S+) per (\d{1,15}), at most (\S+)$/;
const HANDLER = /^handler, at most (\S+)$/;

/**
 * What `x-price` says of a price that depends on the call, beside currency and flow.
 * @param least the price that is given with it
 * @throws OperationFault
 */
export function priceBy(text: string | undefined, least: string): Json {
  if (text === undefined) return { mode: 'fixed', amount: least };
  const words = text.trim().replace(/\s+/g, ' ');
  const [, asked] = HANDLER.exec(words) ?? [];
  if (asked !== undefined) return { mode: 'handler', min: least, max: asked };
  const [, measure, by, amount, units, max] = UNITS.exec(words) ?? [];
  if (measure === undefined) throw new OperationFault(`--price-by must be like ${EXAMPLES}, not '${text}'.`);
  return { mode: 'tiered', by, measure, per: { amount, units: Number(units) }, min: least, max };
}
