import type { Json } from '../json.js';
import { isStream, kindOf } from '../read-answers.js';
import { isObject, objectOf } from '../references.js';
import type { Api, Credentials } from './api-of.js';
import { cut, refersToParts, type SchemaCopies } from './copy-schema.js';
import { LeftOut, type Source } from './source-document.js';
import { operationOfTwo } from './swagger-two.js';

/** An operation of the document. */
export type Found = { path: string; method: string; item: Json; operation: Json };

/** An operation as copied into a contract, with notes for its seller. */
export type Copied = { path: string; operation: Json; notes: string[]; credentials: Credentials };

/** Headers that OpenAPI describes elsewhere, or that the server sends. */
const NO_PARAMETERS = /^(accept|content-type|authorization)$/i;
const OWN_HEADERS = /^(payment-response|x-payment-response|location|x-request-id)$/i;
const MAX_EXAMPLE = { request: 1_000, answer: 4_000 };
const NO_BODY = ['get', 'head', 'delete'];

type Parts = { source: Source; schemas: SchemaCopies; api: Api };

/**
 * Copies an operation with everything that a contract needs; references are resolved, except those to schemas.
 * @throws LeftOut
 */
export function copyOperation(parts: Parts, found: Found): Copied {
  const { source, api } = parts;
  const credentials = api.credentialsOf(found.operation);
  const notes: string[] = [];
  const all = parametersOf(source, found);
  const whole = source.version === 2 ? operationOfTwo(source, all, found.operation) : found.operation;
  const declared = source.version === 2 ? (whole.parameters as Json[]) : all;
  const { path, names } = renamed(found.path);
  const parameters = copyParameters(parts, { declared, names, credentials, notes });
  const { summary, description, tags, deprecated, callbacks } = whole;
  if (deprecated === true) notes.push('deprecated');
  if (isObject(callbacks) && Object.keys(callbacks).length > 0) notes.push('without its callbacks');
  const requestBody = copyBody(parts, whole.requestBody);
  const operation = {
    ...(typeof summary === 'string' && summary.trim() !== '' ? { summary: cut(summary.trim()) } : {}),
    ...(typeof description === 'string' && description.trim() !== ''
      ? { description: cut(description) }
      : {}),
    ...(Array.isArray(tags) && tags.length > 0 ? { tags: [...new Set(tags.map(String))] } : {}),
    ...(deprecated === true ? { deprecated } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(requestBody ? { requestBody } : {}),
    responses: copyAnswers(parts, objectOf(whole.responses), notes),
  };
  return { path, operation, notes, credentials };
}

/** The parameters of the path and of the operation, with references resolved; the operation's take precedence. */
function parametersOf(source: Source, { item, operation }: Found): Json[] {
  const byKey = new Map<string, Json>();
  for (const list of [item.parameters, operation.parameters])
    for (const each of Array.isArray(list) ? (list as unknown[]) : []) {
      const parameter = source.follow(each);
      byKey.set(`${String(parameter.in)} ${String(parameter.name)}`, parameter);
    }
  return [...byKey.values()];
}

/** The path with parameter names that are valid in a contract. */
function renamed(path: string): { path: string; names: Map<string, string> } {
  const names = new Map<string, string>();
  const made = path.replace(/\{([^{}/]+)\}/g, (_braces, name: string) => {
    const plain = name.replace(/[^\w-]/g, '_');
    names.set(name, plain);
    return `{${plain}}`;
  });
  return { path: made, names };
}

type Declared = { declared: Json[]; names: Map<string, string>; credentials: Credentials; notes: string[] };

function copyParameters(parts: Parts, { declared, names, credentials, notes }: Declared): Json[] {
  const sent = new Set(Object.keys(credentials.headers).map(name => name.toLowerCase()));
  const made: Json[] = [];
  for (const parameter of declared) {
    const { name, in: where } = parameter;
    if (typeof name !== 'string') continue;
    if (where === 'header' && (NO_PARAMETERS.test(name) || sent.has(name.toLowerCase()))) continue;
    if (where === 'query' ? Object.hasOwn(credentials.query, name) : where === 'path' && !names.has(name))
      continue;
    if (where === 'cookie') {
      if (parameter.required === true) throw new LeftOut(`needs the cookie ${name}, which buyers don't have`);
      notes.push(`without the cookie ${name}`);
      continue;
    }
    made.push(copyParameter(parts, parameter, where === 'path' ? (names.get(name) ?? name) : name));
  }
  for (const [name, plain] of names) {
    if (made.some(each => each.in === 'path' && each.name === plain)) continue;
    notes.push(`{${name}} of its path is undeclared: any text is accepted`);
    made.push({ name: plain, in: 'path', required: true, schema: { type: 'string' } });
  }
  return made;
}

function copyParameter({ source, schemas }: Parts, parameter: Json, name: string): Json {
  const { in: where, description, required, schema, content, style, explode, allowReserved } = parameter;
  const kept = { style, explode, allowReserved };
  return {
    name,
    in: where,
    ...(typeof description === 'string' && description.trim() !== ''
      ? { description: cut(description) }
      : {}),
    ...(required === true || where === 'path' ? { required: true } : {}),
    ...Object.fromEntries(Object.entries(kept).filter(([, each]) => each !== undefined)),
    ...(isObject(schema) ? { schema: textIfInPath(schemas.copy(schema), where) } : {}),
    ...(!isObject(schema) && isObject(content)
      ? { content: copyContent({ source, schemas }, content, 'request') }
      : {}),
    ...exampleOf(source, parameter, 'request'),
  };
}

/** A path parameter is a string, whatever else its schema says. */
function textIfInPath(schema: unknown, where: unknown): unknown {
  const says = ['type', '$ref', 'enum', 'const', 'allOf', 'anyOf', 'oneOf'].some(
    key => key in objectOf(schema),
  );
  return where === 'path' && !says ? { type: 'string', ...objectOf(schema) } : schema;
}

function copyBody(parts: Parts, requestBody: unknown): Json | undefined {
  if (requestBody === undefined) return undefined;
  const { content, required, description } = parts.source.follow(requestBody);
  const copied = copyContent(parts, objectOf(content), 'request');
  const json = copied['application/json'];
  if (Object.keys(copied).length === 0) return undefined;
  return {
    ...(typeof description === 'string' && description.trim() !== ''
      ? { description: cut(description) }
      : {}),
    ...(required === true ? { required } : {}),
    // One content type is enough to call the operation.
    content: json === undefined ? copied : { 'application/json': json },
  };
}

/** The success answers, which are sold. */
function copyAnswers(parts: Parts, responses: Json, notes: string[]): Json {
  const statuses = Object.keys(responses).filter(each => /^2(\d\d|XX)$/i.test(each));
  const made: Json = {};
  for (const status of statuses) {
    const own = /XX$/i.test(status) ? '200' : status;
    if (own === status || !statuses.includes('200')) made[own] = copyAnswer(parts, responses[status]);
  }
  if (statuses.length > 0) return made;
  if (Object.keys(responses).some(each => /^3/.test(each)))
    throw new LeftOut('its answers are redirects, which are not followed');
  if (!('default' in responses)) throw new LeftOut('declares no answer that can be sold (200)');
  notes.push('its answer is the default response in the document');
  return { 200: copyAnswer(parts, responses.default) };
}

function copyAnswer(parts: Parts, response: unknown): Json {
  const { description, headers, content } = parts.source.follow(response);
  const named = Object.entries(objectOf(headers)).filter(([name]) => !OWN_HEADERS.test(name));
  const copied = named.map(([name, each]) => [name, copyHeader(parts, each)]);
  return {
    description:
      typeof description === 'string' && description.trim() !== '' ? cut(description) : 'The answer.',
    ...(copied.length > 0 ? { headers: Object.fromEntries(copied) as Json } : {}),
    ...(isObject(content) ? { content: copyContent(parts, content, 'answer') } : {}),
  };
}

function copyHeader({ source, schemas }: Parts, header: unknown): Json {
  const { description, schema } = source.follow(header);
  return {
    ...(typeof description === 'string' ? { description: cut(description) } : {}),
    schema: isObject(schema) ? schemas.copy(schema) : { type: 'string' },
  };
}

/** JSON is preferred. A stream is chosen only if there is nothing else, and is then refused. */
function copyContent(
  { source, schemas }: Pick<Parts, 'source' | 'schemas'>,
  content: Json,
  side: keyof typeof MAX_EXAMPLE,
): Json {
  const all = Object.entries(content).map(([type, media]): [string, Json] => [
    plainType(type),
    objectOf(media),
  ]);
  const whole = all.filter(([type, media]) => !isStream(type) && !('itemSchema' in media));
  const [first] = all;
  if (first && whole.length === 0)
    throw new LeftOut(
      `${side === 'answer' ? 'answers with' : 'takes'} a stream (${first[0]}), which can't be sold as one call`,
    );
  const json = whole.filter(([type]) => kindOf(type) === 'json');
  const made: Json = {};
  for (const [type, media] of [...json, ...whole.filter(each => !json.includes(each))]) {
    const { schema, encoding } = media;
    made[type] ??= {
      ...(isObject(schema) ? { schema: schemas.copy(schema) } : {}),
      ...(side === 'request' && isObject(encoding) ? { encoding } : {}),
      ...exampleOf(source, media, side),
    };
  }
  return made;
}

/**
 * A content type without parameters such as charset. A range that allows any type counts as JSON, because frameworks declare it for answers
 * that are not described.
 */
function plainType(type: string): string {
  const [plain = ''] = type.split(';', 1);
  const trimmed = plain.trim().toLowerCase();
  return trimmed === '*/*' || trimmed === 'application/*' ? 'application/json' : trimmed;
}

/** The example of a parameter or media type, or the first of several, if it is short enough to read. */
function exampleOf(source: Source, holder: Json, side: keyof typeof MAX_EXAMPLE): Json {
  const { example, examples } = holder;
  const values =
    example === undefined ? Object.values(objectOf(examples)).map(each => valueOf(source, each)) : [example];
  const found = values.find(each => each !== undefined);
  if (found === undefined || refersToParts(found)) return {};
  return JSON.stringify(found).length <= MAX_EXAMPLE[side] ? { example: found } : {};
}

function valueOf(source: Source, example: unknown): unknown {
  try {
    return source.follow(example).value;
  } catch (error) {
    if (error instanceof LeftOut) return undefined;
    throw error;
  }
}

/** Whether calls of this method usually have no body, so that an optional one is dropped. */
export function hasNoBody(method: string): boolean {
  return NO_BODY.includes(method);
}
