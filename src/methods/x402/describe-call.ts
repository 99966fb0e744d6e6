import type { Parameter, PricedOperation, RequestBody } from '../../contract/contract.js';
import type { Json } from '../../contract/json.js';
import { fieldsOf, isObject } from '../../contract/references.js';

const MAX_VALUES = 8;

/** The type of a value in a few words, from a schema without references: `string`, `"a" | "b"`, `integer[]`. */
export function typeText(schema: Json): string {
  const { type, enum: values, const: only, items, anyOf, oneOf, allOf } = schema;
  if (only !== undefined) return JSON.stringify(only);
  if (Array.isArray(values) && values.length <= MAX_VALUES)
    return values.map(value => JSON.stringify(value)).join(' | ');
  if (type === 'array') return `${isObject(items) ? bracketed(typeText(items)) : 'any'}[]`;
  if (typeof type === 'string') return type;
  if (Array.isArray(type)) return type.join(' | ');
  for (const parts of [anyOf, oneOf])
    if (Array.isArray(parts)) return [...new Set(parts.filter(isObject).map(typeText))].join(' | ');
  if (fieldsOf(schema, schema)) return 'object';
  const parts = Array.isArray(allOf) ? allOf.filter(isObject).map(typeText) : [];
  return parts.find(part => part !== 'any') ?? 'any';
}

function bracketed(text: string): string {
  return text.includes(' ') ? `(${text})` : text;
}

/** The fields of a JSON body, from a schema without references. */
export function bodyFields(schema: Json): { name: string; schema: Json; required: boolean }[] {
  const { properties, required } = fieldsOf(schema, schema) ?? { properties: {}, required: [] };
  return Object.entries(properties).map(([name, field]) => ({
    name,
    schema: field,
    required: required.includes(name),
  }));
}

/** A body in one line; empty if it is an object without fields. */
function bodyShape({ kind, mimeType, object, objectArguments, plain }: RequestBody): string {
  if (kind === 'text' || kind === 'binary') return mimeType;
  const fields = bodyFields(plain);
  const shown = fields.length > 0 && objectArguments ? fieldsText(fields) : object ? '' : typeText(plain);
  if (shown === '') return '';
  return kind === 'json' ? shown : `${kind} ${shown}`;
}

/** How to call an operation, in one line: `GET /a/{id} path {"id": string} query {"days"?: integer}`. */
export function callShape({ method, path, parameters, request }: PricedOperation): string {
  const parts = [
    ['path ', fieldsIn('path', parameters)],
    ['query ', fieldsIn('query', parameters)],
    ['header ', fieldsIn('header', parameters)],
  ] as const;
  const texts = parts
    .filter(([, fields]) => fields.length > 0)
    .map(([label, fields]) => label + fieldsText(fields));
  const body = request ? bodyShape(request) : '';
  return [method, path, ...texts, ...(body === '' ? [] : [body])].join(' ');
}

type Field = { name: string; schema: Json; required: boolean };

function fieldsIn(where: Parameter['in'], parameters: readonly Parameter[]): Field[] {
  return parameters
    .filter(each => each.in === where)
    .map(({ name, plain, required, description = plain.description }) => ({
      name,
      schema: { ...plain, description },
      required,
    }));
}

function fieldsText(fields: readonly Field[]): string {
  const texts = fields.map(
    ({ name, schema, required }) => `${JSON.stringify(name)}${required ? '' : '?'}: ${typeText(schema)}`,
  );
  return `{${texts.join(', ')}}`;
}

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/** The `bazaar` (discovery) extension of x402 v2: the input of a call, and the schemas of input and output. */
export function discovery(
  { answers: [{ kind, mimeType }] }: PricedOperation,
  input: Json,
  like: { properties: Json; required: string[] },
  outputs: Json = {},
): Json {
  const output = { type: 'object', properties: { type: { type: 'string' }, ...outputs }, required: ['type'] };
  return {
    info: {
      input,
      output: { type: kind, ...(kind === 'json' || kind === 'none' ? {} : { format: mimeType }) },
    },
    schema: {
      $schema: DIALECT,
      type: 'object',
      properties: { input: { type: 'object', ...like, additionalProperties: false }, output },
      required: ['input'],
    },
  };
}

/**
 * How to call an operation over HTTP, with the contract's own examples. `whole` false leaves out the schemas, for challenges that would
 * be too large. Examples are never shortened.
 */
