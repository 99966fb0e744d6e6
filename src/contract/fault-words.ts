import type { ErrorObject } from 'ajv';
import { codePointsUpTo } from './ajv.js';
import type { Json } from './json.js';
import { objectOf } from './references.js';

const THE_BODY = 'the body';
/** The maximum number of fields that an error lists. */
const MAX_NAMES = 20;

type AjvError = Pick<ErrorObject, 'instancePath' | 'keyword' | 'params'> &
  Partial<Pick<ErrorObject, 'message' | 'parentSchema' | 'data'>>;

/** What is wrong with a request. In openapi-backend's errors, the parts of a request are `/requestBody`, `/path` and `/query`. */
export function requestFault(errors: readonly AjvError[]): string {
  const error = errors.find(({ instancePath }) => !instancePath.startsWith('/requestBody')) ?? errors[0];
  if (!error) return 'the request does not match the contract';
  const [part = '', ...steps] = error.instancePath.split('/').slice(1);
  return part === '' && error.params.missingProperty === 'requestBody'
    ? `${THE_BODY} is missing`
    : worded(error, steps);
}

/** What is wrong with the body of an answer, or with another value. Fields are named as a caller would name them: `n`, `kids.0.name`. */
export function valueFault(errors: readonly AjvError[] | null | undefined, name?: string): string {
  const [error] = errors ?? [];
  if (!error) return `${name ?? THE_BODY} does not match the contract`;
  return worded(error, [...(name === undefined ? [] : [name]), ...error.instancePath.split('/').slice(1)]);
}

function worded({ keyword, params, message, parentSchema, data }: AjvError, steps: string[]): string {
  const place = steps.join('.');
  if (keyword === 'required') return missingFields(String(params.missingProperty), place, parentSchema, data);
  if (keyword === 'additionalProperties')
    return unknownField(String(params.additionalProperty), place, parentSchema);
  return `${place || THE_BODY} ${(WORDS[keyword]?.(params, data, parentSchema) ?? message ?? keyword).slice(0, 300)}`;
}

/** Lists all missing fields at once, so that a caller need not find them one by one. */
function missingFields(first: string, place: string, schema: Json | undefined, data: unknown): string {
  const required = Array.isArray(schema?.required) ? schema.required.map(String) : [first];
  const absent = required.filter(name => objectOf(data)[name] === undefined).slice(0, MAX_NAMES);
  const names = (absent.length > 0 ? absent : [first]).map(name => [place, name].filter(Boolean).join('.'));
  const last = names.pop() ?? first;
  return names.length > 0 ? `${names.join(', ')} and ${last} are missing` : `${last} is missing`;
}

function unknownField(name: string, place: string, schema: Json | undefined): string {
  const known = Object.keys(objectOf(schema?.properties)).slice(0, MAX_NAMES);
  const only = known.length > 0 ? `; it takes only ${known.join(', ')}` : '';
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

/** If a string is much too long, it is not counted to the end. */
function lengthShown(text: string, limit: number): string {
  const most = 2 * limit;
  const count = codePointsUpTo(text, most);
  return count > most ? `more than ${most}` : String(count);
}
