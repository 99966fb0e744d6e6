import type { Json } from '../json.js';
import { patternFault } from '../pattern.js';
import { sharedParts } from '../expand/shared-parts.js';
import { isObject, objectOf } from '../references.js';
import { LeftOut, type Source } from './source-document.js';

const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'];
const WORDS = 5_000;

const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0;
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
const isText = (value: unknown): boolean => typeof value === 'string';
const isAny = (value: unknown): boolean => value !== undefined;

/** Keywords whose values are kept if they have the right type; others mean nothing and would be refused. */
const PLAIN: Record<string, (value: unknown) => boolean> = {
  ...{ title: isText, format: isText, contentEncoding: isText, contentMediaType: isText },
  ...{ default: isAny, example: isAny, examples: Array.isArray, const: isAny },
  ...{ deprecated: isFlag, readOnly: isFlag, writeOnly: isFlag, uniqueItems: isFlag },
  ...{ minLength: isCount, maxLength: isCount, minItems: isCount, maxItems: isCount },
  ...{ minProperties: isCount, maxProperties: isCount, minContains: isCount, maxContains: isCount },
  ...{ minimum: isNumber, maximum: isNumber, exclusiveMinimum: isNumber, exclusiveMaximum: isNumber },
  multipleOf: value => isNumber(value) && Number(value) > 0,
};
const SCHEMAS = [
  ...['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'],
  ...['unevaluatedItems', 'unevaluatedProperties'],
];
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const LIMITS = [
  ['exclusiveMinimum', 'minimum'],
  ['exclusiveMaximum', 'maximum'],
] as const;
const MAPS = ['properties', 'patternProperties', 'dependentSchemas'];

/** Copies schemas into a contract, in the dialect of OpenAPI 3.1, together with the schemas they refer to. */
export class SchemaCopies {
  readonly schemas: Record<string, unknown> = {};
  /** Notes about changes, for the seller. */
  readonly notes = new Set<string>();
  readonly #source: Source;
  readonly #names = new Map<string, string>();
  readonly #taken = new Set(Object.keys(sharedParts().components.schemas ?? {}));
  readonly #patterns = new Map<string, string | undefined>();
  #open: [name: string, schema: unknown][] = [];

  constructor(source: Source) {
    this.#source = source;
  }

  /** A copy of a schema. Afterwards `schemas` contains everything that it refers to. */
  copy(schema: unknown): unknown {
    const copied = this.#schema(schema);
    for (let next = this.#open.pop(); next !== undefined; next = this.#open.pop())
      this.schemas[next[0]] = this.#schema(next[1]);
    return copied;
  }

  #schema(schema: unknown): unknown {
    if (typeof schema === 'boolean') return schema;
    const own = objectOf(schema);
    if (typeof own.$ref === 'string') return this.#reference(own.$ref, own);
    const made: Json = {};
    for (const [key, value] of Object.entries(own)) this.#keyword(made, key, value);
    return withoutOddValues(nullable(listed(exclusive(made, own)), own));
  }

  #reference(reference: string, { description, ...beside }: Json): Json {
    const name = this.#nameOf(reference);
    if (name === undefined) return {};
    const made: Json = { $ref: `#/components/schemas/${name}` };
    // Since OpenAPI 3.1, members alongside a reference are part of the schema.
    if (this.#source.version === 3.1)
      for (const [key, value] of Object.entries(beside)) this.#keyword(made, key, value);
    return typeof description === 'string' ? { ...made, description: cut(description) } : made;
  }

