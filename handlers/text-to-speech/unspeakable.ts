/** Finds the words and symbols that a voice would leave out, so that such a text is refused instead of being sold with words missing. */

import { CURRENCY_SIGNS, nameEmoji, spelled } from './sign-names.js';

/** The text has something that the voice cannot say. The message is for the caller. */
export class Unspeakable extends Error {}

/** A run of letters and digits, or one other character that is not a space. */
const TOKENS = /[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}\s]/gu;
/** Characters that no voice says: punctuation, accents, invisible characters, ruled lines and bullets. */
const SILENT =
  /^(?!\p{Emoji_Modifier})[\s\p{P}\p{Sk}\p{M}\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u2500-\u25A1\u25AA\u25AB\u25B6\u25B8\u25BA\u25C6\u25C7\u25CB\u25CF\u25E6\u2726\u2756\u27A4]$/u;
const MAX_NAMED = 8;
const MAX_NAMED_CHARACTERS = 30;

type Reads = (character: string) => boolean;

function isNamed(character: string): boolean {
  return CURRENCY_SIGNS.includes(character) || spelled(character) !== undefined;
}

/** Whether `toAscii` in spoken-text.ts turns the character into words. */
function readsEnglish(character: string): boolean {
  if (SILENT.test(character) || /^\p{ASCII}$/u.test(character)) return true;
  if (isNamed(character)) return true;
  const decomposed = [...character.normalize('NFKD').replace(/\p{M}/gu, '')];
  return (
    decomposed.some(part => part !== ' ') &&
    decomposed.every(part => /^[\p{ASCII}\u2044]$/u.test(part) || isNamed(part))
  );
}

/** Languages whose writing Unicode divides into several scripts. */
const SCRIPTS: Record<string, string[] | undefined> = {
  Hans: ['Hani', 'Bopo'],
  Hant: ['Hani', 'Bopo'],
  Jpan: ['Hani', 'Hira', 'Kana'],
  Kore: ['Hang', 'Hani'],
};

function scriptsOf(language: string): string[] {
  try {
    const { script = 'Latn' } = new Intl.Locale(language).maximize();
    return SCRIPTS[script] ?? [script];
  } catch {
    return [];
  }
}

/** A voice of a language other than English reads the letters of its language, Latin letters, digits, and the signs on every keyboard. */
function readsLanguage(language: string): Reads {
  const scripts = ['Latn', 'Zinh', ...scriptsOf(language)].map(script => String.raw`\p{scx=${script}}`);
  const letter = new RegExp(`^[${scripts.join('')}]$`, 'u');
  return character =>
    SILENT.test(character) || /^[\p{ASCII}\p{Nd}€£°]$/u.test(character) || letter.test(character);
}

export function isEnglish(language: string): boolean {
  return /^en\b/i.test(language);
}

function named(token: string): string {
  const characters = [...token];
  const shown = characters.slice(0, MAX_NAMED_CHARACTERS).join('');
  if (/^[\p{Co}\p{Cn}\p{Cs}\uFFFD]/u.test(shown))
    return `U+${(shown.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`;
  return `"${shown}${characters.length > MAX_NAMED_CHARACTERS ? '…' : ''}"`;
}

/** A single Greek letter is read by its name; a Greek word can't be read. */
function isGreekWord(token: string): boolean {
  return (token.match(/\p{Script=Greek}/gu) ?? []).length > 1;
}

/** The words and signs of a text that a voice of this language cannot say, each once. Linear in the length of the text. */
export function unspeakable(text: string, language: string): string[] {
  const english = isEnglish(language);
  const reads = english ? readsEnglish : readsLanguage(language);
  const found = new Set<string>();
  for (const [token] of (english ? nameEmoji(text) : text).matchAll(TOKENS)) {
    if (/^\p{ASCII}*$/u.test(token)) continue;
    const known = !(english && isGreekWord(token)) && [...token].every(reads);
    if (!known) found.add(token);
  }
  return [...found];
}

/** @throws Unspeakable names the words and signs that the voice cannot say */
export function requireSpeakable(text: string, language: string): void {
  const found = unspeakable(text, language);
  if (found.length === 0) return;
  const more = found.length > MAX_NAMED ? ` and ${found.length - MAX_NAMED} more` : '';
  const advice = isEnglish(language) ? 'in Latin letters or as English words' : 'as words in its language';
  throw new Unspeakable(
    `text has words or signs that the voice cannot speak: ${found.slice(0, MAX_NAMED).map(named).join(', ')}${more}. ` +
      `Write them ${advice}, or leave them out.`,
  );
}
