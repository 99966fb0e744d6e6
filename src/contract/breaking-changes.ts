import type { Json } from './json.js';
import { objectOf } from './references.js';

/**
 * The changes between two versions of the contract that break clients of the first: an operation, status, field or header is gone or has
 * another type, a request needs more, an answer promises less, or the price changed. Covers the parts of OpenAPI that these contracts use,
 * and prices, which no general tool knows.
 * @returns a sentence for each change, empty if old clients keep working
 */
export function breakingChanges(released: Json, now: Json): string[] {
  const faults: string[] = [];
  const before = new Side(released);
  const after = new Side(now);
  for (const [name, old] of before.operations()) {
    const operation = after.operations().get(name);
    if (!operation) {
      faults.push(`${name}: is gone`);
      continue;
    }
    comparePrices(name, old, operation, faults);
    compareParameters(name, before.parameters(old), after.parameters(operation), faults);
    compareRequests(name, before.body(old), after.body(operation), faults);
    compareResponses(name, [before, old], [after, operation], faults);
  }
  return faults;
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const shown = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none');
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** One version of the document. Its references are resolved as they are met. */
class Side {
  readonly #document: Json;

  constructor(document: Json) {
    this.#document = document;
  }

  follow(value: unknown): Json {
    const node = objectOf(value);
    if (typeof node['$ref'] !== 'string') return node;
    const parts = node['$ref']
      .slice(2)
      .split('/')
      .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    return this.follow(parts.reduce<unknown>((parent, part) => objectOf(parent)[part], this.#document));
  }

  operations(): Map<string, Json> {
    const found = new Map<string, Json>();
    for (const [path, item] of Object.entries(objectOf(this.#document['paths']))) {
      for (const [method, operation] of Object.entries(objectOf(item)))
        found.set(`${method.toUpperCase()} ${path}`, objectOf(operation));
    }
    return found;
  }

  parameters(operation: Json): Map<string, Json> {
    const all = listOf(operation['parameters']).map(parameter => this.follow(parameter));
    return new Map(
      all.map(parameter => [`${String(parameter['in'])} ${String(parameter['name'])}`, parameter]),
    );
  }

  body(operation: Json): Json {
    return this.#expanded(this.#json(this.follow(operation['requestBody'])));
  }

  answer(response: unknown): Json {
    return this.#expanded(this.#json(this.follow(response)));
  }

  #json(holder: Json): unknown {
    return objectOf(objectOf(holder['content'])['application/json'])['schema'];
  }

  /** The schema with references replaced by their targets, except references inside their own target. */
  #expanded(schema: unknown, inside: readonly unknown[] = []): Json {
    const target = objectOf(schema)['$ref'];
    if (target !== undefined && inside.includes(target)) return {};
    const within = target === undefined ? inside : [...inside, target];
    const node = { ...this.follow(schema) };
    const properties = Object.entries(objectOf(node['properties']));
    if (properties.length)
      node['properties'] = Object.fromEntries(
        properties.map(([key, value]) => [key, this.#expanded(value, within)]),
      );
    if (node['items']) node['items'] = this.#expanded(node['items'], within);
    return node;
  }
}

function comparePrices(name: string, old: Json, now: Json, faults: string[]): void {
  const [was, is] = [objectOf(old['x-price']), objectOf(now['x-price'])];
  for (const key of new Set([...Object.keys(was), ...Object.keys(is)])) {
    if (!same(was[key], is[key]))
      faults.push(`${name}: the ${key} of its price was ${shown(was[key])} and is now ${shown(is[key])}`);
  }
}

function compareParameters(
  name: string,
  old: Map<string, Json>,
  now: Map<string, Json>,
  faults: string[],
): void {
  for (const place of old.keys()) if (!now.has(place)) faults.push(`${name}: the parameter ${place} is gone`);
  for (const [place, parameter] of now) {
    if (parameter['required'] && !old.get(place)?.['required'])
      faults.push(`${name}: the parameter ${place} is now required`);
    const [was, is] = [old.get(place)?.['schema'], parameter['schema']];
    if (was) compareRequests(`${name} ${place}`, objectOf(was), objectOf(is), faults);
  }
}

type Limit = { key: string; tighter: (was: number, is: number) => boolean };
const LIMITS: Limit[] = [
  ...['minimum', 'minLength', 'minItems'].map(key => ({
    key,
    tighter: (was: number, is: number) => is > was,
  })),
  ...['maximum', 'maxLength', 'maxItems'].map(key => ({
    key,
    tighter: (was: number, is: number) => is < was,
  })),
];

/** A new version may require less of a request, never more. */
function compareRequests(place: string, old: Json, now: Json, faults: string[]): void {
  const had = listOf(old['required']);
  for (const field of listOf(now['required']))
    if (!had.includes(field)) faults.push(`${place}: now requires ${String(field)}`);
  if (now['additionalProperties'] === false && old['additionalProperties'] !== false)
    faults.push(`${place}: no longer accepts unknown fields`);
  compareTypes(place, old, now, faults);
  for (const { key, tighter } of LIMITS) {
    const [was, is] = [old[key], now[key]];
    if (typeof is === 'number' && (typeof was !== 'number' || tighter(was, is)))
      faults.push(`${place}: ${key} was ${String(was)} and is now ${is}`);
  }
  if (now['pattern'] !== undefined && now['pattern'] !== old['pattern'])
    faults.push(`${place}: must match a different pattern`);
  compareChoices(place, old['enum'], now['enum'], faults);
  if (!same(old['default'], now['default'])) faults.push(`${place}: has a different default`);
  const closed = now['additionalProperties'] === false;
  const properties = objectOf(now['properties']);
  for (const [key, field] of Object.entries(objectOf(old['properties']))) {
    if (key in properties)
      compareRequests(`${place} ${key}`, objectOf(field), objectOf(properties[key]), faults);
    else if (closed) faults.push(`${place}: no longer accepts ${key}`);
  }
}

/** Without a list of values, every value is accepted. */
function compareChoices(place: string, old: unknown, now: unknown, faults: string[]): void {
  if (now === undefined) return;
  const left = listOf(now);
  if (old === undefined) faults.push(`${place}: now accepts only ${left.map(String).join(', ')}`);
  for (const value of listOf(old))
    if (!left.includes(value)) faults.push(`${place}: no longer accepts ${String(value)}`);
}

function compareTypes(place: string, old: Json, now: Json, faults: string[]): void {
  for (const key of ['type', 'format'])
    if (!same(old[key], now[key]))
      faults.push(`${place}: ${key} was ${JSON.stringify(old[key])} and is now ${JSON.stringify(now[key])}`);
}

function compareResponses(name: string, old: [Side, Json], now: [Side, Json], faults: string[]): void {
  const [before, after] = [objectOf(old[1]['responses']), objectOf(now[1]['responses'])];
  for (const status of Object.keys(after))
    if (!(status in before)) faults.push(`${name}: may now answer ${status}`);
  for (const [status, response] of Object.entries(before)) {
    const place = `${name} ${status}`;
    if (!(status in after)) {
      faults.push(`${place}: is gone`);
      continue;
    }
    const [was, is] = [old[0].follow(response), now[0].follow(after[status])];
    for (const type of Object.keys(objectOf(was['content'])))
      if (!(type in objectOf(is['content']))) faults.push(`${place}: no longer has ${type}`);
    const headers = objectOf(is['headers']);
    for (const [header, value] of Object.entries(objectOf(was['headers']))) {
      if (!(header in headers)) faults.push(`${place}: no longer has the header ${header}`);
      else if (old[0].follow(value)['required'] && !now[0].follow(headers[header])['required'])
        faults.push(`${place}: may now lack the header ${header}`);
    }
    compareAnswers(place, old[0].answer(response), now[0].answer(after[status]), faults);
  }
}

/** An answer may promise more, never less. */
function compareAnswers(place: string, old: Json, now: Json, faults: string[]): void {
  compareTypes(place, old, now, faults);
  const stillThere = listOf(now['required']);
  for (const field of listOf(old['required']))
    if (!stillThere.includes(field)) faults.push(`${place}: may now lack ${String(field)}`);
  const values = listOf(old['enum']);
  for (const value of values.length ? listOf(now['enum']) : [])
    if (!values.includes(value)) faults.push(`${place}: may now be ${String(value)}`);
  const properties = objectOf(now['properties']);
  for (const [key, field] of Object.entries(objectOf(old['properties']))) {
    if (key in properties)
      compareAnswers(`${place} ${key}`, objectOf(field), objectOf(properties[key]), faults);
    else faults.push(`${place}: no longer has ${key}`);
  }
  if (old['items']) compareAnswers(`${place} items`, objectOf(old['items']), objectOf(now['items']), faults);
}