  /** The name of a copied schema, or undefined if there is none to copy. */
  #nameOf(reference: string): string | undefined {
    const known = this.#names.get(reference);
    if (known !== undefined) return known;
    try {
      const target = this.#source.target(reference);
      const name = this.#free(reference);
      this.#names.set(reference, name);
      this.#open.push([name, target]);
      return name;
    } catch (error) {
      if (!(error instanceof LeftOut)) throw error;
      this.notes.add(`${error.message}, so any value is accepted there`);
      return undefined;
    }
  }

  #free(reference: string): string {
    const [file = '', pointer = ''] = reference.split('#', 2);
    const words = pointer.split('/').at(-1) || (file.split('/').at(-1) ?? '').replace(/\.\w+$/, '');
    const name = words.replace(/%[0-9A-F]{2}|[^\w.-]+/gi, '_') || 'Schema';
    let free = name;
    for (let number = 2; this.#taken.has(free); number++) free = `${name}${number}`;
    this.#taken.add(free);
    return free;
  }

  #keyword(made: Json, key: string, value: unknown): void {
    if (Object.hasOwn(PLAIN, key)) {
      if (PLAIN[key]?.(value)) made[key] = value;
    } else if (key === 'pattern' && typeof value === 'string') {
      const pattern = withoutNeedlessEscapes(value);
      if (this.#isMatched(pattern)) made.pattern = pattern;
    } else if (SCHEMAS.includes(key)) {
      if (key === 'items' && Array.isArray(value)) made.prefixItems = value.map(each => this.#schema(each));
      else if (isSchema(value)) made[key] = this.#schema(value);
    } else if (LISTS.includes(key)) {
      const list = Array.isArray(value) ? value.filter(isSchema) : [];
      if (list.length > 0) made[key] = list.map(each => this.#schema(each));
    } else if (MAPS.includes(key)) {
      const all = Object.entries(objectOf(value)).filter(
        ([name, each]) => isSchema(each) && (key !== 'patternProperties' || this.#isMatched(name)),
      );
      made[key] = Object.fromEntries(all.map(([name, each]) => [name, this.#schema(each)]));
    } else this.#special(made, key, value);
  }

  #special(made: Json, key: string, value: unknown): void {
    if (key === 'description' && typeof value === 'string') made.description = cut(value);
    else if (key === 'type') Object.assign(made, typeOf(value));
    else if (key === 'required') {
      const names = Array.isArray(value) ? value.filter(each => typeof each === 'string') : [];
      if (names.length > 0) made.required = [...new Set(names)];
    } else if (key === 'enum' && Array.isArray(value) && value.length > 0) made.enum = distinct(value);
    else if (key === 'dependentRequired' && isObject(value)) made.dependentRequired = value;
    else if (key === 'discriminator') this.#discriminator(made, value);
  }

  /** Whether a pattern is safe to match against any text. An unsafe pattern is left out, with a note. */
  #isMatched(pattern: string): boolean {
    if (!this.#patterns.has(pattern)) this.#patterns.set(pattern, patternFault(pattern));
    const wrong = this.#patterns.get(pattern);
    // The advice after the colon is for the author of the pattern.
    if (wrong !== undefined)
      this.notes.add(`${wrong.split(': a text', 1)[0]}, so any text is accepted there`);
    return wrong === undefined;
  }

  #discriminator(made: Json, value: unknown): void {
    const { propertyName, mapping } = objectOf(value);
    if (typeof propertyName !== 'string') return;
    const all = Object.entries(objectOf(mapping)).flatMap(([key, target]) => {
      if (typeof target !== 'string') return [];
      const name = this.#nameOf(target.includes('#') ? target : this.#named(target));
      return name === undefined ? [] : [[key, `#/components/schemas/${name}`]];
    });
    made.discriminator = {
      propertyName,
      ...(all.length > 0 ? { mapping: Object.fromEntries(all) as Json } : {}),
    };
  }

  #named(name: string): string {
    return `#/${this.#source.version === 2 ? 'definitions' : 'components/schemas'}/${name}`;
  }
}

function isSchema(value: unknown): boolean {
  return isObject(value) || typeof value === 'boolean';
}

/** Removes the escapes of characters that need none, because the flag u does not allow them. */
function withoutNeedlessEscapes(pattern: string): string {
  return pattern.replace(/\\([^])/g, (escape, character: string) =>
    /[\s!"#%&',:;<=>@_`~]/.test(character) ? character : escape,
  );
}

/** Long descriptions are cut to a readable length. */
export function cut(text: string): string {
  return text.length > WORDS ? `${text.slice(0, WORDS - 1)}…` : text;
}

function typeOf(value: unknown): Json {
  if (value === 'file') return { type: 'string', format: 'binary' };
  const types = [value].flat().filter(each => TYPES.includes(String(each)));
  if (types.length === 0) return {};
  return { type: Array.isArray(value) ? [...new Set(types)] : types[0] };
}

function distinct(values: unknown[]): unknown[] {
  const byText = new Map(values.map(value => [JSON.stringify(value), value]));
  return [...byText.values()];
}

/** Up to OpenAPI 3.0, `exclusiveMinimum: true` changed the meaning of `minimum`. Since 3.1, its value is the bound itself. */
function exclusive(made: Json, own: Json): Json {
  for (const [key, beside] of LIMITS) {
    if (own[key] !== true || typeof made[beside] !== 'number') continue;
    made[key] = made[beside];
    delete made[beside];
  }
  return made;
}

/**
 * A list without a schema for its elements, or for those after the first, may hold anything; some tools need an explicit schema for that.
 */
function listed(made: Json): Json {
  const isList = [made.type].flat().includes('array');
  return isList && !('items' in made) ? { ...made, items: {} } : made;
}

/**
 * Drops examples and defaults of another type, such as a number as text, and those that hold references, because they are not values of
 * this schema.
 */
function withoutOddValues(made: Json): Json {
  const types = [made.type ?? []].flat();
  const fits = (value: unknown): boolean =>
    value !== undefined &&
    !refersToParts(value) &&
    (types.length === 0 || types.some(type => isOfType(value, type)));
  const { example, default: usual, examples, ...others } = made;
  const right = Array.isArray(examples) ? examples.filter(fits) : [];
  return {
    ...others,
    ...(fits(usual) ? { default: usual } : {}),
    ...(fits(example) ? { example } : {}),
    ...(right.length > 0 ? { examples: right } : {}),
  };
}

/** Some documents have references in their examples, where they have no meaning. */
export function refersToParts(example: unknown): boolean {
  return JSON.stringify(example).includes('"$ref":');
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'null') return value === null;
  return type === 'object' ? isObject(value) : typeof value === type;
}

/** OpenAPI 3.0 says `nullable: true` and Swagger 2.0 `x-nullable: true` where 3.1 has the type null. */
function nullable(made: Json, own: Json): Json {
  if (own.nullable !== true && own['x-nullable'] !== true) return made;
  const values = Array.isArray(made.enum) ? { enum: distinct([...(made.enum as unknown[]), null]) } : {};
  if (typeof made.type === 'string') return { ...made, type: [made.type, 'null'], ...values };
  if (!LISTS.some(key => key in made)) return { ...made, ...values };
  return { anyOf: [made, { type: 'null' }] };
}
