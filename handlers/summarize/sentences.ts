import { readFileSync } from 'node:fs';
import { eld } from 'eld/extrasmall';
import { balanced } from './gate.js';
import { UNMARKED } from './words.js';

/** Splits blocks into sentences: ICU's rules for the text's language, with CLDR's list of abbreviations, which do not end sentences. */

type Suppressions = {
  segments: { segmentations: { SentenceBreak?: { standard: { suppression: string }[] } } };
};

/** Languages for which CLDR lists abbreviations. */
const LISTED = new Set(['de', 'el', 'en', 'es', 'fi', 'fr', 'it', 'pt', 'ru', 'sv']);
/** Languages that write ordinals with a full stop: "3. Oktober". */
const ORDINALS = new Set([
  'de',
  'da',
  'no',
  'nb',
  'fi',
  'cs',
  'sk',
  'sl',
  'hr',
  'hu',
  'et',
  'lv',
  'pl',
  'tr',
  'is',
]);
/** Abbreviations of titles and references that are missing from CLDR's lists. */
const FURTHER = (
  'Dr Prof Mr Mrs Ms St No Nos Nr Art Arts art Sec sec Fig fig Vol vol vs cf approx resp ca bzw ggf inkl Rn Rz Bd Az Urt ' +
  'M Mme Mlle Me Sig Sra Dra Exmo núm nº pág inc incl Inc Ltd Co Corp Bros etc al ст п пп см др т.е т.д т.п им ул кв гр руб тыс млн млрд'
).split(' ');

const ENOUGH_TO_TELL = 2_000;
/** `Intl.Segmenter` takes quadratic time, so its input is limited to this length. */
const WINDOW = 4_000;
/** The maximum number of sentences that a pair of brackets or quotation marks may span. */
const SPAN = 4;

function abbreviations(language: string): Set<string> {
  const found = new Set(FURTHER.map(word => `${word}.`));
  if (!LISTED.has(language)) return found;
  const file = new URL(
    `segments/${language}/suppressions.json`,
    import.meta.resolve('cldr-segments-full/package.json'),
  );
  const { segments } = JSON.parse(readFileSync(file, 'utf8')) as Suppressions;
  for (const { suppression } of segments.segmentations.SentenceBreak?.standard ?? []) found.add(suppression);
  return found;
}

/**
 * The data for finding the ends of sentences in one text. `bare`: words that also occur in it without a full stop, so they are not
 * abbreviations. `little`: its lower-case words of up to three letters.
 */
type Reader = {
  language: string;
  segmenter: Intl.Segmenter;
  short: Set<string>;
  bare: Set<string>;
  little: Set<string>;
  hasty: boolean;
};

function readerOf(text: string): Reader {
  const found = eld.detect(text.slice(0, ENOUGH_TO_TELL)).language;
  const language = found === '' ? 'en' : found;
  const stops = text.match(/\p{Ll}{3}[.!?] (?=\p{Lu})/gu)?.length ?? 0;
  const hastyStops = text.match(/\p{Ll}{3}[.!?] (?=\p{Ll})/gu)?.length ?? 0;
  return {
    language,
    segmenter: new Intl.Segmenter(language, { granularity: 'sentence' }),
    short: abbreviations(language),
    little: new Set(text.match(/(?<!\p{L})\p{Ll}{1,3}(?!\p{L})/gu)),
    bare: new Set(text.match(/(?<![\p{L}.])\p{L}{4,}(?![\p{L}.])/gu)),
    hasty: hastyStops > stops,
  };
}

