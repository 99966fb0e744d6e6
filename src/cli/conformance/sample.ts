import type { Json } from '../../contract/json.js';
import { isObject } from './http-call.js';

const MAX_REFERENCES = 20;
const MAX_DEPTH = 12;

/** Follows `$ref`s within a document; any other value is returned as it is. A reference that leads nowhere gives `{}`. */
export function follow(document: Json, value: unknown): Json {
  let node = value;
  for (let hops = 0; hops < MAX_REFERENCES; hops++) {
    if (!isObject(node)) return {};
    const reference = node['$ref'];
    if (typeof reference !== 'string') return node;
    const keys = reference.replace(/^#\//, '').split('/');
    node = keys.reduce<unknown>((at, key) => (isObject(at) ? at[unescaped(key)] : undefined), document);
  }
  return {};
}

function unescaped(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** The example that a media type or a parameter gives, or a value that fits the basic keywords of its schema. */
export function exampleOf(document: Json, described: unknown): unknown {
  const { example, examples, schema } = follow(document, described);
  if (example !== undefined) return example;
  if (isObject(examples)) {
    const first = follow(document, Object.values(examples)[0]);
    if (first['value'] !== undefined) return first['value'];
  }
  return sample(document, schema);
}

function sample(document: Json, described: unknown, depth = 0): unknown {
  const schema = follow(document, described);
  const { example, examples, default: standard, const: only, enum: values } = schema;
  const given = [example, firstOf(examples), standard, only, firstOf(values)];
  const known = given.find(value => value !== undefined);
  if (known !== undefined || depth > MAX_DEPTH) return known;
  const variant = [schema['oneOf'], schema['anyOf']].find(Array.isArray) as unknown[] | undefined;
  if (variant) return sample(document, variant[0], depth + 1);
  const { allOf } = schema;
  if (Array.isArray(allOf)) {
    const parts: unknown[] = (allOf as unknown[]).map(part => sample(document, part, depth + 1));
    return [...parts.filter(isObject), sampleObject(document, schema, depth)].reduce((a, b) => ({
      ...a,
      ...b,
    }));
  }
  return sampleOfType(document, schema, depth);
}

function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? (list[0] as unknown) : undefined;
}

function sampleOfType(document: Json, schema: Json, depth: number): unknown {
  const { type, minimum, minItems, items, properties } = schema;
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return sampleText(schema);
    case 'integer':
    case 'number':
      return typeof minimum === 'number' ? minimum : 1;
    case 'boolean':
      return true;
    case 'array':
      return Array.from({ length: Number(minItems ?? 0) }, () => sample(document, items, depth + 1));
    default:
      return type === 'object' || properties ? sampleObject(document, schema, depth) : undefined;
  }
}

function sampleObject(document: Json, { properties, required }: Json, depth: number): Json {
  const names = Array.isArray(required) ? (required as string[]) : [];
  const fields = isObject(properties) ? properties : {};
  return Object.fromEntries(names.map(name => [name, sample(document, fields[name], depth + 1)]));
}

const BY_FORMAT: Record<string, string> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  email: 'buyer@example.com',
  uri: 'https://example.com/',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
};

function sampleText({ format, minLength, maxLength }: Json): string {
  const text = BY_FORMAT[String(format)] ?? 'example';
  return text.padEnd(Number(minLength ?? 0), 'x').slice(0, Number(maxLength ?? Infinity));
}
