import { createHash } from 'node:crypto';

const MAX_DEPTH = 64;

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

/** Identifies a call: hex sha256 over operation id and canonical body, defaults applied. @throws TooDeep */
export function fingerprint(operationId: string, body: object): string {
  return createHash('sha256')
    .update(`${operationId}\n${canonicalJson(body)}`)
    .digest('hex');
}
