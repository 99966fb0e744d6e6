import type { Json } from './json.js';

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value if it is an object, otherwise an empty object, so that a wrongly typed document causes faults instead of a crash. */
export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

export const MAX_HOPS = 16;

/** A `$ref` that leads nowhere, out of the document, or in a circle. */
export class ReferenceFault extends Error {
  readonly reference: string;

  constructor(reference: string, where: string) {
    super(`the reference ${reference} leads ${where}`);
    this.reference = reference;
  }
}

/** The steps from a part of the document to the first `$ref` in it that names `reference`. */
export function stepsToReference(part: unknown, reference: string): string[] | undefined {
  if (typeof part !== 'object' || part === null) return undefined;
  for (const [key, value] of Object.entries(part) as [string, unknown][]) {
    if (key === '$ref' && value === reference) return [key];
    const steps = stepsToReference(value, reference);
    if (steps) return [key, ...steps];
  }
  return undefined;
}

/**
 * Resolves a `$ref` within the document, through further references; any other value is returned as it is. Members alongside a `$ref`,
 * which OpenAPI 3.1 allows in schemas, take precedence over those of its target.
 * @throws ReferenceFault
 */
export function follow(document: Json, value: unknown): Json {
  let node = objectOf(value);
  for (let hops = 0; typeof node.$ref === 'string'; hops++) {
    if (hops >= MAX_HOPS) throw new ReferenceFault(node.$ref, 'in a circle');
    const { $ref: reference, ...beside } = node;
    node = { ...targetOf(document, reference), ...beside };
  }
  return node;
}

/** Like `follow`, but a broken reference, which is reported elsewhere, gives an empty object. */
export function resolved(document: Json, value: unknown): Json {
  try {
    return follow(document, value);
  } catch (error) {
    if (error instanceof ReferenceFault) return {};
    throw error;
  }
}

/** What a `$ref` names: the part itself, not a copy of it. @throws ReferenceFault */
export function targetOf(document: Json, reference: string): Json {
  if (!reference.startsWith('#/')) throw new ReferenceFault(reference, 'out of this document');
  const target = keysOf(reference).reduce<unknown>(memberOf, document);
  if (!isObject(target)) throw new ReferenceFault(reference, 'nowhere');
  return target;
}

/** A member of an object, or an element of a list by its index, such as one of `parameters`. */
function memberOf(node: unknown, key: string): unknown {
  if (Array.isArray(node)) return /^\d+$/.test(key) ? (node[Number(key)] as unknown) : undefined;
  return isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined;
}

/** The place in the document that a `$ref` names. @throws ReferenceFault for one that is not valid in a URI */
export function keysOf(reference: string): string[] {
  try {
    return reference
      .slice('#/'.length)
      .split('/')
      .map(key => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~'));
  } catch {
    throw new ReferenceFault(reference, 'nowhere: write a % in it as %25');
  }
}

/** Beyond this many parts, and where a schema contains itself, an inlined schema is `{}`, which allows anything. */
const MAX_PARTS = 2_000;

/** A copy of a schema with its references replaced by what they refer to, for readers who do not have the document. */
export function inlined(document: Json, schema: Json): Json {
  let parts = 0;
  const copy = (part: unknown, open: readonly string[]): unknown => {
    if (Array.isArray(part)) return part.map(each => copy(each, open));
    if (!isObject(part)) return part;
    parts += 1;
    const { $ref: reference } = part;
    const names = typeof reference === 'string' ? [...open, reference] : open;
    if (parts > MAX_PARTS || new Set(names).size < names.length) return {};
    const whole = typeof reference === 'string' ? follow(document, part) : part;
    return Object.fromEntries(Object.entries(whole).map(([key, value]) => [key, copy(value, names)]));
  };
  return copy(schema, []) as Json;
}

/** An object schema merged from its own properties and those of `allOf`, with references resolved one level deep. */
export type Fields = { properties: Record<string, Json>; required: string[] };

/** The properties that an object of this schema can have, or undefined if the schema does not describe an object. */
export function fieldsOf(document: Json, schema: unknown, depth = 0): Fields | undefined {
  const { type, properties, required, ...rest } = follow(document, schema);
  if (depth > MAX_HOPS) return undefined;
  const parts = ['allOf', 'anyOf', 'oneOf'].flatMap(key => {
    const list = Array.isArray(rest[key]) ? (rest[key] as unknown[]) : [];
    return list.map(part => ({ all: key === 'allOf', fields: fieldsOf(document, part, depth + 1) }));
  });
  const own = isObject(properties) ? properties : {};
  const described = parts.filter(({ fields }) => fields !== undefined);
  if (type !== 'object' && !isObject(properties) && described.length === 0) return undefined;
  const merged: Fields = { properties: {}, required: Array.isArray(required) ? required.map(String) : [] };
  for (const { all, fields } of described) {
    Object.assign(merged.properties, fields?.properties);
    if (all) merged.required.push(...(fields?.required ?? []));
  }
  Object.assign(merged.properties, own);
  return merged;
}
