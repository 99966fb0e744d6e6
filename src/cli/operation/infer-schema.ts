import type { Json } from '../../contract/json.js';

/** A generous default limit, which the seller can lower. */
const MAX_LENGTH = 10_000;

/** What a schema is for. Schemas of requests have limits; answers may get further fields later. */
export type Side = 'request' | 'answer';

/** The schema inferred from one example. Every field of the example is required. */
export function inferSchema(value: unknown, side: Side): Json {
  if (typeof value === 'string')
    return side === 'request'
      ? { type: 'string', minLength: 1, maxLength: Math.max(MAX_LENGTH, value.length) }
      : { type: 'string' };
  if (typeof value === 'number') return { type: Number.isInteger(value) ? 'integer' : 'number' };
  if (typeof value === 'boolean') return { type: 'boolean' };
  if (Array.isArray(value)) {
    const items = value.length === 0 ? {} : { items: inferSchema(value[0], side) };
    return { type: 'array', ...items };
  }
  // A null says nothing about other possible values.
  if (typeof value !== 'object' || value === null) return {};
  const fields = Object.entries(value);
  return {
    type: 'object',
    ...(side === 'answer' ? { additionalProperties: true } : {}),
    ...(fields.length ? { required: fields.map(([name]) => name) } : {}),
    properties: Object.fromEntries(fields.map(([name, field]) => [name, inferSchema(field, side)])),
  };
}
