import type { Parameter, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { queryPairs } from '../contract/query-styles.js';
import { isObject, objectOf } from '../contract/references.js';
import { sentBodyOf, type SentBody } from '../contract/sent-body.js';
import type { ToolShape } from '../methods/method.js';

/** The argument that carries the body if the operation also has parameters, or if the body is not an object. */
const BODY = 'body';

/** A parameter of an operation as an argument of its tool. */
type Argument = { name: string; parameter: Parameter };

/** A tool's arguments in the form that the router reads from an HTTP request: a raw path, a query without its question mark, headers. */
export type ToolRequest = {
  path: string;
  query: string;
  body: SentBody | undefined;
  headers?: Record<string, string>;
};

/**
 * Names each argument after the path, query or header parameter that it stands for. If the name is already
 * used by another parameter or by `body`, the parameter's place is put in front: `query_body`.
 */
function argumentsOf({ parameters, request }: PricedOperation): Argument[] {
  const taken = new Set(request ? [BODY] : []);
  return parameters.map(parameter => {
    const name = taken.has(parameter.name) ? `${parameter.in}_${parameter.name}` : parameter.name;
    taken.add(name);
    return { name, parameter };
  });
}

/** Whether the arguments of a tool are the body's members, which is so if the body is an object and there are no parameters. */
function isWhole({ parameters, request }: PricedOperation): boolean {
  return parameters.length === 0 && (!request || request.objectArguments);
}

/**
 * The input schema of an operation's tool, without references. If the operation has no parameters and its
 * body is an object, this is the body's schema. Otherwise it is an object with a member for each parameter
 * and, if there is a body, the member `body`.
 */
export function inputSchemaOf(operation: PricedOperation): Json & { type: 'object' } {
  const { request } = operation;
  const named = argumentsOf(operation);
  if (isWhole(operation)) return { ...request?.plain, type: 'object' };
  const required = named.filter(({ parameter }) => parameter.required).map(({ name }) => name);
  if (request?.required) required.push(BODY);
  return {
    type: 'object',
    properties: {
      ...Object.fromEntries(
        named.map(({ name, parameter: { plain, description } }) => [
          name,
          description === undefined ? plain : { description, ...plain },
        ]),
      ),
      ...(request ? { [BODY]: request.plain } : {}),
    },
    ...(required.length > 0 ? { required } : {}),
  };
}

/** An operation as a tool. */
export function toolShapeOf(operation: PricedOperation): ToolShape {
  return { inputSchema: inputSchemaOf(operation), example: exampleArguments(operation) };
}

/** The arguments of the operation's own example. */
export function exampleArguments(operation: PricedOperation): Json {
  const { request } = operation;
  const named = argumentsOf(operation);
  if (isWhole(operation)) return objectOf(request?.example);
  const examples = named.filter(({ parameter }) => parameter.example !== undefined);
  return {
    ...Object.fromEntries(examples.map(({ name, parameter }) => [name, parameter.example])),
    ...(request ? { [BODY]: request.example } : {}),
  };
}

/**
 * Turns the arguments of a tool into the equivalent HTTP call, so that both count as the same call.
 * @returns a sentence about the fault, if an argument can't be written as a parameter
 */
export function requestOf(operation: PricedOperation, sent: Json): ToolRequest | string {
  const named = argumentsOf(operation);
  let { path } = operation;
  if (isWhole(operation)) {
    const body = sentBody(operation, sent);
    return 'wrong' in body ? body.wrong : { path, query: '', ...body };
  }
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  for (const { name, parameter } of named) {
    const value = sent[name];
    if (value === undefined && parameter.in !== 'path') continue;
    const wrong = wrongWith(name, parameter, value);
    if (wrong !== undefined) return wrong;
    const texts = [value].flat().map(String);
    if (parameter.in === 'query')
      for (const [key, text] of queryPairs(parameter, value)) query.append(key, text);
    else if (parameter.in === 'header') headers[parameter.name.toLowerCase()] = texts.join(', ');
    else path = path.replace(`{${parameter.name}}`, () => encodeURIComponent(texts.join(',')));
  }
  const body = sentBody(operation, sent[BODY]);
  if ('wrong' in body) return body.wrong;
  return { path, query: query.toString(), ...body, ...(Object.keys(headers).length > 0 ? { headers } : {}) };
}

/** The body of the equivalent HTTP call. */
function sentBody(
  { request }: PricedOperation,
  value: unknown,
): { body: SentBody | undefined } | { wrong: string } {
  if (!request || value === undefined) return { body: undefined };
  for (const [name, each] of request.form && isObject(value) ? Object.entries(value) : []) {
    if (!isSimple(name)) return { wrong: 'field names must be valid Unicode strings' };
    const field = request.form?.find(known => known.name === name);
    if (field?.as !== undefined) continue;
    const wrong = each === '' ? undefined : wrongWith(name, { in: 'header', ...field }, each);
    if (wrong !== undefined) return { wrong };
  }
  const body = sentBodyOf(request, value);
  return 'wrong' in body ? body : { body };
}

/** Why an argument can't be written as a parameter; undefined if it can. */
function wrongWith(
  name: string,
  { in: where, style }: Pick<Parameter, 'in' | 'style'>,
  value: unknown,
): string | undefined {
  if (value === undefined || (value === '' && where !== 'header')) return `${name} is missing`;
  const parts = style && isObject(value) ? Object.entries(value).flat(2) : [value].flat();
  if (!parts.every(isSimple))
    return style
      ? `${name} must contain only text, numbers, true or false, and no nested values`
      : `${name} must be text, a number, true or false, or a list of these`;
  if (style?.kind === 'separated' && parts.some(each => String(each).includes(style.by)))
    return `${name} must not contain '${style.by}', which separates its parts in a query`;
  return undefined;
}

function isSimple(value: unknown): boolean {
  return typeof value === 'string'
    ? !/\p{Surrogate}/u.test(value)
    : typeof value === 'number' || typeof value === 'boolean';
}
