/**
 * English names of signs and emoji, with which a voice can read a text that contains them. Emoji have the short names of Unicode's CLDR,
 * as screen readers say them.
 */

import { readFileSync } from 'node:fs';

export const CURRENCIES: Record<string, { one: string; many: string; cent?: string; cents?: string }> = {
  $: { one: 'dollar', many: 'dollars', cent: 'cent', cents: 'cents' },
  '€': { one: 'euro', many: 'euros', cent: 'cent', cents: 'cents' },
  '£': { one: 'pound', many: 'pounds', cent: 'penny', cents: 'pence' },
  '¥': { one: 'yen', many: 'yen', cent: 'sen', cents: 'sen' },
  '₹': { one: 'rupee', many: 'rupees', cent: 'paisa', cents: 'paise' },
  '₽': { one: 'ruble', many: 'rubles', cent: 'kopek', cents: 'kopeks' },
  '₴': { one: 'hryvnia', many: 'hryvnias' },
  '₺': { one: 'lira', many: 'liras' },
  '₩': { one: 'won', many: 'won' },
  '₪': { one: 'shekel', many: 'shekels' },
  '₫': { one: 'dong', many: 'dong' },
  '₦': { one: 'naira', many: 'naira' },
  '₱': { one: 'peso', many: 'pesos' },
  '₿': { one: 'bitcoin', many: 'bitcoins' },
};

/** All signs of `CURRENCIES`, for a character class. */
export const CURRENCY_SIGNS = Object.keys(CURRENCIES).join('');

/** Letters that Unicode does not decompose, and signs that stand for words. */
const SPELLED: Record<string, string> = {
  'ß': 'ss', 'ẞ': 'SS', 'æ': 'ae', 'Æ': 'AE', 'œ': 'oe', 'Œ': 'OE', 'ø': 'o', 'Ø': 'O', 'ł': 'l', 'Ł': 'L',
  'đ': 'd', 'Đ': 'D', 'ð': 'd', 'Ð': 'D', 'þ': 'th', 'Þ': 'Th', 'ı': 'i', 'ħ': 'h', 'Ħ': 'H', 'ŋ': 'ng', 'Ŋ': 'NG',
  'ə': 'a', 'Ə': 'A', 'ƒ': 'f',
  '¢': ' cents ', '฿': ' baht ', '©': ' copyright ', '®': ' registered ', '™': ' trademark ',
  '°': ' degrees ', '×': ' times ', '÷': ' divided by ', '±': ' plus or minus ', '−': '-', '≈': ' approximately ',
  '≤': ' at most ', '≥': ' at least ', '≠': ' is not ', '≢': ' is not equivalent to ', '⇏': ' does not imply ', '∄': ' there does not exist ',
  '≮': ' not less than ', '≯': ' not more than ', '≡': ' is equivalent to ', '∝': ' is proportional to ',
  '√': ' square root of ', '∑': ' sum of ', '∏': ' product of ', '∫': ' integral of ', '∂': ' partial ', '∆': ' delta ',
  '∇': ' nabla ', '∞': ' infinity ', '∈': ' in ', '∉': ' not in ', '∪': ' union ', '∩': ' intersection ',
  '∅': ' empty set ', '∀': ' for all ', '∃': ' there exists ', '¬': ' not ', '∧': ' and ', '∨': ' or ', '⋅': ' times ',
  '§': ' section ', '¶': ' paragraph ', '№': ' number ', '‰': ' per mille ', '℮': ' estimated ',
  '→': ' to ', '⇒': ' implies ', '←': ' left arrow ', '↑': ' up arrow ', '↓': ' down arrow ', '↔': ' left right arrow ',
  '⇐': ' is implied by ', '⇔': ' is equivalent to ',
  '✓': ' check mark ', '✗': ' cross mark ', '✘': ' cross mark ', '★': ' star ', '☆': ' star ', '♪': ' music ', '♫': ' music ',
  '⟶': ' to ', '➔': ' to ', '➜': ' to ', '➝': ' to ', '➞': ' to ', '▲': ' up triangle ', '▼': ' down triangle ',
  'µ': ' micro', 'μ': ' micro',
  // Apostrophes that are letters: Hawaiʻi, Qurʾan, donʼt.
  'ʹ': "'", 'ʺ': "'", 'ʻ': "'", 'ʼ': "'", 'ʽ': "'", 'ʾ': "'", 'ʿ': "'", 'ˀ': "'", 'ˁ': "'",
}; // prettier-ignore