export function bazaarOf(operation: PricedOperation, whole: boolean): Json {
  const { method, path, parameters, request } = operation;
  // Crawlers know two kinds of call, those with a query and those with a body. A DELETE without a body is
  // described like a GET.
  const bodyType = bodyTypeOf(request);
  const post = request !== undefined || !['GET', 'DELETE'].includes(method);
  const groups = (
    [
      ['query', 'queryParams'],
      ['path', 'pathParams'],
      ['header', 'headers'],
    ] as const
  )
    .map(([where, name]) => ({ name, among: parameters.filter(each => each.in === where) }))
    // Crawlers look for the input of a GET only in `queryParams`, even if it has none.
    .filter(({ name, among }) => among.length > 0 || (!post && name === 'queryParams'));
  const input = {
    type: 'http',
    method,
    ...(post ? { bodyType, body: request?.example ?? {} } : {}),
    ...Object.fromEntries(
      groups.filter(({ among }) => among.length > 0).map(({ name, among }) => [name, examplesOf(among)]),
    ),
  };
  const anything = { type: 'object' };
  const properties = {
    type: { type: 'string', const: 'http' },
    method: { type: 'string', enum: [method] },
    ...(post ? { bodyType: { type: 'string', enum: [bodyType] } } : {}),
    ...(post ? { body: whole && request ? withoutProse(request.plain) : anything } : {}),
    ...Object.fromEntries(groups.map(({ name, among }) => [name, whole ? schemaOf(among) : anything])),
  };
  const required = ['type', 'method', ...(post ? ['bodyType', 'body'] : [])];
  return {
    ...discovery(operation, input, { properties, required }, { example: { type: 'object' } }),
    ...(path.includes('{') ? { routeTemplate: path.replace(/\{([^{}/]+)\}/g, ':$1') } : {}),
  };
}

/** x402's name for a kind of body. */
function bodyTypeOf(request: RequestBody | undefined): 'json' | 'form-data' | 'text' {
  if (!request || request.kind === 'json') return 'json';
  return request.form ? 'form-data' : 'text';
}

/** The `payment-identifier` (idempotency) extension of x402 v2. */
export const PAYMENT_IDENTIFIER: Json = {
  info: { required: false },
  schema: {
    $schema: DIALECT,
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
};

/** Describes request and answer for crawlers in the form of x402 v1. `whole` false leaves out the example of the answer. */
export function outputSchemaOf(operation: PricedOperation, whole: boolean): Json {
  const { method, parameters, request, answers } = operation;
  const [{ kind, mimeType, example }] = answers;
  const described = (fields: readonly Field[]): Json =>
    Object.fromEntries(
      fields.map(({ name, schema, required }) => [
        name,
        { type: schema.type ?? typeText(schema), description: schema.description, required },
      ]),
    );
  const inRequest = (
    [
      ['path', 'pathParams'],
      ['query', 'queryParams'],
      ['header', 'headerFields'],
    ] as const
  ).flatMap(([where, name]) => {
    const fields = fieldsIn(where, parameters);
    return fields.length > 0 ? [[name, described(fields)] as const] : [];
  });
  const output = kind === 'json' || kind === 'none' ? example : { type: kind, format: mimeType };
  return {
    input: {
      type: 'http',
      method,
      discoverable: true,
      ...Object.fromEntries(inRequest),
      ...(request ? { bodyType: bodyTypeOf(request), bodyFields: described(bodyFields(request.plain)) } : {}),
    },
    ...(whole && output !== undefined ? { output } : {}),
  };
}

function examplesOf(parameters: Parameter[]): Json {
  return Object.fromEntries(
    parameters.filter(({ example }) => example !== undefined).map(({ name, example }) => [name, example]),
  );
}

function schemaOf(parameters: Parameter[]): Json {
  const required = parameters.filter(each => each.required).map(({ name }) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(parameters.map(({ name, plain }) => [name, withoutProse(plain)])),
    ...(required.length > 0 ? { required } : {}),
  };
}

/** Descriptions and examples in a schema do not affect what is valid. */
const PROSE = ['description', 'title', 'example', 'examples', '$comment'];

function withoutProse(schema: unknown, ofNames = false): unknown {
  if (Array.isArray(schema)) return schema.map(each => withoutProse(each));
  if (!isObject(schema)) return schema;
  // The members of `properties` are names of fields, even if a field is called `title`.
  const kept = Object.entries(schema).filter(([key]) => ofNames || !PROSE.includes(key));
  return Object.fromEntries(
    kept.map(([key, value]) => [key, withoutProse(value, !ofNames && /^(properties|\$defs)$/.test(key))]),
  );
}
