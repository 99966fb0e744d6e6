import type { Json } from './json.js';
import { follow } from './references.js';

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
export function bodyLimit(document: Json, schema: Json): number {
  return Math.min(MAX_BODY_BYTES, SPARE_BYTES + 2 * longest(document, schema, 0));
}

/** Schemas may contain themselves; nothing this deep has a limit. */
const MAX_DEPTH = 32;

function longest(document: Json, schema: unknown, depth: number): number {
  if (depth > MAX_DEPTH) return Infinity;
  const described = follow(document, schema);
  const { type, maxLength, maxItems, items, properties, enum: values } = described;
  const of = (part: unknown): number => longest(document, part, depth + 1);
  if ('const' in described) return bytesOf(described.const);
  if (Array.isArray(values)) return Math.max(0, ...values.map(bytesOf));
  for (const key of ['anyOf', 'oneOf']) {
    const parts = described[key];
    if (Array.isArray(parts) && type === undefined && properties === undefined)
      return Math.max(0, ...parts.map(of));
  }
  if (Array.isArray(described.allOf)) {
    const { allOf, ...own } = described;
    const parts = [...(allOf as unknown[]), ...(Object.keys(own).some(isConstraint) ? [own] : [])].map(of);
    return parts.reduce((sum, part) => sum + part, 0);
  }
  if (Array.isArray(type)) return Math.max(0, ...type.map(each => of({ ...described, type: each })));
  if (type === 'string')
    return typeof maxLength === 'number' ? 2 + maxLength * MOST_BYTES_OF_CHARACTER : Infinity;
  if (type === 'integer' || type === 'number' || type === 'boolean' || type === 'null')
    return MOST_BYTES_OF_SCALAR;
  if (type === 'array') return typeof maxItems === 'number' ? 2 + maxItems * (1 + of(items)) : Infinity;
  if ((type !== undefined && type !== 'object') || typeof properties !== 'object') return Infinity;
  const fields = Object.entries(properties as Record<string, Json>);
  return fields.reduce((sum, [name, field]) => sum + name.length + 4 + of(field), 2);
}

function isConstraint(key: string): boolean {
  return ['type', 'properties', 'maxLength', 'items'].includes(key);
}

function bytesOf(value: unknown): number {
  return MOST_BYTES_OF_CHARACTER * (JSON.stringify(value) ?? '').length;
}
