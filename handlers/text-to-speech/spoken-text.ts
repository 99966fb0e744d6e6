/**
 * Rewrites text so that a speech engine that only knows ASCII English reads it as a person would. What the engine already reads
 * correctly is left unchanged: ordinals, thousands separators, times, abbreviations.
 */

import { decodeHTMLStrict } from 'entities';
import { CURRENCIES, CURRENCY_SIGNS, nameEmoji, spelled } from './sign-names.js';
import { requireSpeakable } from './unspeakable.js';

/** The speech would be longer than the limit. */
export class SpeechTooLong extends Error {}

/** A text longer than this, before or after its signs are replaced by words, would take far too long to say. */
const MAX_SPOKEN_CHARACTERS = 20_000;

const MAGNITUDES: Record<string, string> = {
  k: 'thousand',
  m: 'million',
  bn: 'billion',
  b: 'billion',
  tn: 'trillion',
  t: 'trillion',
};

const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);

const AMOUNT = String.raw`(\d{1,3}(?:,\d{3}){1,6}|\d{1,21})(?:\.(\d{1,21}))?`;
const MAGNITUDE = String.raw`(?:(?:\s(?=thou|mill|bill|trill|bn|tn))?(thousand|million|billion|trillion|bn|tn|[kmbt])\b)?`;
const PREFIXED = new RegExp(String.raw`([${CURRENCY_SIGNS}])\s?${AMOUNT}${MAGNITUDE}`, 'gi');
/** As in US$5. */
const COUNTRY = new RegExp(String.raw`([a-z])(?=[${CURRENCY_SIGNS}]\s?\d)`, 'gi');
const SUFFIXED = new RegExp(String.raw`\b${AMOUNT}\s?([${CURRENCY_SIGNS}])`, 'g');

const UNITS: Record<string, string> = {
  // Longer units first, because the first that matches is taken.
  'km/h': 'kilometers per hour', 'km/s': 'kilometers per second', 'm/s': 'meters per second', 'ft/s': 'feet per second',
  'kB/s': 'kilobytes per second', 'KB/s': 'kilobytes per second', 'MB/s': 'megabytes per second', 'GB/s': 'gigabytes per second',
  'Mbit/s': 'megabits per second', 'Gbit/s': 'gigabits per second', 'mg/l': 'milligrams per liter', 'g/l': 'grams per liter',
  km: 'kilometers', cm: 'centimeters', mm: 'millimeters', kg: 'kilograms', mg: 'milligrams', lb: 'pounds', lbs: 'pounds',
  oz: 'ounces', ml: 'milliliters', ms: 'milliseconds', KB: 'kilobytes', MB: 'megabytes', GB: 'gigabytes', TB: 'terabytes',
  Hz: 'hertz', kHz: 'kilohertz', MHz: 'megahertz', GHz: 'gigahertz', kW: 'kilowatts', kWh: 'kilowatt hours', mph: 'miles per hour',
}; // prettier-ignore
const UNIT = new RegExp(String.raw`(\d)\s?(${Object.keys(UNITS).join('|')})\b(?!')`, 'g');

/** Units that may follow a sign for micro. */
const SMALL_UNITS: Record<string, string> = {
  g: 'grams', s: 'seconds', l: 'liters', L: 'liters', m: 'meters', F: 'farads', A: 'amperes', V: 'volts', W: 'watts',
}; // prettier-ignore

/** The denominators of fractions, singular and plural. */
const PARTS: Record<string, [one: string, many: string] | undefined> = {
  2: ['half', 'halves'], 3: ['third', 'thirds'], 4: ['fourth', 'fourths'], 5: ['fifth', 'fifths'], 6: ['sixth', 'sixths'],
  7: ['seventh', 'sevenths'], 8: ['eighth', 'eighths'], 9: ['ninth', 'ninths'], 10: ['tenth', 'tenths'],
}; // prettier-ignore
/** A number so long that engines either read it as one number, which listeners can't follow, or leave it out. */
const LONG_NUMBER = /(?<![\d.,])\d{19,}(?![\d.,]*\d)/g;
const NUMERATORS = 'zero one two three four five six seven eight nine'.split(' ');

