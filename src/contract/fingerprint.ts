import { createHash } from 'node:crypto';
import type { AnyAsked } from './operation.js';
import { isObject } from './references.js';

const MAX_DEPTH = 64;
/** The list around a body does not count as a level of nesting. */
const AROUND = -1;

/** The body is nested deeper than 64 levels. */
export class TooDeep extends Error {}

/**
 * JSON as defined by RFC 8785 (JCS): no white space, members sorted by the UTF-16 code units of their names, numbers and strings as
 * in ECMAScript. A lone surrogate, which I-JSON excludes, is written as its escape instead of being rejected.
 * @throws TooDeep
 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new TooDeep('the body is nested too deeply');
  if (Array.isArray(value)) return `[${value.map(item => canonicalJson(item, depth + 1)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member, depth + 1)}`);
  return `{${members.join(',')}}`;
}

/** Further parts of a call that its operation may declare. */
type More = Pick<AnyAsked, 'headers' | 'type' | 'accept'>;

/**
 * The input of a call as text: canonical JSON of the body. If there are path or query parameters, no body, or a body that is not an object,
 * it is the array `[params, query, body]`, so that the two forms cannot be confused, and the text of an existing call stays the same when
 * its operation gets a first optional parameter. A call with more parts is the array `[params, query, body or null, more]`. Stored with
 * orders and hashed by `fingerprint`; both outlive a release.
 * @throws TooDeep
 */
export function requestText({ params, query, body, headers = {}, type, accept }: AnyAsked): string {
  const more: More = {
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...(type === undefined ? {} : { type }),
    ...(accept === undefined ? {} : { accept }),
  };
  if (Object.keys(more).length > 0) return canonicalJson([params, query, body ?? null, more], AROUND);
  const bodyOnly = Object.keys(params).length === 0 && Object.keys(query).length === 0;
  if (bodyOnly && isObject(body)) return canonicalJson(body);
  return canonicalJson([params, query, ...(body === undefined ? [] : [body])], AROUND);
}

/** Reverses `requestText`. */
export function readRequestText(text: string): AnyAsked {
  const value = JSON.parse(text) as unknown;
  if (!Array.isArray(value)) return { params: {}, query: {}, body: value };
  const [params, query, body, more] = value as [AnyAsked['params'], AnyAsked['query'], unknown, More?];
  return { params, query, body: more ? (body ?? undefined) : body, ...more };
}

/**
 * Identifies a call: hex sha256 over operation id and the text of its input, validated and with defaults applied.
 * @throws TooDeep
 */
export function fingerprint(operationId: string, asked: AnyAsked): string {
  return createHash('sha256')
    .update(`${operationId}\n${requestText(asked)}`)
    .digest('hex');
}
