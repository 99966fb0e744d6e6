import { brokenPart } from './broken-schema.js';
import { isNoParameter, isOfEveryCall } from './header-names.js';
import type { Json } from './json.js';
import { parameterNames } from './paths.js';
import { queryStyleOf, shapeOf, type QueryStyle } from './query-styles.js';
import { follow, inlined, isObject, objectOf } from './references.js';

/** A path, query or header parameter that is part of a call. */
export type Parameter = {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  /** As in the document; may contain references into it. `plain` is the same without references. */
  schema: Json;
  plain: Json;
  /** Whether it is a list, and so is repeated in a query and comma-separated in a header. */
  list: boolean;
  /** How it is written in a query, if it is a list or an object in a different style. */
  style?: QueryStyle;
  description?: string;
  /** An example of its value; every required parameter has one. */
  example?: unknown;
};

/** Reports what is wrong with a place in the document. */
export type Fault = (path: string[], message: string) => void;

/** One operation of the document and where it is. `item` is the path item that contains it. */
export type Place = {
  document: Json;
  path: string;
  method: string;
  item: Json;
  operation: Json & { operationId: string };
};

/** The query parameter that selects the version of the challenge. */
const PAYMENT_QUERY = 'x402Version';

/** A parameter as declared, and its place. */
type Declared = { parameter: Json; at: string[] };

/**
 * The parameters of the path item and of the operation; the operation's take precedence. Includes faulty ones, which are reported, and
 * undeclared ones in the path, so that references to them cause no further faults.
 */
export function readParameters(place: Place, at: string[], fault: Fault): Parameter[] {
  const { document, path } = place;
  const own = declaredBy(place, at).filter(({ parameter }) => !isOfEveryOperation(parameter));
  const inPath = own.filter(({ parameter }) => parameter.in === 'path');
  const named = parameterNames(path);
  const missing = named.filter(each => !inPath.some(({ parameter }) => parameter.name === each));
  for (const name of missing)
    fault(
      [...at, 'parameters'],
      `must declare ${name}, which is in the path: ${declaration(name, own.length > 0)}`,
    );
  for (const { parameter, at: where } of inPath)
    if (typeof parameter.name === 'string' && !named.includes(parameter.name))
      fault(
        where,
        `declares ${parameter.name}, which the path does not have: remove it, or put {${parameter.name}} into the path`,
      );
  const read = own.map(each => readParameter(document, each, fault)).concat(missing.map(undeclared));
  const inQuery = read.filter(each => each.in === 'query').flatMap(namesInQuery);
  for (const name of inQuery.filter((each, index) => inQuery.indexOf(each) < index))
    fault([...at, 'parameters'], `has ${name} twice in its query: as a parameter, and as a property of one`);
  return read;
}

/** The missing declaration of a path parameter: an entry for the operation's list of parameters, or a whole list if there is none. */
function declaration(name: string, hasList: boolean): string {
  const entry = `{ name: ${name}, in: path, required: true, schema: { type: string } }`;
  return hasList ? `- ${entry}` : `parameters: [${entry}]`;
}

function undeclared(name: string): Parameter {
  const schema = { type: 'string' };
  return { name, in: 'path', required: true, schema, plain: schema, list: false };
}

function namesInQuery({ name, style }: Parameter): string[] {
  return style?.kind === 'members' ? Object.keys(style.lists) : [name];
}

function declaredBy({ document, path, item, operation }: Place, at: string[]): Declared[] {
  const byName = new Map<string, Declared>();
  const lists: [string[], unknown][] = [
    [['paths', path], item.parameters],
    [at, operation.parameters],
  ];
  for (const [place, list] of lists)
    for (const [index, each] of (Array.isArray(list) ? (list as unknown[]) : []).entries()) {
      const parameter = follow(document, each);
      const declared = { parameter, at: [...place, 'parameters', String(index)] };
      byName.set(keyOf(parameter), declared);
    }
  return [...byName.values()];
}

/** Header names are case-insensitive. */
function keyOf({ name, in: where }: Json): string {
  return `${String(where)} ${where === 'header' ? String(name).toLowerCase() : String(name)}`;
}