const TOP_LEVEL = 'com|org|net|edu|gov|io|ai|dev|app|co|me|xyz|info|uk|de|fr|eu|us|sol|js|rs';
const ADDRESS = new RegExp(
  String.raw`\b(?:https?:\/\/|www\.)[^\s<>"]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|(?<![a-z0-9.-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:${TOP_LEVEL})\b(?:\/[^\s<>"]*)?`,
  'gi',
);
const ADDRESS_SIGNS: Record<string, string> = {
  '.': 'dot', '/': 'slash', '@': 'at', '-': 'dash', _: 'underscore', '?': 'question mark', '=': 'equals', '&': 'and',
  '#': 'hash', ':': 'colon', '+': 'plus', '%': 'percent',
}; // prettier-ignore

const TAGS =
  'a|abbr|audio|b|blockquote|body|br|break|button|code|dd|div|dl|dt|em|emphasis|footer|h[1-6]|head|header|hr|html|i|img|input|lang|li|link|mark|meta|nav|ol|option|p|phoneme|pre|prosody|q|s|say-as|script|section|select|small|span|speak|strong|style|sub|sup|svg|table|tbody|td|th|thead|title|tr|u|ul|video|voice|w';
const TAG = new RegExp(String.raw`</?(?:${TAGS})(?:\s[^<>]{0,200})?/?>`, 'gi');

