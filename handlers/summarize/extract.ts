import { describeData, describeText, isText, quoted } from './describe.js';
import { countByMarks, joinSentences, MAX_SENTENCES } from './gate.js';
import {
  beginningOf,
  clauseOf,
  countEnds,
  ended,
  endsIn,
  isParagraph,
  isQuestion,
  labelledOf,
  type Limits,
  type Reading,
} from './passages.js';
import { speakerOf, toBlocks, type Block } from './plain-text.js';
import { LONGEST_LINE, sectionsOf, type Section } from './sections.js';
import { readingOf } from './sentences.js';
import { countWords } from './words.js';

/** A text with at most this many words and three sentences is its own summary. */
const SHORT_TEXT = 120;
const LONGEST_WHOLE = 2_000;
/** If a text has more words than this and several headings, its description includes the headings. */
const LONG_TEXT = 300;
const FEWEST_HEADINGS = 3;
const LONG_CHAT = 6;
/** A sentence with at most this many words is quoted with its context. */
const FEW_WORDS = 8;

/** How a summary was made: from sentences of the text; the whole text; or a sentence about the text and its beginning. */
export type Extract = { sentences: string[]; method: 'extractive' | 'whole' | 'described' };

/** Letters, digits and emoji are content; punctuation alone is not. */
const hasContent = (text: string): boolean => /[\p{L}\p{N}\p{Extended_Pictographic}\p{RI}]/u.test(text);

/** The text itself, if it is short. */
function wholeOf(blocks: Block[]): Extract | undefined {
  const text = joinSentences(blocks.map(block => ended(block.text)));
  const count = Math.max(countByMarks(text), blocks.length);
  const short = count <= MAX_SENTENCES && text.length <= LONGEST_WHOLE && countWords(text) <= SHORT_TEXT;
  return short ? { sentences: [joinSentences(blocks.map(block => block.text))], method: 'whole' } : undefined;
}

/** The maximum number of sentences that a summary may quote. If the text has four or more sentences, at most half of them. */
function mostOf(blocks: Block[]): number {
  const total = blocks.reduce((sum, { kind, text }) => sum + (kind === 'heading' ? 0 : countEnds(text)), 0);
  return total < 4 ? MAX_SENTENCES : Math.min(MAX_SENTENCES, Math.floor(total / 2));
}

type Opening = { sentences: string[]; section: Section | undefined };

/** The beginning of the text, or its overview if the beginning can't be quoted. */
function openingOf(sections: Section[], reading: Reading, most: number, atMost = MAX_SENTENCES): Opening {
  const first = sections.find(({ purpose, blocks }) => purpose !== 'back' && blocks.some(isParagraph));
  const overviews = sections.filter(section => section !== first && section.purpose === 'overview');
  for (const section of [...(first ? [first] : []), ...overviews]) {
    const asked = section.heading && isQuestion(section.heading.text) ? [section.heading.text] : [];
    for (const long of [false, true]) {
      const sentences = beginningOf(section, reading, {
        sentences: most - asked.length,
        atMost: atMost - asked.length,
        long,
        answer: asked.length > 0,
      });
      if (sentences.length > 0) return { sentences: [...asked, ...sentences], section };
    }
  }
  return { sentences: [], section: undefined };
}

const lengthOf = (sections: Section[]): number =>
  sections.flatMap(({ blocks }) => blocks).reduce((sum, { text }) => sum + text.length, 0);

/** The beginning of the last section whose heading announces a result, if that section is near the start of the text or at its end. */
function resultOf(sections: Section[], reading: Reading, limits: Limits): string[] {
  const at = sections.findLastIndex(({ purpose }) => purpose === 'result');
  const section = sections[at];
  const after = sections.slice(at + 1).filter(({ purpose }) => purpose !== 'back');
  const first = lengthOf(sections.slice(0, at)) <= FIRST_PART * lengthOf(sections);
  return section !== undefined && (first || after.length === 0) ? beginningOf(section, reading, limits) : [];
}
const FIRST_PART = 0.2;

const stemsOf = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}\p{M}]{4,}|[\p{scx=Han}\p{scx=Katakana}]{2}/gu) ?? []).map(word =>
    word.slice(0, 5),
  );

