import { _, str, type KeywordDefinition, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Json } from './json.js';
import { isObject } from './references.js';

/** What is wrong with a value, or undefined. */
export type Check = (value: unknown) => string | undefined;

const DOCUMENT = 'contract';

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
    return this.#answered.check(schema, 'the body');
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

type AjvError = { instancePath: string; message?: string; keyword: string; params: Record<string, unknown> };

function describe(error: unknown, what: string): string {
  const { instancePath, message, keyword, params } = error as AjvError;
  const place = instancePath.replace(/^\//, '').replaceAll('/', '.');
  const says = (WORDS[keyword]?.(params) ?? message ?? keyword).slice(0, 300);
  return keyword === 'required' || keyword === 'additionalProperties'
    ? `${place && `${place}: `}${says}`
    : `${place || what}: ${says}`;
}

const BASE58 = '[1-9A-HJ-NP-Za-km-z]';

/** Plain messages for common ajv errors; other errors keep ajv's message. */
const WORDS: Record<string, ((params: Record<string, unknown>) => string) | undefined> = {
  required: ({ missingProperty }) => `${String(missingProperty)} is missing`,
  additionalProperties: ({ additionalProperty }) =>
    `unknown field '${String(additionalProperty).slice(0, 60)}'`,
  type: ({ type }) => `must be ${String(type) === 'integer' ? 'a whole number' : `of type ${String(type)}`}`,
  minLength: ({ limit }) =>
    limit === 1 ? 'must not be empty' : `must have at least ${String(limit)} characters`,
  maxLength: ({ limit }) => `must have at most ${String(limit)} characters`,
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  enum: ({ allowedValues }) => `must be one of ${JSON.stringify(allowedValues)}`,
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  pattern: ({ pattern }) =>
    String(pattern).includes(BASE58)
      ? 'must be a base58 address'
      : `must match the pattern ${String(pattern)}`,
};

function createAjv(useDefaults: boolean): Ajv2020 {
  // strictNumbers: otherwise NaN and Infinity would pass as numbers and be sent as null.
  // The schemas are checked against the dialect before a release; checking them here would take a quarter of the start-up time.
  const ajv = new Ajv2020({
    strict: false,
    strictNumbers: true,
    useDefaults,
    allErrors: false,
    meta: false,
    validateSchema: false,
    // It would write about formats that it does not know.
    logger: false,
  });
  formats.default(ajv);
  ajv.addFormat('binary', true);
  for (const fast of [minLength, maxLength]) {
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
  if (text.length > 2 * limit) return false;
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    const pair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00;
    if (pair) index += 1;
    count += 1;
    if (count > limit) return false;
  }
  return true;
}
