import type { IncomingHttpHeaders } from 'node:http';
import { QueryFault, queryTextOf, readQuery, type Text } from './query-styles.js';
import type { Parameter } from './read-parameters.js';
import { objectOf } from './references.js';

type Texts = Record<string, Text>;

/** The values that were read, or a fault. */
type Read<T extends Text> = { ok: true; texts: Record<string, T> } | { ok: false; error: string };

/** Numbers as in JSON: not `0x10`, ` 5 ` or `1e999`. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/;

/**
 * The query parameters that an operation declares, as strings. Undeclared ones are ignored here, because
 * openapi-backend would refuse them. It would also read `a[b]=1` as an object. @param query without its
 * question mark
 */
export function queryTexts(parameters: readonly Parameter[], query: string): Read<Text> {
  const texts: Texts = {};
  try {
    const sent = readQuery(query);
    for (const parameter of parameters) {
      const text = parameter.in === 'query' ? queryTextOf(parameter, sent) : undefined;
      if (text !== undefined) texts[parameter.name] = text;
    }
  } catch (error) {
    if (error instanceof QueryFault) return { ok: false, error: error.message };
    throw error;
  }
  return { ok: true, texts };
}

/** Other characters are refused, because proxies and languages disagree on their bytes. */
const HEADER_TEXT = /^[\t\x20-\x7e]*$/;

/**
 * The header parameters that an operation declares, as strings, by their names in lower case. @param headers
 * as Node has them
 */
export function headerTexts(
  parameters: readonly Parameter[],
  headers: IncomingHttpHeaders,
): Read<string | string[]> {
  const texts: Record<string, string | string[]> = {};
  for (const { name, in: where, list } of parameters) {
    const key = name.toLowerCase();
    if (where !== 'header' || !Object.hasOwn(headers, key)) continue;
    const text = String(headers[key]).trim();
    if (!HEADER_TEXT.test(text))
      return { ok: false, error: `${name} must have printable ASCII characters only` };
    texts[key] = list ? text.split(',').map(each => each.trim()) : text;
  }
  return { ok: true, texts };
}

/** A deep copy for ajv, because ajv changes the object that it validates. */
export function copied<T extends Text>(texts: Record<string, T>): Record<string, T> {
  const all = Object.entries(texts);
  return Object.fromEntries(
    all.map(([name, text]) => [name, typeof text === 'string' ? text : structuredClone(text)]),
  );
}

/**
 * What is wrong with a path as sent, if anything: openapi-backend throws on values that are not UTF-8, and
 * `.` and `..` would change the path of an upstream.
 * @param raw the values of its parameters
 */
export function pathFault(raw: Readonly<Record<string, string>>): string | undefined {
  const wrong = Object.keys(raw).find(name => !isDecodable(raw[name] ?? ''));
  return wrong === undefined ? undefined : `${wrong} must be percent-encoded UTF-8 and not . or ..`;
}

function isDecodable(text: string): boolean {
  try {
    return !/^\.\.?$/.test(decodeURIComponent(text));
  } catch {
    return false;
  }
}

/**
 * The parameter that ajv misread from its text, if there is one: it takes `0x10` and ` 16` for 16 and the
 * empty string for null, and rounds different large numbers to the same one.
 */
export function misreadParameter(
  texts: Texts,
  values: Readonly<Record<string, unknown>>,
): string | undefined {
  const name = Object.keys(texts).find(each => isMisread(texts[each] ?? '', values[each]));
  return name === undefined
    ? undefined
    : `${name} must be written as in JSON: a number such as 7 or 0.5, with at most 15 digits`;
}

function isMisread(text: Text, value: unknown): boolean {
  if (Array.isArray(text)) return text.some((each, index) => isMisread(each, [value].flat()[index]));
  if (typeof text === 'object')
    return Object.entries(text).some(([member, each]) => isMisread(each, objectOf(value)[member]));
  if (typeof value !== 'number') return value === null;
  return (
    !NUMBER.test(text) || !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))
  );
}