const OPENING = /^["'“‘«„([¿¡<@#]{0,3}/u;

/** Abbreviations that also end a sentence if the text writes the next word in lower case elsewhere: "at 2 a.m. The …" */
const MAY_END = /^(?:(?:\p{L}\.)+\p{L}|Inc|Ltd|Co|Corp|Bros|etc|al)$/u;

/** Whether the full stop at the end of `left` belongs to an abbreviation and so does not end a sentence. */
function isAbbreviated(
  left: string,
  right: string,
  { language, short, bare, little, hasty }: Reader,
): boolean {
  const word = /(?:^|[\s("'“„«])((?:[\p{L}\p{N}]{1,20}\.){0,6}[\p{L}\p{N}]+)\.$/u.exec(left.slice(-40))?.[1];
  if (word === undefined) return false;
  const next = right.replace(OPENING, '');
  if (/^\(?(?:\d{1,3}|\p{L})\.$/u.test(left)) return true;
  if (/^\d{1,2}$|^[IVX]{1,4}$/.test(word)) return ORDINALS.has(language) && /^\p{L}/u.test(next);
  const opener = /^\p{Lu}\p{Ll}{0,2}(?!\p{L})/u.exec(next)?.[0].toLowerCase();
  if (opener !== undefined && little.has(opener) && MAY_END.test(word)) return false;
  if (/^(?:\p{L}\.)*\p{L}$/u.test(word)) return word !== 'I';
  if (short.has(`${word}.`)) return !bare.has(word);
  if (/^(?:\p{Lu}\p{L}{0,3}|[^aeiouyäöü\P{Ll}]{1,4})$/u.test(word) && /^[\p{N}§]/u.test(next)) return true;
  return /^\p{Ll}/u.test(next) && !hasty;
}

/** Whether `right` continues the sentence that seems to end with `left`. */
function continues(left: string, right: string, spaced: boolean, reader: Reader): boolean {
  if (!spaced && /[.!?…]["'”’»)\]]*$/u.test(left)) return true;
  if (/^[\p{Pe}\p{Pf},;:%]/u.test(right) && !/^[«“]/u.test(right)) return true;
  if (/["”’»)\]…]$/u.test(left) && /^\p{Ll}/u.test(right)) return true;
  return left.endsWith('.') && isAbbreviated(left, right, reader);
}

/** ICU's boundaries. In hastily written messages, a full stop before a lower-case letter is also a boundary. */
function segmentsOf(text: string, { segmenter, hasty }: Reader): string[] {
  const segments = Array.from(segmenter.segment(text), ({ segment }) => segment);
  return hasty ? segments.flatMap(segment => segment.split(/(?<=\p{Ll}{2}[.!?]\s)(?=\p{Ll})/u)) : segments;
}

function sentencesOfWindow(text: string, reader: Reader): string[] {
  const sentences: string[] = [];
  for (const segment of segmentsOf(text, reader)) {
    const open = sentences.at(-1);
    if (open === undefined || !continues(open.trimEnd(), segment, /\s$/.test(open), reader))
      sentences.push(segment);
    else sentences[sentences.length - 1] = open + segment;
  }
  return sentences;
}

/** Sentences inside the same brackets or quotation marks stay together. */
function spliced(sentences: string[]): string[] {
  const whole: string[] = [];
  for (let at = 0; at < sentences.length;) {
    let end = at + 1;
    if (!balanced(sentences[at] ?? '')) {
      const last = Math.min(sentences.length, at + SPAN);
      for (let to = at + 2; to <= last; to += 1)
        if (balanced(sentences.slice(at, to).join(''))) {
          end = to;
          break;
        }
    }
    whole.push(sentences.slice(at, end).join('').trim());
    at = end;
  }
  return whole.filter(sentence => sentence !== '');
}

function windowEnd(text: string, from: number): number {
  const limit = from + WINDOW;
  if (limit >= text.length) return text.length;
  const space = text.lastIndexOf(' ', limit);
  if (space > from + WINDOW / 2) return space + 1;
  return /^[\udc00-\udfff]/.test(text.charAt(limit)) ? limit - 1 : limit;
}

function split(text: string, reader: Reader): string[] {
  const sentences: string[] = [];
  for (let from = 0; from < text.length;) {
    const end = windowEnd(text, from);
    const found = sentencesOfWindow(text.slice(from, end), reader);
    const last = found.at(-1);
    let next = end;
    // The last sentence may continue after the window, so it is read again with what follows, unless it fills the window.
    if (end < text.length && last !== undefined && found.length > 1 && last.length < WINDOW / 2) {
      next = end - last.length;
      found.pop();
    }
    sentences.push(...found);
    from = next;
  }
  return spliced(sentences).flatMap(sentence =>
    UNMARKED.test(sentence) ? splitUnmarked(sentence) : [sentence],
  );
}

/**
 * The language of a text (ISO 639-1), and a function that splits a line of the text into trimmed sentences, in order. Together, the
 * sentences contain every character except spaces. When in doubt, two sentences are not separated. Linear in the length of the line.
 */
export function readingOf(text: string): {
  language: string;
  hasty: boolean;
  sentencesOf: (line: string) => string[];
} {
  const reader = readerOf(text);
  return { language: reader.language, hasty: reader.hasty, sentencesOf: line => split(line, reader) };
}

/** Words that continue a Thai sentence after a space. */
const THAI_CONTINUES =
  /^(?:และ|หรือ|แต่|ซึ่ง|โดย|ที่|เพื่อ|จาก|ของ|ใน|เช่น|คือ|ได้แก่|รวม|เนื่อง|ภายใน|ตั้งแต่|จนถึง|พร้อม|จึง|ก็|ว่า|เป็น|จะ|กับ|เพราะ|อย่างมี)/u;
const FEWEST_THAI_LETTERS = 24;
const MOST_THAI_LETTERS = 160;

/** For scripts that end sentences with only a space: a space next to a name, a number or a conjunction does not end one. */
function splitUnmarked(text: string): string[] {
  const sentences: string[] = [];
  let open = '';
  for (const phrase of text.split(' ')) {
    const letter = /^\p{L}/u.test(phrase) && UNMARKED.test(phrase.charAt(0));
    const closed = open.length >= FEWEST_THAI_LETTERS && !/[\p{N}(,:]$|[A-Za-z]$/u.test(open);
    const continued = !letter || (THAI_CONTINUES.test(phrase) && open.length < MOST_THAI_LETTERS);
    if (open !== '' && closed && !continued) {
      sentences.push(open);
      open = phrase;
    } else open = open === '' ? phrase : `${open} ${phrase}`;
  }
  if (open !== '') sentences.push(open);
  return sentences;
}