/** A chat, described by its speakers and its beginning. Lines are not counted, because lines without a label may be messages, too. */
function chatOf(blocks: Block[], most: number): Extract | undefined {
  const messages = blocks.filter(({ kind }) => kind === 'message');
  if (messages.length === 0) return undefined;
  const speakers = [...new Set(messages.flatMap(({ text }) => speakerOf(text) ?? []))];
  const first = messages.slice(0, 2).map(({ text }) => ended(text));
  if (messages.length <= LONG_CHAT) return { sentences: first.slice(0, most), method: 'extractive' };
  const names = speakers.length > 5 ? `${speakers.slice(0, 5).join(', ')} and others` : speakers.join(', ');
  return {
    sentences: [`Lines labelled ${names}, of which these are the first.`, ...first],
    method: 'described',
  };
}

/**
 * A summary of `text`. A short text is its own summary. Otherwise, the summary quotes whole sentences in text order, from the beginning
 * of the text and from the beginning of its conclusion, or it describes the text in a sentence and quotes its beginning. Null if the text has
 * no content (only white space, markup or punctuation). Deterministic and linear in the length of the text.
 */
export function extractSummary(text: string): Extract | null {
  const blocks = toBlocks(text);
  if (!hasContent(blocks.map(block => block.text).join(' '))) return null;
  const data = describeData(text, blocks);
  if (data !== undefined) return { sentences: [data], method: 'described' };
  return wholeOf(blocks) ?? chatOf(blocks, mostOf(blocks)) ?? quote(told(blocks));
}

/** The blocks without frames (headers, signatures and the like), unless there is nothing else. */
function told(blocks: Block[]): Block[] {
  const within = blocks.filter(({ kind }) => kind !== 'frame');
  return within.length > 0 ? within : blocks;
}

/** A reading that remembers the sentences of each line, so that a line is split only once. */
function remembering(reading: Reading): Reading {
  const known = new Map<string, string[]>();
  const sentencesOf = (line: string): string[] => {
    const found = known.get(line) ?? reading.sentencesOf(line);
    known.set(line, found);
    return found;
  };
  return { ...reading, sentencesOf };
}

function quote(blocks: Block[]): Extract {
  const reading = remembering(readingOf(blocks.map(block => block.text).join(' ')));
  const sections = sectionsOf(blocks);
  const most = mostOf(blocks);
  const opening = openingOf(sections, reading, most);
  const limits = { sentences: Math.max(1, most - 1), atMost: MAX_SENTENCES - 1, long: true };
  const late = [
    () => resultOf(sections, reading, limits),
    () => labelledOf(blocks, reading, limits),
    () => clauseOf(sections, reading, MAX_SENTENCES - 1),
  ].reduce<string[]>((found, find) => (found.length > 0 ? found : find()), []);
  if (late.length > 0 && !opening.sentences.includes(late[0] ?? '')) {
    const room = most - endsIn(late);
    const first = room > 0 ? openingOf(sections, reading, room, MAX_SENTENCES - endsIn(late)).sentences : [];
    if (first.length > 0) return { sentences: inOrder(blocks, first, late), method: 'extractive' };
    const what = frameOf(blocks, { sentences: [], section: undefined }, reading.language);
    return { sentences: [...(what === undefined ? [] : [what]), ...late], method: 'described' };
  }
  const what = frameOf(blocks, opening, reading.language);
  const [only = '', second] = opening.sentences;
  if (what === undefined && second === undefined && countWords(only) <= FEW_WORDS)
    return {
      sentences: [describeText(blocks, { title: undefined, headings: [], language: reading.language })],
      method: 'described',
    };
  if (what === undefined) return { sentences: opening.sentences, method: 'extractive' };
  const room = Math.min(most, MAX_SENTENCES - 1);
  const { sentences, section } = openingOf(sections, reading, room, MAX_SENTENCES - 1);
  // In a text with many questions, the answer to one of them is not a summary.
  const asked = section?.heading !== undefined && isQuestion(section.heading.text);
  return { sentences: asked ? [what] : [what, ...sentences], method: 'described' };
}

/** Two quotations, in the order of the text. */
function inOrder(blocks: Block[], left: string[], right: string[]): string[] {
  const placeOf = ([first = '']: string[]): number => blocks.findIndex(({ text }) => text.includes(first));
  return placeOf(left) <= placeOf(right) ? [...left, ...right] : [...right, ...left];
}

const isTitle = ({ kind, text }: Block): boolean =>
  kind === 'heading' || (kind === 'prose' && text.length <= LONGEST_LINE && !/[.!?。！？,;:：]$/u.test(text));

/** Whether a heading looks like that of one part of a text ("Chapter 1", "1 kap. …", "§ 3", "II. …") instead of its title. */
const isPart = (text: string): boolean =>
  /^(?:[§\d第]|[IVX]{1,5}\.\s|[IVX]{2,5}\s)/u.test(text) || NUMBERED_PART.test(text);
