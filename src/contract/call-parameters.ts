import type { Json } from './json.js';
import { parameterNames } from './paths.js';
import type { PricedOperation } from './read-operation.js';
import type { Parameter } from './read-parameters.js';
import { follow, isObject } from './references.js';
import type { Check, Schemas } from './schemas.js';

type Values = Record<string, unknown>;

/** The declared path and query parameters of a call, or what is wrong with them. */
export type ReadParameters = { ok: true; params: Values; query: Values } | { ok: false; error: string };

type Reader = Parameter & { types: ReadonlySet<string>; fallback: unknown; check: Check };

/** JSON's own numbers; `0x10`, ` 5 ` and `1e999` are none. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/;

/** Reads the path and query parameters that the contract declares for an operation; others are ignored. */
export class CallParameters {
  readonly #names: string[];
  readonly #path: Map<string, Reader>;
  readonly #query: Reader[];

  constructor(document: Json, operation: PricedOperation, schemas: Schemas) {
    const readers = operation.parameters.map(parameter => ({
      ...parameter,
      types: typesOf(document, parameter.list ? itemsOf(document, parameter.schema) : parameter.schema),
      fallback: follow(document, parameter.schema).default,
      check: schemas.asked(parameter.schema, parameter.name),
    }));
    this.#names = parameterNames(operation.path);
    this.#path = new Map(readers.filter(each => each.in === 'path').map(reader => [reader.name, reader]));
    this.#query = readers.filter(each => each.in === 'query');
  }

  /** @param raw the text of the path parameters, in order; `query` without its question mark */
  read(raw: string[], query: string): ReadParameters {
    const params: Values = {};
    for (const [index, name] of this.#names.entries()) {
      const reader = this.#path.get(name);
      const text = decoded(raw[index] ?? '');
      if (!reader || text === undefined)
        return { ok: false, error: `${name} must be percent-encoded UTF-8 and not . or ..` };
      const error = take(reader, [text], params);
      if (error) return { ok: false, error };
    }
    const sent = new URLSearchParams(query);
    const read: Values = {};
    for (const reader of this.#query) {
      const error = take(reader, sent.getAll(reader.name), read);
      if (error) return { ok: false, error };
    }
    return { ok: true, params, query: read };
  }
}

/** The text of a path parameter. `.` and `..` would lead elsewhere in the path of an upstream. */
function decoded(raw: string): string | undefined {
  try {
    const text = decodeURIComponent(raw);
    return text === '.' || text === '..' ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Adds the value of a parameter to `into`. Returns what is wrong with it, if anything. */
function take(reader: Reader, texts: string[], into: Values): string | undefined {
  const { name, required, list, fallback, types, check } = reader;
  if (texts.length === 0) {
    if (required) return `${name} is missing`;
    if (fallback !== undefined) into[name] = fallback;
    return undefined;
  }
  if (!list && texts.length > 1) return `${name} must be sent only once`;
  const values = list ? [texts.map(text => candidates(text, types)[0])] : candidates(texts[0] ?? '', types);
  let error: string | undefined;
  for (const value of values) {
    error = check(value);
    if (error !== undefined) continue;
    into[name] = value;
    return undefined;
  }
  return error;
}

/** What a text can mean under the types of its schema, the most specific first; the text itself if it can mean nothing. */
function candidates(text: string, types: ReadonlySet<string>): unknown[] {
  const found: unknown[] = [];
  if ((types.has('number') || types.has('integer')) && NUMBER.test(text)) {
    const value = Number(text);
    // Two different whole numbers must not become one.
    if (Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value)))
      found.push(value === 0 ? 0 : value);
  }
  if (types.has('boolean') && (text === 'true' || text === 'false')) found.push(text === 'true');
  if (types.has('string') || found.length === 0) found.push(text);
  return found;
}

function itemsOf(document: Json, schema: Json): Json {
  const { items } = follow(document, schema);
  return isObject(items) ? items : {};
}

const MAX_DEPTH = 16;

/** The JSON types that a schema may allow; `string` if it says nothing. */
function typesOf(document: Json, schema: Json, depth = 0): ReadonlySet<string> {
  const { type, enum: values, const: only, anyOf, oneOf, allOf } = follow(document, schema);
  if (typeof type === 'string') return new Set([type]);
  if (Array.isArray(type)) return new Set(type.map(String));
  if (Array.isArray(values)) return new Set(values.map(value => typeof value));
  if (only !== undefined) return new Set([typeof only]);
  const parts = [anyOf, oneOf, allOf].flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []));
  const types =
    depth > MAX_DEPTH ? [] : parts.filter(isObject).map(part => typesOf(document, part, depth + 1));
  return types.length === 0 ? new Set(['string']) : new Set(types.flatMap(each => [...each]));
}
