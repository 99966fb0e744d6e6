import type { PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { isObject, objectOf } from '../contract/references.js';
import { escapeHtml } from '../pages/escape.js';
import { inline } from './own-words.js';
import { exampleHeaders } from './snippets.js';

/** The place of a field's value in a call. `whole`: it is the whole body. */
type Place = 'path' | 'query' | 'header' | 'member' | 'whole';

/** How a value is entered. `value`: JSON, or plain text. */
type Entry = 'line' | 'text' | 'number' | 'choice' | 'value' | 'file';

type Field = {
  name: string;
  place: Place;
  entry: Entry;
  required: boolean;
  schema: Json;
  example: unknown;
  /** How a list or an object is written in a query or a form. */
  style?: object | undefined;
  list: boolean;
};

/** The data with which the page's script turns the fields into a call. */
export type CallShape = {
  method: string;
  path: string;
  headers: Json;
  body?: { kind: string; type: string };
};

/** An object with more members is entered as JSON. */
const MOST_MEMBERS = 40;
/** A field for more characters than this has several lines. */
const LINE_CHARACTERS = 120;
/** At most this many optional fields without an example are shown unfolded. */
const OPTIONAL_SHOWN = 2;

export function callShape(operation: PricedOperation): CallShape {
  const { method, path, request } = operation;
  // Header parameters are fields, like those of the path and the query.
  const own = Object.entries(exampleHeaders(operation)).filter(
    ([name]) => !operation.parameters.some(each => each.in === 'header' && each.name === name),
  );
  const body = request && { kind: request.kind, type: request.mimeType };
  return { method, path, headers: Object.fromEntries(own), ...(body ? { body } : {}) };
}

/**
 * The fields of a call, from the schemas of its parameters and its body, filled in with the examples of the contract.
 * @param shown converts an example for display
 */
export function callFields(operation: PricedOperation, shown: (value: unknown) => unknown): string {
  const { id } = operation;
  const all = fieldsOf(operation);
  const isExtra = ({ required, example }: Field): boolean => !required && example === undefined;
  const extra = all.filter(isExtra);
  const render = (field: Field): string => fieldHtml(id, { ...field, example: shown(field.example) });
  const first = all.filter(each => extra.length <= OPTIONAL_SHOWN || !isExtra(each));
  const folded = all.filter(each => !first.includes(each));
  const more =
    folded.length === 0
      ? ''
      : `<details><summary>${folded.length} optional fields</summary>\n${folded.map(render).join('\n')}\n</details>`;
  return `${first.map(render).join('\n')}\n${more}`;
}

function fieldsOf({ parameters, request }: PricedOperation): Field[] {
  const named = parameters.map(
    ({ name, in: place, required, plain, description, example, style, list }): Field => ({
      ...{ name, place, required: required || place === 'path', example, style, list },
      schema: description === undefined ? plain : { description, ...plain },
      entry: entryOf(plain, example, list),
    }),
  );
  return [...named, ...bodyFields(request)];
}

function bodyFields(request: PricedOperation['request']): Field[] {
  if (!request) return [];
  const { kind, plain, example, required, form } = request;
  const members = Object.entries(objectOf(plain.properties));
  const whole = { place: 'whole', name: 'body', required, schema: plain, example, list: false } as const;
  if (kind === 'binary') return [{ ...whole, entry: 'file', example: undefined }];
  if (kind === 'text') return [{ ...whole, entry: 'text' }];
  if (!request.object || members.length === 0 || members.length > MOST_MEMBERS || isOpen(plain))
    return [{ ...whole, entry: 'value' }];
  const needed = Array.isArray(plain.required) ? (plain.required as unknown[]) : [];
  return members.map(([name, member]) => {
    const schema = objectOf(member);
    const field = form?.find(each => each.name === name);
    const value = objectOf(example)[name];
    const list = field?.list ?? [schema.type].flat().includes('array');
    const common = { name, place: 'member', schema, required: needed.includes(name), list } as const;
    if (field?.as === 'file') return { ...common, entry: 'file', example: undefined };
    return { ...common, entry: entryOf(schema, value, list), example: value, style: field?.style };
  });
}

/** Whether an object may need members, or combinations of members, that a field for each known member can't express. */
function isOpen({ oneOf, anyOf, allOf }: Json): boolean {
  return [oneOf, anyOf, allOf].some(each => Array.isArray(each));
}

function entryOf(schema: Json, example: unknown, list: boolean): Entry {
  const { maxLength = Infinity } = schema as { maxLength?: number };
  const type = typeOf(schema);
  if (list || (example !== undefined && typeof example === 'object')) return 'value';
  if (Array.isArray(schema.enum) || type === 'boolean') return 'choice';
  if (type === 'integer' || type === 'number') return 'number';
  if (type !== 'string') return 'value';
  const isLong = maxLength > LINE_CHARACTERS && !schema.format && !schema.pattern;
  return isLong || (typeof example === 'string' && example.length > LINE_CHARACTERS) ? 'text' : 'line';
}

/** The single type of a value, apart from null. */
function typeOf({ type }: Json): string | undefined {
  const [first, ...others] = [type].flat().filter(each => each !== 'null');
  return others.length === 0 && typeof first === 'string' ? first : undefined;
}

function fieldHtml(operation: string, field: Field): string {
  const { name, place, entry, required, schema, list, style } = field;
  const id = `f-${encodeURIComponent(operation)}-${place}-${encodeURIComponent(name)}`;
  const hint = hintOf(schema);
  const label = place === 'whole' ? (entry === 'value' ? 'Body, as JSON' : 'Body') : name;
  const attributes = [
    `id="${escapeHtml(id)}" name="${escapeHtml(`${place} ${name}`)}" data-name="${escapeHtml(name)}"`,
    `data-place="${place}" data-entry="${entry}"`,
    ...(list ? ['data-list'] : []),
    ...(style ? [`data-style="${escapeHtml(JSON.stringify(style))}"`] : []),
    ...(required ? ['required'] : []),
    ...(hint ? [`aria-describedby="${escapeHtml(id)}-hint"`] : []),
  ].join(' ');
  return `<div class="field"><label for="${escapeHtml(id)}">${escapeHtml(label)}${required ? '' : ' <span class="soft">optional</span>'}</label>
${control(field, attributes)}
${hint ? `<p class="hint" id="${escapeHtml(id)}-hint">${hint}</p>` : ''}</div>`;
}

function control(field: Field, attributes: string): string {
  const { entry, schema, example, list } = field;
  const text = textOf(example, entry);
  const value = escapeHtml(text);
  const limits = limitAttributes(schema);
  if (entry === 'file') return `<input type="file" ${attributes}${list ? ' multiple' : ''}>`;
  if (entry === 'choice') return `<select ${attributes}>${choices(field)}</select>`;
  if (entry === 'number') {
    const step = typeOf(schema) === 'integer' ? '1' : 'any';
    return `<input type="number" step="${step}" ${attributes}${limits} value="${value}">`;
  }
  if (entry === 'line')
    return `<input type="text" ${attributes}${limits} value="${value}" spellcheck="false" autocomplete="off">`;
  const rows = Math.min(12, Math.max(3, text.split('\n').length, Math.ceil(text.length / 70)));
  const code = entry === 'value' ? ' class="code-entry" spellcheck="false"' : '';
  return `<textarea ${attributes}${entry === 'text' ? limits : ''}${code} rows="${rows}">${value}</textarea>`;
}

function textOf(example: unknown, entry: Entry): string {
  if (example === undefined || example === null) return '';
  if (entry === 'value') return typeof example === 'string' ? example : JSON.stringify(example, null, 2);
  return typeof example === 'string' ? example : JSON.stringify(example);
}

function choices({ schema, example, required }: Field): string {
  const values: unknown[] = Array.isArray(schema.enum) ? schema.enum : [true, false];
  const chosen = example ?? schema.default;
  const option = (text: string, value: string, selected: boolean): string =>
    `<option value="${escapeHtml(value)}"${selected ? ' selected' : ''}>${escapeHtml(text)}</option>`;
  // Values are JSON, so that the text `1` differs from the number 1.
  const own = values
    .filter(each => each !== null)
    .map(each => option(shortText(each), JSON.stringify(each), each === chosen));
  return [...(required ? [] : [option('(not sent)', '', chosen === undefined)]), ...own].join('');
}

const LIMITS = { minLength: 'minlength', maxLength: 'maxlength', minimum: 'min', maximum: 'max' };

function limitAttributes(schema: Json): string {
  return Object.entries(LIMITS)
    .map(([key, name]) => (typeof schema[key] === 'number' ? ` ${name}="${schema[key]}"` : ''))
    .join('');
}

/** Description, type and limits of a value, as HTML. */
function hintOf(schema: Json): string {
  const { description } = schema;
  const limits = limitsOf(schema).join(', ');
  const about = typeof description === 'string' ? description.trim().split(/\n\s*\n/, 1) : [];
  const rest = limits === '' ? [] : [`${limits[0]?.toUpperCase()}${limits.slice(1)}.`];
  return [...about, ...rest].map(inline).join(' ');
}

function limitsOf(schema: Json): string[] {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, default: usual } = schema;
  const type = typeOf(schema) ?? '';
  const between = (least: unknown, most: unknown, unit: string): string[] => {
    if (typeof most !== 'number')
      return typeof least === 'number' && least > 0 ? [`at least ${least}${unit}`] : [];
    return [
      typeof least === 'number' && least > 0
        ? `${least} to ${count(most)}${unit}`
        : `up to ${count(most)}${unit}`,
    ];
  };
  const isText = minLength !== undefined || maxLength !== undefined;
  return [
    ...(type === 'array' ? ['a list, as JSON'] : type === 'object' ? ['an object, as JSON'] : []),
    ...(type === 'integer' && minimum === undefined && maximum === undefined ? ['a whole number'] : []),
    ...(isText && Number(maxLength) !== Number(minLength)
      ? between(minLength, maxLength, ' characters')
      : []),
    ...between(minimum, maximum, ''),
    ...between(minItems, maxItems, ' items'),
    ...(usual === undefined || isObject(usual) ? [] : [`default ${shortText(usual)}`]),
  ];
}

function shortText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A number with narrow spaces between thousands. */
function count(value: number): string {
  return value < 10_000 ? String(value) : value.toLocaleString('en').replaceAll(',', '\u202f');
}
