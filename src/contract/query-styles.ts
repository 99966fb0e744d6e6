import { isUtf8 } from 'node:buffer';
import type { Json } from './json.js';
import { fieldsOf, isObject, objectOf, resolved } from './references.js';

/**
 * How a list or an object is written in a query, if not as repeated `name=item`. `separated`: as one string, with separators between the
 * items or the names and values. `members`: each member is a parameter of its own. `brackets`: as `name[member]=value` and `name[]=item`.
 * `lists`: the known members, and whether each is a list.
 */
export type QueryStyle =
  | { kind: 'separated'; by: string; object: boolean }
  | { kind: 'members' | 'brackets'; lists: Readonly<Record<string, boolean>> };

type Shape = 'scalar' | 'list' | 'object' | 'mixed';

const SEPARATORS: Record<string, string | undefined> = {
  form: ',',
  spaceDelimited: ' ',
  pipeDelimited: '|',
};
const STYLES = [...Object.keys(SEPARATORS), 'deepObject'];
const MAX_DEPTH = 16;

/** The kind of a schema's values, as far as it affects how they are written. */
export function shapeOf(document: Json, schema: unknown, depth = 0): Shape {
  const { type, properties, anyOf, oneOf, allOf } = resolved(document, schema);
  const types = [type].flat().filter(each => each !== undefined && each !== 'null');
  if (types.length > 0) return unitedShape(types.map(each => SHAPES[String(each)] ?? 'scalar'));
  if (isObject(properties)) return 'object';
  if (depth > MAX_DEPTH) return 'scalar';
  const parts = [anyOf, oneOf].flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []));
  const others = parts.filter(part => resolved(document, part).type !== 'null');
  if (others.length > 0) return unitedShape(others.map(part => shapeOf(document, part, depth + 1)));
  const all = Array.isArray(allOf) ? allOf.map(part => shapeOf(document, part, depth + 1)) : [];
  return all.find(each => each !== 'scalar') ?? 'scalar';
}

const SHAPES: Record<string, Shape | undefined> = { array: 'list', object: 'object' };

function unitedShape(shapes: Shape[]): Shape {
  const [first = 'scalar'] = shapes;
  return shapes.every(each => each === first) ? first : 'mixed';
}

/** How a query parameter is written; `wrong`: why it can't be written. */
export function queryStyleOf(document: Json, parameter: Json): { style?: QueryStyle; wrong?: string } {
  const { style = 'form', explode = style === 'form', schema } = parameter;
  const named = String(style);
  if (!STYLES.includes(named)) return { wrong: `must have one of the styles ${STYLES.join(', ')}` };
  const shape = shapeOf(document, schema);
  if (named === 'deepObject' && shape !== 'scalar') return bracketed(document, schema);
  if (shape === 'list')
    return explode === true
      ? {}
      : { style: { kind: 'separated', by: SEPARATORS[named] ?? ',', object: false } };
  if (shape === 'object') return objectStyle(document, schema, named, explode === true);
  return named === 'form' ? {} : { wrong: 'must use style: form (the default)' };
}

function objectStyle(
  document: Json,
  schema: unknown,
  named: string,
  explode: boolean,
): ReturnType<typeof queryStyleOf> {
  if (!explode) return { style: { kind: 'separated', by: SEPARATORS[named] ?? ',', object: true } };
  if (named !== 'form') return { wrong: `must not be exploded, because it has the style ${named}` };
  const lists = listsOf(document, schema);
  if (Object.keys(lists).length === 0)
    return {
      wrong: 'must declare its properties, because each is a parameter of its own; or use style: deepObject',
    };
  const wrong = deeper(document, schema);
  return wrong === undefined ? { style: { kind: 'members', lists } } : { wrong };
}

function bracketed(document: Json, schema: unknown): ReturnType<typeof queryStyleOf> {
  const wrong = deeper(document, schema);
  return wrong === undefined ? { style: { kind: 'brackets', lists: listsOf(document, schema) } } : { wrong };
}

function listsOf(document: Json, schema: unknown): Record<string, boolean> {
  const members = Object.entries(fieldsOf(document, schema)?.properties ?? {});
  return Object.fromEntries(members.map(([name, each]) => [name, shapeOf(document, each) === 'list']));
}

/** Why an object can't be written in a query: OpenAPI does not define a style for nested objects. */
function deeper(document: Json, schema: unknown): string | undefined {
  const members = Object.entries(fieldsOf(document, schema)?.properties ?? {});
  const deep = members.find(([, each]) => shapeOf(document, each) === 'object');
  return deep && `must not contain objects such as ${deep[0]}, because a query has no form for them`;
}

/** The parts of a parameter that affect how it is written. */
type Written = { name: string; style?: QueryStyle };

