/**
 * Readers for the fields of a market-data answer. Token issuers write part of these answers, so every field is checked: a reader
 * returns the value, or undefined if the field is absent (`undefined`, `null`). For an invalid value, it throws a `RangeError` that names
 * the field, unless no figure depends on that value.
 */

/**
 * The limits for a price (USD per token), an amount (USD), a number of holders, and a rise of the price (per cent). A figure above its
 * limit is an error or an attack.
 */
const MAX_PRICE_USD = 1e12;
const MAX_AMOUNT_USD = 1e16;
const MAX_HOLDERS = 1e10;
const MAX_GAIN_PERCENT = 1e9;

const DECIMAL = /^\d{1,60}(\.\d{1,100})?(e[+-]?\d{1,3})?$/i;

export type JsonObject = Record<string, unknown>;

/** `value` as a JSON object (not an array, not null); otherwise undefined. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

function inRange(value: number, max: number, field: string): number {
  if (!Number.isFinite(value) || value < 0 || value > max) throw new RangeError(`an implausible ${field}`);
  return value;
}

function numberOf(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number') throw new RangeError(`a ${field} that is not a number`);
  return value;
}

/** A decimal that the source sends as a string, which is empty if the source does not know the value. A JSON number is accepted, too. */
function decimalOf(value: unknown, field: string): number | undefined {
  if (value === '') return undefined;
  if (typeof value !== 'string') return numberOf(value, field);
  if (!DECIMAL.test(value)) throw new RangeError(`a ${field} that is not a decimal`);
  return Number(value);
}

function priceOf(value: number | undefined, field: string): number | undefined {
  // Aggregators send 0 for a dead token; that is not a price.
  return value === undefined ? undefined : inRange(value, MAX_PRICE_USD, field) || undefined;
}

function amountOf(value: number | undefined, field: string): number | undefined {
  return value === undefined ? undefined : inRange(value, MAX_AMOUNT_USD, field);
}

/** A price in USD, greater than 0; 0 counts as absent. */
export const price = (value: unknown, field: string) => priceOf(numberOf(value, field), field);
/** A price in USD from a source that sends decimal strings; 0 counts as absent. */
export const decimalPrice = (value: unknown, field: string) => priceOf(decimalOf(value, field), field);
/** An amount in USD, 0 or more. */
export const amount = (value: unknown, field: string) => amountOf(numberOf(value, field), field);
/** An amount in USD, 0 or more, from a source that sends decimal strings. */
export const decimalAmount = (value: unknown, field: string) => amountOf(decimalOf(value, field), field);

/** A whole number of holders. */
export function holders(value: unknown, field: string): number | undefined {
  const count = numberOf(value, field);
  if (count === undefined) return undefined;
  if (!Number.isInteger(count)) throw new RangeError(`a ${field} that is not a whole number`);
  return inRange(count, MAX_HOLDERS, field);
}

/** A score from 0 to 100. */
export function score(value: unknown, field: string): number | undefined {
  const points = numberOf(value, field);
  return points === undefined ? undefined : inRange(points, 100, field);
}

/** A time, normalised to one form of ISO 8601. An invalid time is ignored (undefined), because no figure depends on it. */
export function time(value: unknown): string | undefined {
  const ms = typeof value === 'string' && value.length <= 40 ? Date.parse(value) : Number.NaN;
  return Number.isFinite(ms) && ms > 0 ? new Date(ms).toISOString() : undefined;
}

/** A change in per cent, down to -100. An invalid value is ignored (undefined), because no other figure depends on it. */
export function change(value: unknown): number | undefined {
  return typeof value === 'number' && value >= -100 && value <= MAX_GAIN_PERCENT ? value : undefined;
}

/** A share of the supply in per cent. An invalid value is ignored (undefined), because no other figure depends on it. */
export function share(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= 100 ? value : undefined;
}