/** Addresses are matched so that the signs in them are left to `addresses`. */
const COMPARISON = new RegExp(
  String.raw`${ADDRESS.source}|<[-=]+>|(?<!-)-+>|(?<!=)=+>|<-+(?![-\d])|<==+|[<>]=|!={1,2}(?!=)|<>|<3|<+|>+`,
  'gi',
);
/** How many characters next to a sign are examined. */
const BESIDE = 40;
const TERM_BEFORE = /(?:\p{N}[%°)\]]?|(?<![\p{L}\p{N}_'\u2019])\p{L})$/u;
const WORD_BEFORE = /[\p{L}\p{N})\]]$/u;
const NUMBER_AFTER = new RegExp(String.raw`^[-+\u2212~]?[${CURRENCY_SIGNS}]?\.?\p{N}`, 'u');
const LETTER_AFTER = /^\p{L}(?![\p{L}\p{N}_'\u2019-])/u;
const WORD_AFTER = /^[\p{L}_(]/u;
const NAME_AFTER = /^\p{Lu}[\p{L}\p{N}-]/u;

/** "I <3 NY", "so good <3!", but not "x <3", "<3 days" or "<3.5". */
function isHeart(before: string, after: string): boolean {
  if (/(?:^|\s)(?:I|we|you|love) ?$/.test(before)) return !/^(?:[\p{L}\p{N}%°]|[.,]\d)/u.test(after);
  return !TERM_BEFORE.test(before.trimEnd()) && !/^(?:\s?[\p{L}\p{N}%°]|[.,]\d)/u.test(after);
}

/** The meaning of `<` or `>` depends on its neighbours. */
function lessOrMore(less: boolean, before: string, after: string): string {
  const left = before.trimEnd();
  const right = after.trimStart();
  const spaced = left !== before && right !== after;
  const words = less ? 'less than' : 'more than';
  const term = TERM_BEFORE.test(left);
  const compared = term ? ` is ${words} ` : ` ${words} `;
  if (NUMBER_AFTER.test(right) || (LETTER_AFTER.test(right) && (term || spaced))) return compared;
  if (!isBetweenWords(before, after)) return ' ';
  if (term && !NAME_AFTER.test(right)) return compared;
  if (!less) return isCode(before, after) ? ' more than ' : ' then ';
  return spaced ? ` ${words} ` : ' ';
}

/** Whether a sign has spaces on both sides or on neither, unlike a bracket. */
function isBetweenWords(before: string, after: string): boolean {
  return (
    /\s$/.test(before) === /^\s/.test(after) &&
    WORD_BEFORE.test(before.trimEnd()) &&
    WORD_AFTER.test(after.trimStart())
  );
}

/** Code such as `count > limit`: lower-case names, spaces around the sign, and no second sign, which would show a path through menus. */
function isCode(before: string, after: string): boolean {
  return /(?:^|[\s(])[a-z_]\w* $/.test(before) && /^ [a-z_]/.test(after) && !/[<>]/.test(before + after);
}

function comparison(sign: string, before: string, after: string): string {
  if (/^[-=<]+>$/.test(sign) && sign !== '<>') return ' \u2192 ';
  if (/^<(?:-+|==+)$/.test(sign)) return ' \u2190 ';
  if (sign === '<=') return ' \u2264 ';
  if (sign === '>=') return ' \u2265 ';
  if (sign.startsWith('!=')) return ' \u2260 ';
  if (sign === '<3') return isHeart(before, after) ? ' heart ' : `${lessOrMore(true, before, `3${after}`)}3`;
  if (sign === '<>') return /\s$/.test(before) ? ' \u2260 ' : ' ';
  return /^[<>]+$/.test(sign) ? lessOrMore(sign.startsWith('<'), before, after) : sign;
}

/**
 * Must run before the steps that change dashes, full stops or `=`, which are parts of these signs. Tags and quotation marks of mail are
 * removed first.
 */
function comparisons(text: string): string {
  return text
    .replace(/[\uFE64-\uFE66\uFF1C-\uFF1E]|[<=>]\u0338/g, sign => sign.normalize('NFKC'))
    .replace(TAG, ' ')
    .replace(/<!--([^<>]*?)-->/g, ' $1, ')
    .replace(/<\/?([A-Za-z][\w.-]*)\/?>/g, ' $1 ')
    .replace(/(^|\n)(?:>(?![=\d]) ?)+/g, '$1')
    .replace(COMPARISON, (sign: string, offset: number, all: string) => {
      const end = offset + sign.length;
      return comparison(sign, all.slice(Math.max(0, offset - BESIDE), offset), all.slice(end, end + BESIDE));
    });
}

function punctuation(text: string): string {
  return (
    text
      // List items become separate paragraphs. This step precedes the one for dashes, because some items begin with a dash.
      .replace(/(^|\n) ?(?:[\u2022\u2023\u25E6\u25AA\u25B8\u25CF\u2756\u27A4*-]) /g, '\n\n')
      .replace(/[\u2018\u2019\u201A\u201B\u2032`\u00B4]/g, "'")
      .replace(/[\u201C\u201D\u201E\u201F\u00AB\u00BB\u2033"]/g, ' ')
      .replace(/[\u2010\u2011]/g, '-')
      .replace(/(\d)\s?[\u2012\u2013]\s?(?=\d)/g, '$1-')
      .replace(/\s?(?:[\u2012-\u2015]|--+|\s-\s)\s?/g, ', ')
  );
}

/** A character, rewritten in letters and signs that the later steps know; a space if it is not spoken. */
function asciiOf(character: string): string {
  if (CURRENCY_SIGNS.includes(character)) return character;
  const known = spelled(character);
  if (known !== undefined) return known;
  if (/^\p{M}$/u.test(character)) return '';
  // Per character: U+FDFA alone decomposes to 18 characters.
  const decomposed = character.normalize('NFKD');
  const kept =
    (decomposed.endsWith('\u0338') ? ' not ' : '') +
    decomposed
      .replace(/\p{M}/gu, '')
      .replace(/\u2044/g, '/')
      .replace(/[^\x20-\x7E]/gu, part => (CURRENCY_SIGNS.includes(part) ? part : (spelled(part) ?? ' ')));
  return kept.trim() === '' ? ' ' : kept;
}

const SUPERSCRIPT = '⁰¹²³⁴⁵⁶⁷⁸⁹';

function power(_match: string, base: string, minus: string, digits: string): string {
  const exponent = [...digits].map(digit => SUPERSCRIPT.indexOf(digit)).join('');
  if (minus === '' && exponent === '2') return `${base} squared `;
  if (minus === '' && exponent === '3') return `${base} cubed `;
  return `${base} to the power of ${minus && 'minus '}${exponent} `;
}

function toAscii(text: string): string {
  return (
    text
      .replace(/(?:°\s?C\b|\u2103)/g, ' degrees Celsius ')
      .replace(/(?:°\s?F\b|\u2109)/g, ' degrees Fahrenheit ')
      // After one or two letters, which are a variable or a unit, the number is an exponent; after a longer word it marks a footnote.
      .replace(/((?<![\p{L}\p{M}'])\p{L}{1,2}|[\d)]|\p{L}(?=\u207B))(\u207B?)([⁰¹²³⁴-⁹]{1,20})/gu, power)
      .replace(/(?<=[\p{L}.,;:!?])(?=[⁰¹²³⁴-⁹])/gu, ' ')
      .replace(
        /[µμ]([gslLmFAVW])(?![\p{L}\d])/gu,
        (_match, unit: string) => ` micro${SMALL_UNITS[unit] ?? unit}`,
      )
      .replace(/(?<![\p{L}\d]\s?)[µμ](?!\p{L})/gu, ' mu ')
      .replace(/(\d)([\u00BC-\u00BE\u2150-\u215E])/g, '$1 and $2')
      .replace(/\P{ASCII}/gu, asciiOf)
  );
}

function addresses(text: string): string {
  return text.replace(ADDRESS, match => {
    const end = /(?<![.,;:!?)'\]])[.,;:!?)'\]]+$/.exec(match)?.[0] ?? '';
    const address = match.slice(0, match.length - end.length).replace(/^https?:\/\/|\/$/gi, '');
    return address.replace(/[^a-z0-9]/gi, sign => ` ${ADDRESS_SIGNS[sign] ?? ''} `) + end;
  });
}

/** Whole units, and hundredths if the amount has one or two decimals; otherwise the plain decimal. */
function money(
  sign: string,
  whole: string,
  decimals: string | undefined,
  magnitude: string | undefined,
): string {
  const unit = CURRENCIES[sign];
  if (!unit) return '';
  const number = decimals === undefined ? whole : `${whole}.${decimals}`;
  if (magnitude) return `${number} ${MAGNITUDES[magnitude.toLowerCase()] ?? magnitude} ${unit.many}`;
  const units = `${whole} ${whole === '1' ? unit.one : unit.many}`;
  if (decimals === undefined || /^0+$/.test(decimals)) return units;
  if (decimals.length > 2) return `${number} ${unit.many}`;
  const hundredths = Number(decimals.padEnd(2, '0'));
  if (unit.cent === undefined || unit.cents === undefined) return `${number} ${unit.many}`;
  const rest = `${hundredths} ${hundredths === 1 ? unit.cent : unit.cents}`;
  return /^0+$/.test(whole) ? rest : `${units} and ${rest}`;
}

function calendarDate(match: string, year: string, month: string, day: string): string {
  const name = MONTHS[Number(month) - 1];
  const number = Number(day);
  return name && number >= 1 && number <= 31 ? `${name} ${number}${ordinal(number)}, ${year}` : match;
}

function ordinal(day: number): string {
  const ending = ['th', 'st', 'nd', 'rd'][day % 10];
  return ending === undefined || (day > 10 && day < 14) ? 'th' : ending;
}

function fraction(match: string, above: string, below: string): string {
  const part = PARTS[below];
  const count = NUMERATORS[Number(above)];
  if (!part || count === undefined || Number(above) >= Number(below)) return match;
  return `${count} ${above === '1' ? part[0] : part[1]}`;
}

function numbers(text: string): string {
  return (
    text
      .replace(COUNTRY, '$1 ')
      .replace(PREFIXED, (_match, sign: string, whole: string, decimals?: string, magnitude?: string) =>
        money(sign, whole, decimals, magnitude),
      )
      .replace(SUFFIXED, (_match, whole: string, decimals: string | undefined, sign: string) =>
        money(sign, whole, decimals, undefined),
      )
      .replace(/\b(\d{4})-(\d{2})-(\d{2})\b/g, calendarDate)
      .replace(
        /\b(\d{1,2})\/(\d{1,2})\/(\d{4})\b/g,
        (match: string, month: string, day: string, year: string) => calendarDate(match, year, month, day),
      )
      // In dates with full stops, the day comes first.
      .replace(
        /(?<![\d.])(\d{1,2})\.(\d{1,2})\.([12]\d{3})(?!\.?\d)/g,
        (match: string, day: string, month: string, year: string) => calendarDate(match, year, month, day),
      )
      .replace(LONG_NUMBER, digits => [...digits].join(' '))
      .replace(/\b24\/7\b/g, '24 7')
      .replace(/(?<![\d/.,])(\d)\/(\d{1,2})(?![\d/.,]*\d)/g, fraction)
      .replace(UNIT, (_match, digit: string, unit: string) => `${digit} ${UNITS[unit] ?? unit}`)
      .replace(/(?<!\d)\d+(?:\.\d+){2,}/g, version => version.replaceAll('.', ' point '))
      // Without separators, the engine reads round numbers digit by digit.
      .replace(/(?<![\d.,])[1-9]\d{1,11}000(?![\d.,]*\d)/g, digits =>
        digits.replace(/\B(?=(?:\d{3}){1,5}$)/g, ','),
      )
      .replace(/(?:\s?%)+/g, ' percent ')
      .replace(/(^|\s)\+(?=\d)/g, '$1plus ')
      .replace(/(\d)\s?\*\s?(?=\d)/g, '$1 times ')
  );
}

/** A path from the home folder, at the start of a word. */
const HOME_PATH = /(^|[\s("'])~((?:\/[\w-]+)+)\/?/g;

const LEFT_SIGNS = new RegExp(`[${CURRENCY_SIGNS}]`, 'g');

/** Replaces signs by words. Not said: quotation marks, brackets, Markdown's marks, `|`, `_`, and a lone `^`, `~` or `\`. */
function signs(text: string): string {
  return text
    .replace(/(^|\n)#{1,6} /g, '$1')
    .replace(/\b([CF])#/g, '$1 sharp')
    .replace(/#\s?(?=\d)/g, ' number ')
    .replace(/(^|[\s(])#(?=[A-Za-z])/g, '$1 hashtag ')
    .replace(/(?:\s?&)+/g, ' and ')
    .replace(/(?:\s?@)+/g, ' at ')
    .replace(/(?:\s?\+)+/g, signs => ' plus'.repeat(Math.min(2, signs.replace(/\s/g, '').length)) + ' ')
    .replace(/(?:\s?=)+\s?/g, ' equals ')
    .replace(/(\S)\s\*\s(?=\S)/g, '$1 times ')
    .replace(/([\w)])\^(?=[\w(-])/g, '$1 to the power of ')
    .replace(
      HOME_PATH,
      (_match, before: string, path: string) => `${before}tilde${path.replaceAll('/', ' slash ')}`,
    )
    .replace(/~\s?(?=[\d$])/g, ' about ')
    .replace(/\\(?=\w)/g, ' backslash ')
    .replace(LEFT_SIGNS, sign => ` ${CURRENCIES[sign]?.one ?? ''} `)
    .replace(/([a-z])\/(?=[a-z])/gi, '$1 ')
    .replace(/(?<!\d)\/|\/(?!\d)/g, ' ')
    .replace(/[^A-Za-z0-9\s.,;:!?'()/-]/g, ' ');
}

function tidy(text: string): string {
  return text
    .replace(/([.!?])[.!?]{3,}/g, '$1')
    .replace(/([,;:])(?:\s?[,;:])+/g, '$1')
    .replace(/ ([.,;:!?])/g, '$1')
    .split('\n\n')
    .map(paragraph => paragraph.replace(/\s+/g, ' ').trim())
    .filter(paragraph => /[A-Za-z0-9]/.test(paragraph))
    .join('\n\n');
}

/** Reduces each run of white space to one space, one line break or one blank line, so that no later pattern meets a long run. */
function squeeze(text: string): string {
  return text
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .replace(/\n{3,}/g, '\n\n');
}

/** Applied in this order. Each step may make the text longer. */
const STEPS = [nameEmoji, comparisons, punctuation, toAscii, addresses, numbers, signs, tidy];

/**
 * Reduces a text to ASCII words, numbers and punctuation. Paragraphs are separated by one blank line; all other white space is one
 * space. Empty if nothing in the text is to be said. Linear in the length of the text.
 * @throws Unspeakable names the words and signs that have no English reading
 * @throws SpeechTooLong if the text grows beyond the limit
 */
export function spokenText(written: string): string {
  if (written.length > MAX_SPOKEN_CHARACTERS) throw new SpeechTooLong(`${written.length} characters`);
  // HTML entities are replaced by their characters.
  const text = decodeHTMLStrict(written);
  requireSpeakable(text, 'en');
  let spoken = text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000B-\u001F\u007F]/g, ' '); // eslint-disable-line no-control-regex
  for (const step of STEPS) {
    spoken = step(squeeze(spoken));
    if (spoken.length > MAX_SPOKEN_CHARACTERS) throw new SpeechTooLong(`${spoken.length} characters`);
  }
  return spoken;
}
