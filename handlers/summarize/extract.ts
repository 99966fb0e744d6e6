import { describeData, describeRest, LONGEST_SENTENCE } from './describe.js';
import { balanced, countByMarks, END, joinSentences, MAX_SENTENCES, passes } from './gate.js';
import { isBareSpeech, isQuestion, leansBack, leansOn, seemsToAnswer } from './leaning.js';
import { toBlocks, type Block } from './plain-text.js';
import { rank, type Candidate } from './ranking.js';
import { labelOf, purposeOf, sectionsOf, type Purpose, type Section } from './sections.js';
import { readingOf } from './sentences.js';
import {
  carries,
  demonstrates,
  isIndependent,
  isLabelled,
  isLed,
  pointsElsewhere,
  stemsOf,
  supposes,
  turnsBack,
} from './standing.js';
import { countWords, SPACELESS } from './words.js';

/** A longer sentence is quoted only if no other carries the result. */
const LONG = 60;
/** Words of a summary, unless a single sentence has more; where a dictionary tells words apart, particles count, too. */
const MOST_WORDS = 120;
const FINE_WORDS = 1.5;
/** A text of so few words and at most three sentences is its own summary. */
const SHORT_TEXT = 120;
/** Statements beyond this number are not ranked. */
const MAX_UNITS = 20_000;
const FRAGMENT_WORDS = 4;

/** How a summary was made: of sentences of the text; the whole text; or a sentence of what the text is. */
export type Extract = { sentences: string[]; method: 'extractive' | 'whole' | 'described' };

const KIND_WEIGHT: Record<Block['kind'], number> = {
  prose: 1,
  message: 1,
  item: 0.7,
  quote: 0,
  heading: 0.3,
  row: 0.2,
  frame: 0,
  code: 0,
};
const PURPOSE_WEIGHT: Record<Purpose, number> = {
  result: 2.6,
  overview: 1.4,
  terms: 1.4,
  body: 1,
  back: 0.5,
};

/** A sentence of the text, or what somebody says in a chat. */
type Unit = Candidate & {
  words: number;
  kind: Block['kind'];
  purpose: Purpose;
  count: number;
  place: number;
};

/** Numbers of paragraphs say nothing outside their text, and are taken for ends of sentences. */
const unnumbered = (sentence: string, language: string): string =>
  sentence
    .replace(/^(?:\(\d{1,3}\)|\[\d{1,3}\]|\d{1,3}(?:\.\d{1,3})+\.?)\s+(?=\p{L})/u, '')
    .replace(language === 'de' ? /^$/ : /^\d{1,3}\.\s+(?=\p{L})/u, '');

