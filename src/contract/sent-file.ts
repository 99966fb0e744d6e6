import type { Json } from './json.js';
import { isObject, resolved } from './references.js';

/** A file of a multipart form. */
export type SentFile = { bytes: Buffer; type: string; name?: string };

const ANY_TYPE = 'application/octet-stream';
const MAX_DEPTH = 8;

/**
 * A file in a call, also in JSON: `data:image/png;name=photo.png;base64,…`. Schemas of files describe a string, so handlers get, orders
 * store and MCP tools take files in this form.
 */
export function dataUrl({ bytes, type, name }: SentFile): string {
  const named = name === undefined ? '' : `;name=${encodeURIComponent(name)}`;
  return `data:${type}${named};base64,${bytes.toString('base64')}`;
}

/** Reads a file from a data URL, or from base64 alone; undefined if the text is neither. */
export function fileOf(text: string, type = ANY_TYPE): SentFile | undefined {
  if (!text.startsWith('data:')) return ofBase64(text, { type });
  const comma = text.indexOf(',');
  const head = /^data:([\w!#$&^.+-]+\/[\w!#$&^.+-]+)?(?:;name=([^;,]*))?;base64$/.exec(
    text.slice(0, Math.max(comma, 0)),
  );
  if (!head) return undefined;
  const [, named = type, name] = head;
  const known = name === undefined ? undefined : decodedName(name);
  if (name !== undefined && (known === undefined || !isFileName(known))) return undefined;
  return ofBase64(text.slice(comma + 1), {
    type: named.toLowerCase(),
    ...(known === undefined ? {} : { name: known }),
  });
}

function ofBase64(text: string, about: Omit<SentFile, 'bytes'>): SentFile | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? { bytes, ...about } : undefined;
}

function decodedName(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

/** Control characters would end the header that contains the name. */
export function isFileName(name: string): boolean {
  return name !== '' && !/\p{Cc}|\p{Surrogate}/u.test(name);
}

/** Whether a field of a multipart form is a file: a string that is binary, or that has a media type and is not encoded as text. */
export function isFile(document: Json, schema: unknown, depth = 0): boolean {
  const described = resolved(document, schema);
  const { anyOf, oneOf } = described;
  const parts = [anyOf, oneOf].flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []));
  const others = parts.filter(part => resolved(document, part).type !== 'null');
  if (others.length > 0 && depth < MAX_DEPTH) return others.every(part => isFile(document, part, depth + 1));
  return isBytes(described);
}

function isBytes({ type = 'string', format, contentMediaType, contentEncoding }: Json): boolean {
  const types = [type].flat().filter(each => each !== 'null');
  if (types.length !== 1 || types[0] !== 'string') return false;
  return format === 'binary' || (contentMediaType !== undefined && contentEncoding === undefined);
}

const AS_TEXT =
  'A file, as base64 or as a data URL, which also gives its type and name: data:image/png;name=photo.png;base64,…';

/** A schema without references, with its files described as strings, for places that have only JSON. */
export function withFilesAsText(plain: Json): Json {
  const copy = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(copy);
    if (!isObject(part)) return part;
    const members = Object.fromEntries(Object.entries(part).map(([key, each]) => [key, copy(each)]));
    return isBytes(part) ? fileText(members) : members;
  };
  return copy(plain) as Json;
}

/** The keywords of a schema that apply to bytes but not to text. */
const OF_BYTES = ['format', 'minLength', 'maxLength', 'pattern', 'description'];

/** A schema of bytes, rewritten for their text form. */
export function fileText(schema: Json, words = AS_TEXT): Json {
  const kept = Object.entries(schema).filter(([key]) => !OF_BYTES.includes(key));
  const { description } = schema;
  const text = typeof description === 'string' ? `${description.trim()} ${words}` : words;
  return {
    ...Object.fromEntries<unknown>(kept),
    type: 'string',
    contentEncoding: 'base64',
    description: text,
  };
}
