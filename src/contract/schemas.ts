import { _, str, type KeywordDefinition, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Json } from './json.js';
import { isObject, objectOf } from './references.js';
import { uniqueItems } from './unique-items.js';

/** What is wrong with a value, or undefined. */
export type Check = (value: unknown) => string | undefined;

const DOCUMENT = 'contract';
const THE_BODY = 'the body';
/** Of the fields that an error lists. */
const MAX_NAMES = 20;

/**
 * The schemas of the contract as functions, compiled when first used. They refer to each other within the document (ajv, in the 2020
 * dialect that OpenAPI 3.1 uses), so a schema may contain itself.
 */
export class Schemas {
  readonly #asked: Compiler;
  readonly #answered: Compiler;

  constructor(document: Json) {
    this.#asked = new Compiler(document, true);
    this.#answered = new Compiler(document, false);
  }

  /** Checks what a caller sent, and sets defaults in place. Types are not coerced. `what` is its name in messages. */
  asked(schema: Json, what: string): Check {
    return this.#asked.check(schema, what);
  }

  /** Checks what a handler answered. */
  answered(schema: Json): Check {
    return this.#answered.check(schema, THE_BODY);
  }
}

class Compiler {
  readonly #ajv: Ajv2020;
  readonly #compiled = new WeakMap<Json, ValidateFunction>();

  constructor(document: Json, useDefaults: boolean) {
    this.#ajv = createAjv(useDefaults);
    this.#ajv.addSchema(document, DOCUMENT);
  }

  check(schema: Json, what: string): Check {
    let validate = this.#compiled.get(schema);
    if (!validate) {
      validate = this.#ajv.compile(absolute(schema) as Json);
      this.#compiled.set(schema, validate);
    }
    const compiled = validate;
    return value => (compiled(value) ? undefined : describe(compiled.errors?.[0], what));
  }
}

/** A copy of a part of the document whose references work outside of it. */
function absolute(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(absolute);
  if (!isObject(part)) return part;
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string' && value.startsWith('#')
        ? `${DOCUMENT}${value}`
        : absolute(value),
    ]),
  );
}

type AjvError = {
  instancePath: string;
  message?: string;
  keyword: string;
  params: Record<string, unknown>;
  /** The schema that has the keyword. */
  parentSchema?: Json;
  /** The value that was sent. */
  data?: unknown;
};

/** Names the field as a caller would: `n`, `kids.0.name`, or `what` for the whole. */
function describe(error: unknown, what: string): string {
  const { instancePath, message, keyword, params, parentSchema, data } = error as AjvError;
  const steps = instancePath.split('/').slice(1);
  const place = [...(what === THE_BODY ? [] : [what]), ...steps].join('.');
  if (keyword === 'required') return missingFields(String(params.missingProperty), place, parentSchema, data);
  if (keyword === 'additionalProperties')
    return unknownField(String(params.additionalProperty), place, parentSchema);
  return `${place || what} ${(WORDS[keyword]?.(params, data, parentSchema) ?? message ?? keyword).slice(0, 300)}`;
}

/** All of them, not just the first, which a caller would otherwise learn one by one. */
function missingFields(first: string, place: string, schema: Json | undefined, data: unknown): string {
  const required = Array.isArray(schema?.required) ? schema.required.map(String) : [first];
  const absent = required.filter(name => objectOf(data)[name] === undefined).slice(0, MAX_NAMES);
  const names = (absent.length > 0 ? absent : [first]).map(name => [place, name].filter(Boolean).join('.'));
  const last = names.pop() ?? first;
  return names.length > 0 ? `${names.join(', ')} and ${last} are missing` : `${last} is missing`;
}

function unknownField(name: string, place: string, schema: Json | undefined): string {
  const known = Object.keys(objectOf(schema?.properties)).slice(0, MAX_NAMES);
  const only = known.length > 0 ? `; it takes ${known.join(', ')} only` : '';
  return `unknown field '${name.slice(0, 60)}' in ${place || THE_BODY}${only}`;
}

const BASE58 = '[1-9A-HJ-NP-Za-km-z]';

