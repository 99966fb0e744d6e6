import type { Json } from './json.js';

/** The limit for all bodies, whatever their schema allows. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** Allowance for white space and for fields that are not in the schema. */
const SPARE_BYTES = 16 * 1024;
/** A character outside the Basic Multilingual Plane, written as two escapes: `\ud83d\udcb8`. */
const MOST_BYTES_OF_CHARACTER = 12;
const MOST_BYTES_OF_SCALAR = 32;

/**
 * The largest body that an operation accepts, in bytes, computed from its request schema: twice the size of the longest values that the
 * schema allows, plus 16 KB; at most 2 MB, which is also the limit if the schema sets none.
 */
export function bodyLimit(schema: Json): number {
  return Math.min(MAX_BODY_BYTES, SPARE_BYTES + 2 * longest(schema));
}

function longest({ type, maxLength, properties }: Json): number {
  if (type === 'string')
    return typeof maxLength === 'number' ? 2 + maxLength * MOST_BYTES_OF_CHARACTER : Infinity;
  if (type === 'integer' || type === 'number' || type === 'boolean') return MOST_BYTES_OF_SCALAR;
  if (type !== 'object' || typeof properties !== 'object') return Infinity;
  const fields = Object.entries(properties as Record<string, Json>);
  return fields.reduce((sum, [name, field]) => sum + name.length + 4 + longest(field), 2);
}