/** Whether a parameter concerns payment or caching rather than what is sold. */
export function isOfEveryOperation({ name, in: where }: Json): boolean {
  return (where === 'header' && isOfEveryCall(String(name))) || (where === 'query' && name === PAYMENT_QUERY);
}

function readParameter(document: Json, { parameter, at }: Declared, fault: Fault): Parameter {
  const { name, required, description } = parameter;
  const schema = objectOf(parameter.schema);
  const example = exampleOf(document, parameter);
  const { style } = parameter.in === 'query' ? queryStyleOf(document, parameter) : {};
  const plain = inlined(document, schema);
  const broken = brokenPart(document, schema);
  const wrong = broken ? undefined : wrongWith(document, parameter, example);
  if (broken) fault([...at, 'schema', ...broken.at], broken.message);
  if (wrong !== undefined) fault(at, `${typeof name === 'string' ? name : 'a parameter'} ${wrong}`);
  return {
    name: String(name),
    in: parameter.in as Parameter['in'],
    required: required === true,
    schema,
    plain,
    list: shapeOf(document, schema) === 'list',
    ...(style ? { style } : {}),
    ...(typeof description === 'string' ? { description } : {}),
    ...(example === undefined ? {} : { example }),
  };
}

function wrongWith(document: Json, parameter: Json, example: unknown): string | undefined {
  const { name, in: where, required, schema } = parameter;
  if (typeof name !== 'string') return 'needs a name: name: …';
  if (where === 'cookie') return 'is a cookie, which buyers do not have: use in: query or in: header';
  if (where !== 'path' && where !== 'query' && where !== 'header')
    return `is in ${String(where)}, but a call has only path, query and header parameters; write in: query or in: header`;
  if (!isObject(schema)) return 'needs a schema: schema: { type: string }';
  const wrong = WRONG[where](parameter, document);
  return (
    wrong ??
    (required === true && example === undefined
      ? 'needs an example, and none can be made from its schema: example: …'
      : undefined)
  );
}

function wrongInPath({ required, style, schema }: Json, document: Json): string | undefined {
  const shape = shapeOf(document, schema);
  if (shape === 'list' || shape === 'object')
    return `must not be ${shape === 'list' ? 'a list' : 'an object'}, because it is in the path`;
  if (required !== true) return 'must be required, because it is in the path: required: true';
  return style === undefined || style === 'simple' ? undefined : 'must use style: simple (the default)';
}

function wrongInQuery(parameter: Json, document: Json): string | undefined {
  return queryStyleOf(document, parameter).wrong;
}

function wrongInHeader({ name, style, schema }: Json, document: Json): string | undefined {
  if (shapeOf(document, schema) === 'object') return 'must not be an object, because it is in a header';
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(String(name))) return 'is not a valid header name';
  if (isNoParameter(String(name)))
    return 'is a header that buyers cannot choose, so it cannot be a parameter: remove it';
  return style === undefined || style === 'simple' ? undefined : 'must use style: simple (the default)';
}

const WRONG = { path: wrongInPath, query: wrongInQuery, header: wrongInHeader };

/** The example of a parameter or media type: its own, the first of several, that of its schema, or a value the schema names. */
export function exampleOf(document: Json, { example, examples, schema }: Json): unknown {
  if (example !== undefined) return example;
  for (const each of Object.values(objectOf(examples))) {
    const { value } = follow(document, each);
    if (value !== undefined) return value;
  }
  const described = follow(document, schema);
  const first = (list: unknown): unknown => (Array.isArray(list) ? (list[0] as unknown) : undefined);
  return (
    described.example ??
    first(described.examples) ??
    described.default ??
    described.const ??
    first(described.enum)
  );
}

/** The path with the examples of its parameters. */
export function filledPath(path: string, parameters: Parameter[]): string {
  const examples = new Map(
    parameters.filter(each => each.in === 'path').map(({ name, example }) => [name, example]),
  );
  return path.replace(/\{([^{}/]+)\}/g, (_braces, name: string) =>
    encodeURIComponent(String(examples.get(name))),
  );
}