const FULL_WIDTH = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}]$/u;
/** A line without an end mark, as in lists and chats, gets one. */
const ended = (line: string): string =>
  END.test(line) || !/[\p{L}\p{N}\p{M}%°"”’»)\]]$/u.test(line)
    ? line
    : `${line}${FULL_WIDTH.test(line) ? '。' : '.'}`;

/** The sentences in what brackets or quotation marks hold together. A short word before a full stop may be an abbreviation. */
const countEnds = (text: string): number =>
  1 +
  (text.match(/(?:\p{L}{4}[.!?]|[!?])["'”’»)]{0,4}\s+(?=["“„«(]?\p{Lu})|[。！？][」』”]*(?=[^」』”])/gu)
    ?.length ?? 0);

/** How well a sentence reads outside its text. */
function readability(text: string, words: number): number {
  const letters = text.match(/[\p{L}\p{M}]/gu)?.length ?? 0;
  let weight = letters / text.replace(/\s/g, '').length >= 0.65 ? 1 : 0.4;
  if (letters < 3) weight *= 0.2;
  if (words < FRAGMENT_WORDS) weight *= 0.3;
  if (/[!！]$/.test(text) || /^(?:copyright|©)/i.test(text)) weight *= 0.5;
  if (/…["'”’»)]*$/u.test(text)) weight *= 0.5;
  if (text.length > 12 && text === text.toUpperCase() && text !== text.toLowerCase()) weight *= 0.6;
  if (/(?:https?:\/\/|www\.)\S+/.test(text)) weight *= 0.6;
  return weight;
}

const NAMED_CLAUSE =
  /^(?:art(?:icle|ikel|ículo|icolo|igo)?|section|clause|cláusula|clausola|§|статья|пункт|第)[.\s]?\s?\d/iu;
/** A heading at the start of a numbered clause: "Limitation of Liability." */
const isRunIn = (sentence: string, rest: string[], kind: Block['kind']): boolean =>
  rest.length > 0 &&
  (kind === 'item' || NAMED_CLAUSE.test(sentence)) &&
  countWords(sentence) <= 7 &&
  /^[\p{Lu}\p{P}\d\s]/u.test(sentence) &&
  sentence.endsWith('.') &&
  countWords(rest[0] ?? '') > 8;

type Piece = {
  text: string;
  kind: Block['kind'];
  purpose: Purpose;
  first: boolean;
  led: boolean;
  section: number;
  question: number | undefined;
  under: string;
  supposed: boolean;
};
type Reading = ReturnType<typeof readingOf>;
/** Where the reader is. `led`: what leads to the lines ends in a colon, without which they may mean the opposite. */
type Place = { led: boolean; asked: { section: number; index: number } | undefined };

/** The sentences of a block, without the name of a clause, and that name. */
function linesOf(
  { kind, text }: Block,
  { language, sentencesOf }: Reading,
): { found: string[]; name: string } {
  if (kind === 'message') return { found: [text], name: '' };
  const found = sentencesOf(text).map(sentence => unnumbered(sentence, language));
  const [name, ...rest] = found;
  return name !== undefined && isRunIn(name, rest, kind) ? { found: rest, name } : { found, name: '' };
}

const CLAUSE_WORDS = 25;
/** Whether a block is no entry of a list, which says little or something else without its list, and no part of a quotation. */
function isWhole({ kind, text }: Block, { purpose }: Section, found: string[], name: string): boolean {
  if (kind === 'message') return true;
  const clause = name !== '' || (found.length > 1 && countWords(text) >= CLAUSE_WORDS);
  return balanced(text) && (kind !== 'item' || purpose !== 'body' || clause);
}

/** The question that a block answers, or becomes: the place of its piece. */
function askedOf(
  pieces: Piece[],
  place: Place,
  { kind, text }: Block,
  section: number,
  only: boolean,
): number | undefined {
  const asks = kind === 'heading' || (only && isQuestion(text) && kind !== 'message');
  if (asks) place.asked = { section, index: pieces.length };
  return place.asked?.section === section && place.asked.index < pieces.length
    ? place.asked.index
    : undefined;
}

/** Adds the sentences of a block. A question that is a block asks what its section answers. */
function addPieces(pieces: Piece[], place: Place, block: Block, section: Section, reading: Reading): void {
  const { kind, text } = block;
  const { found, name } = linesOf(block, reading);
  const own = name === '' ? section.purpose : purposeOf(name);
  const under = name === '' ? section.under : own === 'body' ? name : '';
  let supposed = !isWhole(block, section, found, name);
  if (kind !== 'item') place.led = false;
  const asked = askedOf(pieces, place, block, section.section, found.length === 1);
  const { led } = place;
  for (const [index, sentence] of found.entries()) {
    const purpose = labelOf(sentence) ?? own;
    supposed ||= supposes(sentence);
    pieces.push({
      text: sentence,
      kind,
      purpose,
      first: index === 0,
      led,
      section: section.section,
      question: asked,
      under,
      supposed,
    });
  }
  if (leansOn(text)) place.led = true;
}

/** The lines of a text as sentences, without headings, code and tables. */
function piecesOf(blocks: Block[], reading: Reading): Piece[] {
  const sections = sectionsOf(blocks);
  const pieces: Piece[] = [];
  const place: Place = { led: false, asked: undefined };
  for (const [index, block] of blocks.entries()) {
    const section = sections[index] as Section;
    if (['frame', 'code', 'row'].includes(block.kind)) continue;
    if ((block.kind === 'heading' || section.heading) && !isQuestion(block.text)) place.led = false;
    else addPieces(pieces, place, block, section, reading);
    if (pieces.length >= MAX_UNITS) break;
  }
  return pieces;
}

/** Whether a line without an end mark may stand as a sentence. */
const standsAlone = ({ text, kind }: Piece): boolean => END.test(text) || kind === 'message';

/** Whether nothing that is left out gives a sentence another meaning: an example, a heading, another place, a name before it. */
function isUnbound({ text, kind, supposed, under, purpose, question }: Piece): boolean {
  if (kind === 'message') return true;
  if (supposed || isBareSpeech(text) || pointsElsewhere(text)) return false;
  if (isLabelled(text) && labelOf(text) === undefined) return false;
  return (
    under === '' ||
    question !== undefined ||
    (purpose !== 'body' && purpose !== 'back') ||
    carries(text, under)
  );
}

/** No sentence: what needs it can't be quoted. */
const MISSING = -1;

/** What a text is known to be about: its title and its first sentence. */
type Known = { language: string; about: Set<string> };

/** The sentence before, if this one is not understood without it. */
function neededBefore(pieces: Piece[], index: number, { language, about }: Known): number[] {
  const piece = pieces[index] as Piece;
  const before = pieces[index - 1];
  if (before === undefined || piece.kind === 'message') return [];
  if (isLed(before.text)) return [MISSING];
  if (demonstrates(piece.text, about)) return [piece.first ? MISSING : index - 1];
  if (leansBack(piece.text)) return [before.section === piece.section ? index - 1 : MISSING];
  return piece.first || isIndependent(piece.text, language, about) ? [] : [index - 1];
}

/**
 * Which others a sentence needs: what it points back to; what turns it; the question that it answers; a question needs its answer.
 */
function needsOf(pieces: Piece[], index: number, known: Known): number[] {
  const piece = pieces[index] as Piece;
  const before = pieces[index - 1];
  const after = pieces[index + 1];
  const needs: number[] = [];
  if (isQuestion(piece.text)) needs.push(after === undefined || isQuestion(after.text) ? MISSING : index + 1);
  else if (after?.section === piece.section && piece.kind !== 'message' && turnsBack(after.text))
    needs.push(index + 1);
  if (piece.question !== undefined) needs.push(piece.question);
  if (before !== undefined && isQuestion(before.text)) needs.push(index - 1);
  else needs.push(...neededBefore(pieces, index, known));
  return needs;
}

/** Whether a sentence begins where its line does: not in lower case, and not after a line that broke off. */
function begins(pieces: Piece[], index: number, hasty: boolean): boolean {
  const piece = pieces[index];
  const before = pieces[index - 1];
  if (piece === undefined || piece.kind === 'message') return true;
  if (!hasty && index > 0 && /^["'“‘«„(]{0,2}\p{Ll}/u.test(piece.text)) return false;
  // The number of a page, and what continues after it.
  if (piece.first && /^\d{1,3}\s\p{Ll}/u.test(piece.text)) return false;
  return !(piece.kind === 'prose' && piece.first && before?.section === piece.section && brokeOff(before));
}

/** Whether a line ends within a sentence. */
const brokeOff = ({ kind, text, first }: Piece): boolean =>
  kind === 'prose' && /[\p{L}\p{N}]$/u.test(text) && (text.length > 40 || !first) && !leansOn(text);

/** The sentences that may be quoted, each with those that it needs; what needs a sentence that can't be quoted can't be, either. */
function unitsOf(pieces: Piece[], hasty: boolean, known: Known): Unit[] {
  const all = pieces.map((piece, index): Unit => {
    const text = standsAlone(piece) ? ended(piece.text) : piece.text;
    const words = text.length > LONGEST_SENTENCE ? Number.POSITIVE_INFINITY : countWords(text);
    const fit =
      !piece.led &&
      isUnbound(piece) &&
      begins(pieces, index, hasty) &&
      !leansOn(text) &&
      Number.isFinite(words) &&
      passes(text);
    const weight = fit
      ? KIND_WEIGHT[piece.kind] * PURPOSE_WEIGHT[piece.purpose] * readability(text, words)
      : 0;
    const { kind, purpose, first } = piece;
    return {
      text,
      words,
      kind,
      purpose,
      first,
      weight: END.test(piece.text) ? weight : weight * 0.8,
      needs: needsOf(pieces, index, known),
      count: fit ? countEnds(text) : 1,
      place: index,
    };
  });
  return quotable(all);
}

/** Without what is unfit, without second copies, and without what needs either. */
function quotable(all: Unit[]): Unit[] {
  const seen = new Set<string>();
  const fit = all.map(({ text, weight }) => {
    const key = text.toLowerCase();
    const kept = weight > 0 && !seen.has(key);
    seen.add(key);
    return kept;
  });
  for (let changed = true; changed;) {
    changed = false;
    for (const [index, { needs }] of all.entries())
      if (fit[index] === true && !needs.every(needed => fit[needed])) {
        fit[index] = false;
        changed = true;
      }
  }
  let next = 0;
  const places = fit.map(kept => (kept ? next++ : -1));
  return all.flatMap((unit, index) =>
    fit[index] === true ? [{ ...unit, needs: unit.needs.map(needed => places[needed] ?? 0) }] : [],
  );
}

const sum = (units: Unit[], read: (unit: Unit) => number): number =>
  units.reduce((total, unit) => total + read(unit), 0);

/** The sentences that stand for the text; empty if none can. */
function choose(units: Unit[], topic: string): string[] {
  const wide = SPACELESS.test(units[0]?.text ?? '') ? FINE_WORDS : 1;
  const short = units.filter(({ words }) => words <= wide * LONG);
  const carried =
    short.length > 0 &&
    (short.some(({ purpose }) => purpose === 'result') || !units.some(({ purpose }) => purpose === 'result'));
  const total = sum(units, ({ count }) => count);
  const most = total < 4 ? MAX_SENTENCES : Math.min(MAX_SENTENCES, Math.floor(total / 2));
  const fits = (picked: number[]): boolean => {
    const chosen = picked.flatMap(index => units[index] ?? []);
    const long = chosen.filter(({ words }) => words > wide * LONG);
    if (long.length > (carried ? 0 : 1) || sum(chosen, ({ count }) => count) > most) return false;
    if (seemsToAnswer(chosen.filter(({ kind }) => kind === 'message'))) return false;
    return sum(chosen, ({ words }) => words) <= wide * MOST_WORDS + sum(long, ({ words }) => words);
  };
  return rank(units, topic, fits).map(index => units[index]?.text ?? '');
}

/** A text of emoji alone is content, too; other signs are none. */
const hasContent = (text: string): boolean => /[\p{L}\p{N}\p{Extended_Pictographic}\p{RI}]/u.test(text);

/** The text itself, if it is short; undefined otherwise. */
function wholeOf(blocks: Block[], units: Unit[]): Extract | undefined {
  const text = joinSentences(blocks.map(block => block.text));
  const count = Math.max(countByMarks(text), blocks.length);
  if (count > MAX_SENTENCES || text.length > LONGEST_SENTENCE || countWords(text) > SHORT_TEXT)
    return undefined;
  const all = units.map(unit => unit.text);
  return {
    sentences: [text],
    method: all.length > 0 && joinSentences(all) !== text && blocks.length > 1 ? 'extractive' : 'whole',
  };
}

/**
 * A summary of `text`: one to three of its own sentences, whole and in text order, at most half of them; the text itself if it is that
 * short; or, of data, code and lists, one sentence of what it is. Null if the text has no content (only white space, markup or
 * punctuation). Deterministic and linear in the length of the text.
 */
export function extractSummary(text: string): Extract | null {
  const blocks = toBlocks(text);
  if (!hasContent(blocks.map(block => block.text).join(' '))) return null;
  const data = describeData(text, blocks);
  if (data !== undefined) return { sentences: [data], method: 'described' };
  const reading = readingOf(blocks.map(block => block.text).join(' '));
  const topic = blocks.find(({ kind }) => kind === 'heading')?.text ?? '';
  const pieces = piecesOf(blocks, reading);
  const known = { language: reading.language, about: new Set(stemsOf(`${topic} ${pieces[0]?.text ?? ''}`)) };
  const units = unitsOf(pieces, reading.hasty, known);
  const whole = wholeOf(blocks, units);
  if (whole?.method === 'whole') return whole;
  const sentences = choose(units, topic);
  const scraps = sentences.every(sentence => countWords(sentence) < FRAGMENT_WORDS);
  if (!(scraps && pieces.some(piece => countWords(piece.text) >= 2 * FRAGMENT_WORDS)) && sentences.length > 0)
    return { sentences, method: 'extractive' };
  return whole
    ? { ...whole, method: 'whole' }
    : {
        sentences: [describeRest(blocks)],
        method: 'described',
      };
}

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
