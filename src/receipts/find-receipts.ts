import { isObject } from '../contract/references.js';
import { readJws } from './jws.js';

const MAX_DEPTH = 16;

/**
 * Finds every JWS in a string, without duplicates: in plain form, in the base64 of a PAYMENT-RESPONSE, and anywhere in JSON such as the
 * result of an MCP tool. Header names and other text around them are ignored.
 */
export function receiptsIn(text: string): string[] {
  const whole = jsonIn(text);
  const found = whole === undefined ? text.split(/[\s,"']+/).flatMap(receiptsInWord) : receiptsInJson(whole);
  return [...new Set(found)];
}

function receiptsInWord(word: string): string[] {
  if (readJws(word)) return [word];
  const value = jsonIn(Buffer.from(word, 'base64').toString('utf8'));
  return value === undefined ? [] : receiptsInJson(value);
}

function receiptsInJson(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return readJws(value) ? [value] : [];
  if (depth > MAX_DEPTH || (!isObject(value) && !Array.isArray(value))) return [];
  return Object.values(value).flatMap(member => receiptsInJson(member, depth + 1));
}

/** The object or array that a text contains as JSON; undefined if there is none. */
function jsonIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