/** A parameter's value as names and values for the query string. */
export function queryPairs({ name, style }: Written, value: unknown): [name: string, text: string][] {
  if (value === undefined) return [];
  if (style?.kind === 'separated') {
    const parts = isObject(value) ? Object.entries(value).flat() : [value].flat();
    return parts.length === 0 ? [] : [[name, parts.map(String).join(style.by)]];
  }
  if (style && isObject(value))
    return Object.entries(value).flatMap(([member, each]) =>
      itemsOf(each).map((item): [string, string] => [
        style.kind === 'members' ? member : `${name}[${member}]`,
        item,
      ]),
    );
  const listed = style?.kind === 'brackets' && Array.isArray(value) ? `${name}[]` : name;
  return itemsOf(value).map(item => [listed, item]);
}

function itemsOf(value: unknown): string[] {
  const items: unknown[] = Array.isArray(value) ? value : [value];
  return items.filter(each => each !== undefined).map(String);
}

/**
 * Query parameters as they are sent; a separating comma is not encoded, because some servers split before they decode.
 * @throws URIError for a string that is not valid Unicode
 */
export function encodedQuery(parameter: Written, value: unknown): string[] {
  const { style } = parameter;
  return queryPairs(parameter, value).map(([name, text]) => {
    const encoded = encodeURIComponent(text);
    const written =
      style?.kind === 'separated' && style.by === ',' ? encoded.replaceAll('%2C', ',') : encoded;
    return `${encodeURIComponent(name)}=${written}`;
  });
}

/** The string that a call has for a parameter, the strings of a list, or the strings of an object's members. */
export type Text = string | string[] | { [member: string]: string | string[] };

/** A query can't be read; the message says why. */
export class QueryFault extends Error {}

const ESCAPES = /(?:%[\da-f]{2})+/gi;

/**
 * Reads a query, or a form that is written like one. URLSearchParams would replace escapes that are not UTF-8 by U+FFFD.
 * @param text without a question mark
 * @throws QueryFault
 */
export function readQuery(text: string): URLSearchParams {
  for (const [run] of text.matchAll(ESCAPES))
    if (!isUtf8(Buffer.from(run.replaceAll('%', ''), 'hex')))
      throw new QueryFault(`${run.slice(0, 30)} is not UTF-8: percent-encode the UTF-8 bytes of the text`);
  return new URLSearchParams(text);
}

/** The value of a parameter in a query; undefined if it is absent. @throws QueryFault */
export function queryTextOf(
  { name, style, list }: Written & { list: boolean },
  sent: URLSearchParams,
): Text | undefined {
  if (style?.kind === 'members') return membersText(style.lists, sent);
  const inBrackets =
    style?.kind === 'brackets' ? bracketText(name, { lists: style.lists, list }, sent) : undefined;
  if (inBrackets !== undefined || !sent.has(name)) return inBrackets;
  const all = sent.getAll(name);
  if (list && !style) return all;
  if (all.length > 1) throw new QueryFault(`${name} must be sent only once`);
  const [text = ''] = all;
  return style?.kind === 'separated' ? separatedText(name, style, text) : list ? [text] : text;
}

function separatedText(name: string, { by, object }: { by: string; object: boolean }, text: string): Text {
  const parts = text === '' ? [] : text.split(by);
  if (!object) return parts;
  if (parts.length % 2 > 0)
    throw new QueryFault(`${name} must be alternating names and values, separated by '${by}'`);
  return Object.fromEntries(
    parts.flatMap((part, index) => (index % 2 > 0 ? [] : [[part, parts[index + 1] ?? ''] as const])),
  );
}

function membersText(lists: Readonly<Record<string, boolean>>, sent: URLSearchParams): Text | undefined {
  const found = Object.entries(lists).flatMap(([member, list]) =>
    sent.has(member) ? [[member, oneOrAll(member, list, sent.getAll(member))] as const] : [],
  );
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}

function bracketText(
  name: string,
  { lists, list }: { lists: Readonly<Record<string, boolean>>; list: boolean },
  sent: URLSearchParams,
): Text | undefined {
  const found = new Map<string, string[]>();
  for (const [key, text] of sent) {
    const member =
      key.startsWith(`${name}[`) && key.endsWith(']') ? key.slice(name.length + 1, -1) : undefined;
    if (member === undefined || /[[\]]/.test(member)) continue;
    found.set(member, [...(found.get(member) ?? []), text]);
  }
  if (found.size === 0) return undefined;
  if (list) return [...found.values()].flat();
  return Object.fromEntries(
    [...found].map(([member, all]) => [
      member,
      oneOrAll(`${name}[${member}]`, objectOf(lists)[member] === true, all),
    ]),
  );
}

function oneOrAll(name: string, list: boolean, all: string[]): string | string[] {
  if (list) return all;
  if (all.length > 1) throw new QueryFault(`${name} must be sent only once`);
  return all[0] ?? '';
}
