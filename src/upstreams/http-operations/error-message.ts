import { hasMoreMembers } from '../../contract/json-members.js';
import type { HttpAnswer } from '../../net/http-client.js';

type Conceal = (text: string) => string;

/** The rest of a longer error page is not read. */
const MAX_READ_CHARACTERS = 4_000;
const MAX_SHOWN_CHARACTERS = 300;
/** A JSON error with more members is not read. */
const MAX_MEMBERS = 20_000;
/** The fields in which APIs put their message; RFC 9457 defines `detail` and `title`. */
const FIELDS = ['message', 'error', 'detail', 'error_description', 'title', 'errors', 'reason'];
const MAX_DEPTH = 4;

/**
 * An upstream's message about an error, for the buyer or the log: one line of at most 300 characters; '' if there is no readable message.
 * @param conceal removes secrets
 */
export function errorMessageOf(answer: HttpAnswer, body: Buffer, conceal: Conceal): string {
  const text = body.toString('utf8');
  const type = answer.header('content-type') ?? '';
  const said = /json/i.test(type) || /^\s*[[{"]/.test(text) ? inJson(text) : plainText(text, type);
  return shown(said, conceal);
}

function shown(text: string, conceal: Conceal): string {
  const line = text
    .slice(0, MAX_READ_CHARACTERS)
    // Control and format characters, which can hide or reorder what follows.
    .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
    .trim();
  const [...characters] = conceal(line);
  const cut = characters.length > MAX_SHOWN_CHARACTERS;
  return cut ? `${characters.slice(0, MAX_SHOWN_CHARACTERS).join('')}…` : characters.join('');
}

function plainText(text: string, type: string): string {
  return /html|xml/i.test(type) || /^\s*</.test(text) ? '' : text;
}

function inJson(text: string): string {
  try {
    return hasMoreMembers(Buffer.from(text), MAX_MEMBERS) ? '' : (messageIn(JSON.parse(text), 0) ?? '');
  } catch {
    return '';
  }
}

function messageIn(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return undefined;
  const inner = Array.isArray(value)
    ? value.slice(0, 1)
    : FIELDS.map(name => (value as Record<string, unknown>)[name]);
  for (const each of inner) {
    const message = messageIn(each, depth + 1);
    if (message) return message;
  }
  return undefined;
}
