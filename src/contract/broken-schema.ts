import type { Json } from './json.js';
import { isObject, keysOf, ReferenceFault, targetOf } from './references.js';

/** A fault in a schema and its place: the steps from the schema to it, or to the `$ref` that leads there. */
type Broken = { at: string[]; message: string };

/** `inside`: the place in the document, if a reference leads there. */
type Found = Broken & { inside?: string };

const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'];
/** The keywords whose values are a schema, a list of schemas, and schemas by name. */
const ONE = ['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'];
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const NAMED = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];

/** The first unknown type or broken reference in a schema and the schemas it refers to. */
export function brokenPart(document: Json, schema: unknown): Broken | undefined {
  const found = search(document, schema, [], new Set());
  if (!found) return undefined;
  const { at, message, inside } = found;
  return { at, message: inside === undefined ? message : `${message} (in ${inside})` };
}

function search(document: Json, schema: unknown, at: string[], seen: Set<string>): Found | undefined {
  if (!isObject(schema)) return undefined;
  const { $ref: reference } = schema;
  const own =
    typeof reference === 'string'
      ? behind(document, reference, [...at, '$ref'], seen)
      : wrongType(schema, at);
  if (own) return own;
  for (const [part, steps] of partsOf(schema)) {
    const found = search(document, part, [...at, ...steps], seen);
    if (found) return found;
  }
  return undefined;
}

function behind(document: Json, reference: string, at: string[], seen: Set<string>): Found | undefined {
  if (seen.has(reference)) return undefined;
  seen.add(reference);
  try {
    const found = search(document, targetOf(document, reference), keysOf(reference), seen);
    return found && { at, message: found.message, inside: found.inside ?? found.at.join('.') };
  } catch (error) {
    if (error instanceof ReferenceFault) return { at, message: error.message };
    throw error;
  }
}

function wrongType({ type }: Json, at: string[]): Found | undefined {
  const wrong = [type].flat().find(each => typeof each === 'string' && !TYPES.includes(each));
  if (typeof wrong !== 'string') return undefined;
  const meant = TYPES.find(each => each.startsWith(wrong.toLowerCase().slice(0, 3)));
  const mended = meant === undefined ? '' : `: type: ${meant}`;
  return {
    at: [...at, 'type'],
    message: `no schema has the type ${wrong}, only ${TYPES.join(', ')}${mended}`,
  };
}

/** The direct subschemas of a schema, each with the steps to it. */
function partsOf(schema: Json): [unknown, string[]][] {
  return [
    ...ONE.map((key): [unknown, string[]] => [schema[key], [key]]),
    ...LISTS.flatMap(key => membersOf(Array.isArray(schema[key]) ? schema[key] : [], key)),
    ...NAMED.flatMap(key => membersOf(isObject(schema[key]) ? schema[key] : {}, key)),
  ];
}

function membersOf(value: object, key: string): [unknown, string[]][] {
  return Object.entries(value).map(([name, part]) => [part, [key, name]]);
}
