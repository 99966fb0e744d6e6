import { _, str, type KeywordDefinition, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Json } from './json.js';
import { boundedRegExp } from './pattern.js';
import { isObject } from './references.js';
import { uniqueItems } from './unique-items.js';

const DOCUMENT = 'contract';

/** For validators that are called once or twice: ajv spends half of the compilation on making them faster. */
export const ONCE = { code: { optimize: false } } as const;

/**
 * Compiles schemas of the contract, in the 2020 dialect that OpenAPI 3.1 uses. Their references (see `absolute`) point into the document,
 * so a schema may contain itself.
 */
export function createAjv(
  document: Json,
  options: Pick<Options, 'useDefaults' | 'coerceTypes' | 'code'>,
): Ajv2020 {
  // strictNumbers: otherwise NaN and Infinity would pass as numbers and be sent as null.
  // The schemas are checked against the dialect before a release; checking them here would take a quarter of the start-up time.
  const ajv = new Ajv2020({
    ...options,
    code: { ...options.code, regExp: boundedRegExp },
    strict: false,
    strictNumbers: true,
    allErrors: false,
    // Errors then contain the schema, which has the names of the known fields.
    verbose: true,
    meta: false,
    validateSchema: false,
    // Otherwise ajv logs a warning for each unknown format.
    logger: false,
  });
  formats.default(ajv);
  ajv.addFormat('binary', true);
  for (const fast of [minLength, maxLength, uniqueItems]) {
    ajv.removeKeyword(fast.keyword as string);
    ajv.addKeyword(fast);
  }
  ajv.addSchema(withoutNames(document) as Json, DOCUMENT);
  return ajv;
}

/**
 * Removes the `$id` of schemas: references by `$id` are not supported (see `follow`), and ajv, which also finds them in examples, would
 * fail if one occurred twice. Parts without one are returned as they are, because a document is large.
 */
function withoutNames(part: unknown): unknown {
  if (Array.isArray(part)) {
    const all = part.map(withoutNames);
    return all.some((each, index) => each !== part[index]) ? all : part;
  }
  if (!isObject(part)) return part;
  const members = Object.entries(part).map(([key, value]) => [key, withoutNames(value)] as const);
  const others = members.filter(member => !isName(member));
  const same = others.length === members.length && members.every(([key, value]) => value === part[key]);
  return same ? part : Object.fromEntries(others);
}

function isName([key, value]: readonly [string, unknown]): boolean {
  return key === '$id' && typeof value === 'string';
}

type Compiler = (schema: Json) => ValidateFunction | Error;

const COMPILERS = new WeakMap<Json, Compiler>();

/**
 * Compiles schemas of the document. Equal schemas, such as those of operations that refer to the same one, are compiled once per build.
 */
export function compilerOf(document: Json): Compiler {
  const known = COMPILERS.get(document) ?? newCompiler(document);
  COMPILERS.set(document, known);
  return known;
}

function newCompiler(document: Json): Compiler {
  const ajv = createAjv(document, ONCE);
  const compiled = new Map<string, ValidateFunction | Error>();
  return schema => {
    const key = JSON.stringify(schema);
    const known = compiled.get(key) ?? compiledBy(ajv, schema);
    compiled.set(key, known);
    return known;
  };
}

function compiledBy(ajv: Ajv2020, schema: Json): ValidateFunction | Error {
  try {
    return ajv.compile(absolute(schema));
  } catch (error) {
    return error as Error;
  }
}

/** A copy of a part of the document, with references that work outside it and without its `$id`. */
export function absolute(part: Json): Json {
  return copied(withoutNames(part)) as Json;
}

function copied(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(copied);
  if (!isObject(part)) return part;
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string' && value.startsWith('#')
        ? `${DOCUMENT}${value}`
        : copied(value),
    ]),
  );
}

const LIMIT: NonNullable<KeywordDefinition['error']> = {
  message: ({ schemaCode }) => str`must keep within the limit of ${schemaCode} characters`,
  params: ({ schemaCode }) => _`{limit: ${schemaCode}}`,
};

/**
 * ajv's own minLength and maxLength count every code point of every string. A string has at most `length` code points and at least half as
 * many, so most strings need no counting. For the others, counting can end early.
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

/** The number of code points, or `most` + 1 if there are more than `most`. */
export function codePointsUpTo(text: string, most: number): number {
  let count = 0;
  for (let index = 0; index < text.length && count <= most; index++) {
    const unit = text.charCodeAt(index);
    const pair = unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00;
    if (pair) index += 1;
    count += 1;
  }
  return count;
}
