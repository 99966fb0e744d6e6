import { parse as parseType } from 'content-type';
import { isUtf8 } from 'node:buffer';
import { endOfString } from '../contract/json-members.js';
import { positionOfFault } from './json-position.js';

/** Invalid body: 400. The message says what to correct. */
export class BodyFault extends Error {}

/** The number of members of a body counted so far. */
export type Counted = { members: number };

/**
 * Counts names and values together. No operation needs more than a few; 100 000 would take half a second to
 * parse and sort.
 */
const MAX_MEMBERS = 1_000;
const MAX_DEPTH = 64;
const SHOWN_NAME_CHARACTERS = 50;
const JSON_TYPE = /^application\/(?:json|[a-z0-9.-]+\+json)$/;
const UTF8 = /^utf-?8$/i;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Accepts JSON media types without a charset or with utf-8.
 * @throws BodyFault
 */
export function requireJsonType(header = ''): void {
  if (header === 'application/json') return;
  const { type, parameters } = parseType(header);
  if (!JSON_TYPE.test(type)) {
    throw new BodyFault('the body must be JSON, sent with Content-Type: application/json');
  }
  requireUtf8(header, parameters.charset);
}

/** @throws BodyFault */
export function requireUtf8(header: string, charset = 'utf-8'): void {
  // If there are several charset parameters, some parsers use the first and others the last.
  const several = (header.match(/;[ \t]*charset[ \t]*=/gi) ?? []).length > 1;
  if (several || !UTF8.test(charset)) {
    throw new BodyFault('the charset in Content-Type must be utf-8, or left out; encode the body as UTF-8');
  }
}

/** Reads an object from JSON; see `parseJson`. @throws BodyFault */
export function parseJsonObject(sent: Buffer): object {
  const value = parseJson(sent, 'a JSON object');
  if (typeof value !== 'object' || Array.isArray(value))
    throw new BodyFault('the body must be a JSON object');
  return value;
}

/**
 * Reads JSON in UTF-8, with or without a byte order mark: at most 1 000 members and 64 levels, and no duplicate
 * names in an object (parsers disagree about which one counts). A bare null is refused. Takes time linear in the
 * number of bytes.
 * @param counted shared by all JSON parts of one body
 * @throws BodyFault
 */
export function parseJson(
  sent: Buffer,
  wanted = 'JSON',
  counted: Counted = { members: 0 },
): NonNullable<unknown> {
  requireText(sent);
  const bytes = sent.subarray(0, 3).equals(BYTE_ORDER_MARK) ? sent.subarray(3) : sent;
  checkStructure(bytes, counted);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new BodyFault(notJson(bytes.toString('utf8'), wanted));
  }
  if (value === undefined || value === null) throw new BodyFault(`the body must be ${wanted}, not null`);
  return value;
}

function notJson(text: string, wanted: string): string {
  if (!/\S/.test(text)) return `the body is empty; send ${wanted}`;
  const { line, column } = positionOfFault(text);
  return `the body is not JSON: see line ${line}, column ${column}`;
}

/** The body as text. @throws BodyFault */
export function textOf(sent: Buffer): string {
  requireText(sent);
  return sent.toString('utf8');
}

function requireText(sent: Buffer): void {
  if (!isUtf8(sent)) throw new BodyFault('the body is not UTF-8; encode it as UTF-8');
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const NUMBER_SIGNS = Buffer.from('+-.eE');
const NUMBER = /^(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Counts members and levels, compares names and checks numbers without parsing; strings are skipped. Invalid JSON is left to the parser. */
function checkStructure(bytes: Buffer, counted: Counted): void {
  /** The names found so far in each open object or array. */
  const open: (Set<string> | undefined)[] = [];
  let string: Buffer | undefined;
  let numbers = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) {
      const end = endOfString(bytes, index);
      string = bytes.subarray(index, end + 1);
      index = end;
    } else if (byte === COMMA) counted.members += 1;
    else if (byte === COLON) {
      counted.members += 1;
      addName(open, string);
    } else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) open.push(undefined);
    // ] and } differ in one bit.
    else if (byte === 0x5d || byte === 0x7d) open.pop();
    else if (isDigit(byte)) {
      // Numbers without a comma between them are not JSON, and checking megabytes of them would take seconds.
      if (++numbers > counted.members + 1) return;
      index = checkNumber(bytes, index);
    }
    if (counted.members > 2 * MAX_MEMBERS) throw new BodyFault('the body has too many members');
    if (open.length > MAX_DEPTH) throw new BodyFault('the body is nested too deeply');
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/**
 * Refuses a number that JavaScript would round, because the work would then get another one than the buyer sent, and two different calls
 * would count as the same. The sign does not matter.
 * @returns the index of its last byte
 */
function checkNumber(bytes: Buffer, start: number): number {
  let end = start + 1;
  while (isDigit(bytes[end]) || NUMBER_SIGNS.includes(bytes[end] ?? 0)) end += 1;
  const text = bytes.toString('latin1', start, end);
  const value = Number(text);
  const written = decimalOf(text);
  // C and older programs write a number with 17 digits: 0.10000000000000001 for 0.1.
  const exact = [String(value), value.toPrecision(17)].map(decimalOf);
  if (written !== undefined && !exact.includes(written))
    throw new BodyFault(
      `the body contains the number ${text.slice(0, SHOWN_NAME_CHARACTERS)}, which cannot be read exactly; send one with at most 15 digits`,
    );
  return end - 1;
}

/** The value of a number in decimal, written in one way only: `12e3` for `12000` and `1.20E4`. Undefined for other texts. */
function decimalOf(text: string): string | undefined {
  const [, whole, fraction = '', exponent = '0'] = NUMBER.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  if (digits === '') return '0';
  // Not with /0+$/, which takes quadratic time.
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return `${digits.slice(0, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}

function addName(open: (Set<string> | undefined)[], string: Buffer | undefined): void {
  const name = string && nameOf(string);
  if (name === undefined || open.length === 0) return;
  const names = (open[open.length - 1] ??= new Set());
  if (names.has(name)) {
    const shown = JSON.stringify(name.slice(0, SHOWN_NAME_CHARACTERS));
    throw new BodyFault(`the body contains ${shown} twice in one object; send each name once`);
  }
  names.add(name);
}

/** Decodes escapes: `a` and `\u0061` are the same name. */
function nameOf(string: Buffer): string | undefined {
  if (!string.includes(BACKSLASH)) return string.toString('utf8', 1, string.length - 1);
  try {
    return JSON.parse(string.toString('utf8')) as string;
  } catch {
    return undefined;
  }
}
