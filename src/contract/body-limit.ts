import type { Json } from './json.js';
import { objectOf, resolved } from './references.js';

/** The limit for all bodies, whatever their schema allows. */
export const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** Allowance for white space and for fields that are not in the schema. */
const SPARE_BYTES = 16 * 1024;
/** A character outside the Basic Multilingual Plane, written as two escapes: `\ud83d\udcb8`. */
const MOST_BYTES_OF_CHARACTER = 12;
const MOST_BYTES_OF_SCALAR = 32;

/**
 * The largest body that an operation accepts, in bytes, computed from its request schema: twice the size of the longest values that the
 * schema allows, plus 16 KB; at most 2 MB, which is also the limit if the schema sets none.
 */
export function bodyLimit(document: Json, schema: Json): number {
  return Math.min(MAX_BODY_BYTES, SPARE_BYTES + 2 * longest({ document, known: new Map() }, schema, []));
}

/** A schema that contains itself has no limit; one nested deeper than this is treated the same. */
const MAX_DEPTH = 32;
const SCALARS = ['integer', 'number', 'boolean', 'null'];

type Longest = (schema: unknown) => number;

/** `known`: the results for plain references, cached because many schemas may refer to the same one. */
type Within = { document: Json; known: Map<string, number> };

/** @param open the references that lead to the schema, and '' for each step without one */
function longest(within: Within, schema: unknown, open: readonly string[]): number {
  const { $ref = '', ...beside } = objectOf(schema);
  const reference = String($ref);
  if (open.length > MAX_DEPTH || (reference !== '' && open.includes(reference))) return Infinity;
  const before = Object.keys(beside).length === 0 ? within.known.get(reference) : undefined;
  if (before !== undefined) return before;
  const described = resolved(within.document, schema);
  const of: Longest = part => longest(within, part, [...open, reference]);
  const found = namedValues(described) ?? alternatives(described, of) ?? longestOfType(described, of);
  if (reference !== '' && Object.keys(beside).length === 0) within.known.set(reference, found);
  return found;
}

function namedValues({ const: only, enum: values }: Json): number | undefined {
  if (only !== undefined) return bytesOf(only);
  return Array.isArray(values) ? Math.max(0, ...values.map(bytesOf)) : undefined;
}

function bytesOf(value: unknown): number {
  return MOST_BYTES_OF_CHARACTER * JSON.stringify(value).length;
}

function alternatives(described: Json, of: Longest): number | undefined {
  const { type, properties, allOf, anyOf, oneOf, ...more } = described;
  const own = { type, properties, ...more };
  // The limits of all members of allOf add up, as those of properties do.
  if (Array.isArray(allOf)) {
    const limits =
      type !== undefined || properties !== undefined ? [...(allOf as unknown[]), own] : (allOf as unknown[]);
    return limits.map(of).reduce((sum, part) => sum + part, 0);
  }
  const parts = anyOf ?? oneOf;
  if (Array.isArray(parts) && type === undefined && properties === undefined)
    return Math.max(0, ...parts.map(of));
  return Array.isArray(type)
    ? Math.max(0, ...type.map((each: unknown) => of({ ...described, type: each })))
    : undefined;
}

function longestOfType({ type, maxLength, maxItems, items, properties }: Json, of: Longest): number {
  if (SCALARS.includes(String(type))) return MOST_BYTES_OF_SCALAR;
  if (type === 'string')
    return typeof maxLength === 'number' ? 2 + maxLength * MOST_BYTES_OF_CHARACTER : Infinity;
  if (type === 'array') return typeof maxItems === 'number' ? 2 + maxItems * (1 + of(items)) : Infinity;
  if ((type !== undefined && type !== 'object') || typeof properties !== 'object') return Infinity;
  const fields = Object.entries(properties as Record<string, Json>);
  return fields.reduce((sum, [name, field]) => sum + name.length + 4 + of(field), 2);
}