const NUMBERED_PART =
  /^(?:chapter|section|article|part|kapitel|abschnitt|artikel|teil|chapitre|titre|cap[ií]tulo|capitolo|art[ií]culo|artigo|articolo|hoofdstuk|глава|статья|раздел)\s+(?:\d|[ivx]{1,5}\b)/iu;

const isNamedPart = (text: string): boolean => isPart(text) && /\p{L}{3}/u.test(text);

/** Whether the title belongs only to the first of several parts of the text, rather than to the whole. */
function isNextPart(title: string, other: Block): boolean {
  const [number = title] = /^\d[\d.]*/.exec(title) ?? [];
  return isPart(title) && isTitle(other) && isNamedPart(other.text) && !other.text.startsWith(number);
}

/** The title of a text, and its other headings if it is long and has several. */
function frameworkOf(blocks: Block[]): { title: string | undefined; headings: string[] } {
  const [first, ...others] = blocks;
  const isOneOfMany =
    !isQuestion(first?.text ?? '') &&
    others.some(
      other =>
        (other.level !== undefined && other.level === first?.level) || isNextPart(first?.text ?? '', other),
    );
  const title = first && isTitle(first) && isText(first.text) && !isOneOfMany ? first.text : undefined;
  const words = blocks.reduce((sum, { text }) => sum + countWords(text), 0);
  if (words <= LONG_TEXT) return { title, headings: [] };
  const rest = blocks.slice(first && isTitle(first) ? 1 : 0);
  const marked = outlineOf(rest);
  return { title, headings: marked.length > 0 ? marked : numberedOf(rest) };
}

/** Whether sentences contain at least half of a title's words. */
function names(sentences: string[], title: string): boolean {
  const said = new Set(stemsOf(sentences.join(' ')));
  const stems = stemsOf(title);
  return stems.filter(stem => said.has(stem)).length >= stems.length / 2;
}

/** A label for the beginning, if the beginning does not say what it belongs to. */
function frameOf(blocks: Block[], { sentences, section }: Opening, language: string): string | undefined {
  const { title, headings } = frameworkOf(blocks);
  if (sentences.length === 0) return describeText(blocks, { title: undefined, headings, language });
  const heading = section?.purpose === 'body' ? section.heading?.text : undefined;
  const elsewhere = heading !== undefined && heading !== title && isText(heading);
  if (names(sentences, title ?? '') && headings.length === 0 && !elsewhere) return undefined;
  const what = describeText(blocks, { title: withoutColon(title ?? ''), headings, language });
  // The heading is named separately from the title. Joined to the title, it would look like the title of the whole text.
  return elsewhere ? `${what.slice(0, -1)}, ${quoted(withoutColon(heading))}.` : what;
}
const withoutColon = (name: string): string => name.replace(/\s?[:：]$/u, '');

/** The marked headings of the highest level that has several, each once. */
function outlineOf(blocks: Block[]): string[] {
  const headings = blocks.filter(({ level }) => level !== undefined);
  for (const level of [1, 2, 3, 4, 5, 6]) {
    const found = [...new Set(headings.flatMap(block => (block.level === level ? [block.text] : [])))];
    // Headings such as "Article 1" and "Article 2" carry no information.
    const names = new Set(found.map(text => text.replace(/[\p{N}\p{P}\s]+|\b[IVXLC]+\b/gu, '')));
    if (names.size >= FEWEST_HEADINGS) return found;
  }
  return [];
}

/** The names of numbered clauses, if each of the numbers 1, 2, 3 … has a name with a text of its own below it. */
function numberedOf(blocks: Block[]): string[] {
  const names: string[] = [];
  let length = CLAUSE;
  for (const { number, text } of blocks) {
    if (number === names.length + 1) {
      const name = /^[^.:]{2,60}(?:[.:](?=\s+\p{Lu})|$)/u.exec(text)?.[0];
      if (name === undefined || /^\p{Ll}/u.test(name) || length < CLAUSE) return [];
      names.push(name);
      length = 0;
    }
    length += text.length;
  }
  return names.length >= FEWEST_HEADINGS ? names : [];
}
const CLAUSE = 200;

/** The first one to three sentences of a model's summary, cleaned like any text; null if it has no content. */
export function firstSentences(text: string): string[] | null {
  const blocks = toBlocks(text);
  const { sentencesOf } = readingOf(blocks.map(block => block.text).join(' '));
  const sentences = blocks
    .flatMap(block => sentencesOf(block.text))
    .filter(hasContent)
    .map(ended);
  return sentences.length === 0 ? null : sentences.slice(0, MAX_SENTENCES);
}