const TYPES: Record<string, string | undefined> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};

/** Plain messages for common ajv errors; other errors keep ajv's message. */
const WORDS: Record<
  string,
  ((params: Record<string, unknown>, data: unknown, schema: Json | undefined) => string) | undefined
> = {
  type: ({ type }) =>
    `must be ${[type]
      .flat()
      .map(each => TYPES[String(each)] ?? String(each))
      .join(' or ')}`,
  minLength: ({ limit }) =>
    limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} characters`,
  maxLength: ({ limit }, data) =>
    `must have at most ${String(limit)} characters, and has ${lengthShown(String(data), Number(limit))}`,
  minItems: ({ limit }) => `must have at least ${String(limit)} ${limit === 1 ? 'item' : 'items'}`,
  maxItems: ({ limit }) => `must have at most ${String(limit)} ${limit === 1 ? 'item' : 'items'}`,
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  enum: ({ allowedValues }) => `must be one of ${JSON.stringify(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  pattern: ({ pattern }, data, schema) => {
    if (data === '') return 'must not be empty';
    return String(pattern).includes(BASE58)
      ? `must be a base58 address: ${lengthOf(schema)}letters and digits, without 0, O, I and l`
      : `must match the pattern ${String(pattern)}`;
  },
};

/** `32 to 44 `, if the schema says so. */
function lengthOf(schema: Json | undefined): string {
  const { minLength: least, maxLength: most } = schema ?? {};
  return typeof least === 'number' && typeof most === 'number' ? `${least} to ${most} ` : '';
}

function createAjv(useDefaults: boolean): Ajv2020 {
  // strictNumbers: otherwise NaN and Infinity would pass as numbers and be sent as null.
  // The schemas are checked against the dialect before a release; checking them here would take a quarter of the start-up time.
  const ajv = new Ajv2020({
    strict: false,
    strictNumbers: true,
    useDefaults,
    allErrors: false,
    // For the names of the fields that are known.
    verbose: true,
    meta: false,
    validateSchema: false,
    // It would write about formats that it does not know.
    logger: false,
  });
  formats.default(ajv);
  ajv.addFormat('binary', true);
  for (const fast of [minLength, maxLength, uniqueItems]) {
    ajv.removeKeyword(fast.keyword as string);
    ajv.addKeyword(fast);
  }
  return ajv;
}

const LIMIT: NonNullable<KeywordDefinition['error']> = {
  message: ({ schemaCode }) => str`must keep within the limit of ${schemaCode} characters`,
  params: ({ schemaCode }) => _`{limit: ${schemaCode}}`,
};

/**
 * ajv's own minLength and maxLength count every code point of every string. A string has at most `length` code points and at
 * least half as many, so most strings need no counting, and for the others it can end early.
 */
const minLength: KeywordDefinition = {
  keyword: 'minLength',
  type: 'string',
  schemaType: 'number',
  validate: (limit: number, text: string) =>
    text.length >= 2 * limit || (text.length >= limit && !codePointsWithin(text, limit - 1)),
  error: LIMIT,
};

const maxLength: KeywordDefinition = {
  keyword: 'maxLength',
  type: 'string',
  schemaType: 'number',
  validate: (limit: number, text: string) => text.length <= limit || codePointsWithin(text, limit),
  error: LIMIT,
};

function codePointsWithin(text: string, limit: number): boolean {
  return text.length <= 2 * limit && codePointsUpTo(text, limit) <= limit;
}

/** Where a text is much too long, its length is not worth counting it to the end. */
function lengthShown(text: string, limit: number): string {
  const most = 2 * limit;
  const count = codePointsUpTo(text, most);
  return count > most ? `more than ${most}` : String(count);
}

/** The number of code points, or `most` + 1 if there are more than `most`. */
function codePointsUpTo(text: string, most: number): number {
  let count = 0;
  for (let index = 0; index < text.length && count <= most; index++) {
    const unit = text.charCodeAt(index);
    const pair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00;
    if (pair) index += 1;
    count += 1;
  }
  return count;
}