const GREEK =
  'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau upsilon phi chi psi omega'.split(
    ' ',
  );
const SMALL_ALPHA = 0x3b1;

/** Numbers in circles that Unicode does not decompose: the first of a run, the last, and the number of the first. */
const CIRCLED: [first: string, last: string, number: number][] = [
  ['❶', '❿', 1], ['➀', '➉', 1], ['➊', '➓', 1], ['⓫', '⓴', 11], ['⓵', '⓾', 1], ['⓿', '⓿', 0],
]; // prettier-ignore

function circled(character: string): string | undefined {
  const run = CIRCLED.find(([first, last]) => character >= first && character <= last);
  return run && ` ${run[2] + character.charCodeAt(0) - run[0].charCodeAt(0)} `;
}

/** The spoken form of a single character that is not part of a word in its own script; undefined if unknown. */
export function spelled(character: string): string | undefined {
  if (Object.hasOwn(SPELLED, character)) return SPELLED[character];
  const small = character.toLowerCase();
  const greek = small.length === 1 ? GREEK[small.charCodeAt(0) - SMALL_ALPHA] : undefined;
  return greek === undefined ? circled(character) : ` ${greek} `;
}

/** One emoji with everything that belongs to it: two letters of a flag, skin tone, parts that are joined, tags. */
const EMOJI =
  /\p{Regional_Indicator}\p{Regional_Indicator}|\p{Extended_Pictographic}(?:\uFE0F|\uFE0E|\p{Emoji_Modifier})*(?:\u200D\p{Extended_Pictographic}(?:\uFE0F|\p{Emoji_Modifier})*)*[\u{E0020}-\u{E007F}]*/gu;
const FLAG = /^\p{Regional_Indicator}|[\u{E0020}-\u{E007F}]/u;
const VARIANTS = /[\uFE0E\uFE0F]|\p{Emoji_Modifier}/gu;

let names: Map<string, string> | undefined;

function readNames(): Map<string, string> {
  const file = new URL(import.meta.resolve('unicode-emoji-json/data-by-emoji.json'));
  const data = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { name: string }>;
  return new Map(Object.entries(data).map(([emoji, { name }]) => [emoji.replace(VARIANTS, ''), name]));
}

function nameOf(emoji: string): string | undefined {
  names ??= readNames();
  const plain = emoji.replace(VARIANTS, '');
  const name = names.get(plain);
  if (name !== undefined) return ` ${FLAG.test(plain) ? name.replace(/^flag /, 'flag of ') : name} `;
  // An unknown combination is said part by part.
  const parts = plain.includes('\u200D') ? plain.split('\u200D').map(nameOf) : [];
  return parts.length > 0 && !parts.includes(undefined) ? parts.join('') : undefined;
}

const KEYS: Record<string, string> = { '#': ' hash ', '*': ' asterisk ' };

/** Replaces each emoji by its name. Skin tones are not spoken. An emoji without a name stays. */
export function nameEmoji(text: string): string {
  return text
    .replace(/([0-9#*])\uFE0F?\u20E3/g, (_match, key: string) => KEYS[key] ?? `${key} `)
    .replace(EMOJI, emoji => (Object.hasOwn(SPELLED, emoji.charAt(0)) ? emoji : (nameOf(emoji) ?? emoji)));
}
