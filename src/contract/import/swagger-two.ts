import type { Json } from '../json.js';
import { isObject, objectOf } from '../references.js';
import type { Source } from './source-document.js';

/** Keywords that a parameter or header of Swagger 2.0 has itself and OpenAPI 3 has in a schema. */
const OF_SCHEMA = [
  ...['type', 'format', 'default', 'items', 'enum', 'pattern', 'uniqueItems', 'multipleOf', 'x-nullable'],
  ...['maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum'],
  ...['maxLength', 'minLength', 'maxItems', 'minItems'],
];
const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data'];

const STYLES: Record<string, Json | undefined> = {
  csv: { style: 'form', explode: false },
  multi: { style: 'form', explode: true },
  ssv: { style: 'spaceDelimited', explode: false },
  pipes: { style: 'pipeDelimited', explode: false },
};

/** The servers of a Swagger 2.0 document. */
export function serversOfTwo({ host, basePath, schemes }: Json): Json[] {
  const base = typeof basePath === 'string' ? basePath : '';
  if (typeof host !== 'string') return [{ url: base === '' ? '/' : base }];
  const names = Array.isArray(schemes) ? schemes.map(String) : [];
  const scheme = names.includes('https') || names.length === 0 ? 'https' : (names[0] ?? 'https');
  return [{ url: `${scheme}://${host}${base}` }];
}

/** The security schemes of a Swagger 2.0 document, in the form of OpenAPI 3. */
export function securityOfTwo({ securityDefinitions }: Json): Json {
  const schemes = Object.entries(objectOf(securityDefinitions));
  return Object.fromEntries(
    schemes.map(([name, scheme]) => [
      name,
      objectOf(scheme).type === 'basic' ? { ...objectOf(scheme), type: 'http', scheme: 'basic' } : scheme,
    ]),
  );
}

/** An operation of Swagger 2.0 in the form of OpenAPI 3, with the parameters of its path added. */
export function operationOfTwo(source: Source, parameters: readonly Json[], operation: Json): Json {
  const { document } = source;
  const consumes = typesOf(operation.consumes ?? document.consumes);
  const produces = typesOf(operation.produces ?? document.produces);
  const body = parameters.find(each => each.in === 'body');
  const fields = parameters.filter(each => each.in === 'formData');
  const others = parameters.filter(each => each.in !== 'body' && each.in !== 'formData');
  const requestBody = body
    ? bodyOf(body, consumes)
    : fields.length > 0
      ? formOf(fields, consumes)
      : undefined;
  const responses = Object.entries(objectOf(operation.responses));
  return {
    ...operation,
    parameters: others.map(parameterOf),
    ...(requestBody ? { requestBody } : {}),
    responses: Object.fromEntries(
      responses.map(([status, each]) => [status, responseOf(source.follow(each), produces)]),
    ),
  };
}

function typesOf(list: unknown): string[] {
  const types = Array.isArray(list) ? list.filter(each => typeof each === 'string') : [];
  return types.length > 0 ? types : ['application/json'];
}

function schemaOf(holder: Json): Json {
  return Object.fromEntries(Object.entries(holder).filter(([key]) => OF_SCHEMA.includes(key)));
}

function parameterOf(parameter: Json): Json {
  const { name, in: where, description, required, type, collectionFormat = 'csv' } = parameter;
  const listed = type === 'array' && where === 'query' ? STYLES[String(collectionFormat)] : undefined;
  return {
    ...{ name, in: where, description, required, schema: schemaOf(parameter) },
    ...listed,
    ...('x-example' in parameter ? { example: parameter['x-example'] } : {}),
  };
}

function bodyOf({ description, required, schema }: Json, consumes: string[]): Json {
  return { description, required, content: Object.fromEntries(consumes.map(type => [type, { schema }])) };
}

function formOf(fields: readonly Json[], consumes: string[]): Json {
  const file = fields.some(({ type }) => type === 'file');
  const properties = fields.map(each => [
    String(each.name),
    { ...(each.type === 'file' ? { type: 'string', format: 'binary' } : schemaOf(each)), ...wordsOf(each) },
  ]);
  const required = fields.filter(each => each.required === true).map(({ name }) => String(name));
  const schema = { type: 'object', properties: Object.fromEntries(properties) as Json, required };
  const named = consumes.filter(type => FORMS.includes(type));
  const types = named.length > 0 ? named : [FORMS[file ? 1 : 0] ?? ''];
  return {
    required: required.length > 0,
    content: Object.fromEntries(types.map(type => [type, { schema }])),
  };
}

function wordsOf({ description }: Json): Json {
  return typeof description === 'string' ? { description } : {};
}

function responseOf({ description, schema, headers, examples }: Json, produces: string[]): Json {
  const named = Object.entries(objectOf(headers)).map(([name, each]) => [
    name,
    { ...wordsOf(objectOf(each)), schema: schemaOf(objectOf(each)) },
  ]);
  const file = objectOf(schema).type === 'file';
  const whole = file ? { type: 'string', format: 'binary' } : schema;
  const types = file && produces[0] === 'application/json' ? ['application/octet-stream'] : produces;
  const content = types.map(type => [
    type,
    {
      schema: whole,
      ...(Object.hasOwn(objectOf(examples), type) ? { example: objectOf(examples)[type] } : {}),
    },
  ]);
  return {
    description,
    ...(named.length > 0 ? { headers: Object.fromEntries(named) as Json } : {}),
    ...(isObject(schema) ? { content: Object.fromEntries(content) as Json } : {}),
  };
}
