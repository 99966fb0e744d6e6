import { END, passes } from './gate.js';
import type { Block } from './plain-text.js';
import { LONGEST_LINE, purposeOf, type Section } from './sections.js';
import type { readingOf } from './sentences.js';
import { countWords, SPACELESS } from './words.js';

/**
 * Quotable passages: consecutive sentences from the beginning of a section, so that the sentences' references are clear without the rest
 * of the text.
 */

/** A sentence with more words than this is quoted only if no other sentence carries the result. */
const LONG = 60;
/**
 * The maximum number of words in a quotation, unless a single sentence has more. In scripts whose words are found with a
 * dictionary, particles count as words, too.
 */
const MOST_WORDS = 110;
const FINE_WORDS = 1.5;
const LONGEST_SENTENCE = 2_000;
const FEWEST_WORDS = 5;
const CLAUSE_WORDS = 8;
/** A "sentence" with fewer words than this is a number or the name of a clause. */
const FEWEST_QUOTED = 2;

export type Reading = ReturnType<typeof readingOf>;

export const isQuestion = (text: string): boolean => /[?？؟]["”»)」]{0,3}$/u.test(text);
/** A sentence that ends in a colon needs the text after it. */
const leadsOn = (text: string): boolean => /[:：]["'”’»)]*$/u.test(text);
/** Paragraph numbers are meaningless outside their text, and would be taken for ends of sentences. */
const unnumbered = (text: string): string =>
  text.replace(/^(?:\(\d{1,3}\)|\[\d{1,3}\]|\d{1,3}(?:\.\d{1,3})+\.?|\d{1,3}\.)\s+(?=[“„«"(]?\p{L})/u, '');

const FULL_WIDTH = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}]$/u;
/** A line without an end mark, as in lists and chats, gets one. */
export const ended = (line: string): string =>
  END.test(line) || !/[\p{L}\p{N}\p{M}%°"”’»)\]]$/u.test(line)
    ? line
    : `${line}${FULL_WIDTH.test(line) ? '。' : '.'}`;

const wide = (text: string): number => (SPACELESS.test(text) ? FINE_WORDS : 1);
const wordsIn = (sentences: string[]): number =>
  sentences.reduce((sum, sentence) => sum + countWords(sentence) / wide(sentence), 0);
/** The number of sentences in a text, including those inside brackets or quotation marks. */
export const countEnds = (text: string): number =>
  1 +
  (text.match(/(?:\p{L}{4}[.!?]|[!?])["'”’»)]{0,4}\s+(?=["“„«(]?\p{Lu})|[。！？][」』”]*(?=[^」』”])/gu)
    ?.length ?? 0);

export const endsIn = (sentences: string[]): number =>
  sentences.reduce((sum, sentence) => sum + countEnds(sentence), 0);

const isMessage = ({ kind }: Block): boolean => kind === 'message';
const sentencesIn = (block: Block, { sentencesOf }: Reading): string[] =>
  isMessage(block) ? [ended(block.text)] : sentencesOf(unnumbered(block.text));

const quotable = (sentence: string, answer = false): boolean =>
  sentence.length <= LONGEST_SENTENCE &&
  passes(sentence) &&
  !leadsOn(sentence) &&
  (answer || SPACELESS.test(sentence) || (sentence.match(/\p{L}{2,}/gu)?.length ?? 0) >= FEWEST_QUOTED);

/** Whether a block is a paragraph of sentences, and not a label, a line of a table or a notice. */
export function isParagraph({ kind, text, number }: Block): boolean {
  const clause = kind === 'item' && number !== undefined;
  if (!(kind === 'prose' || kind === 'message' || clause) || isNotice(text)) return false;
  const least = kind === 'item' ? CLAUSE_WORDS : FEWEST_WORDS;
  const marked = /[.!?。！？।:：]["'”’»)]*(?:\s|$)|[。！？]|\p{scx=Thai}/u.test(text.replace(/^\S+\s/, ''));
  return (
    countWords(text.slice(0, 400)) >= least && (marked || (kind === 'prose' && text.length > LONGEST_LINE))
  );
}
const isNotice = (text: string): boolean =>
  /^(?:copyright|©|\(c\)|all rights)/i.test(text) ||
  (text === text.toUpperCase() && text !== text.toLowerCase());

/** Whether a paragraph begins a new sentence: not in lower case, and not after a line that breaks off or leads to it. */
function begins(text: string, before: Block | undefined, small: boolean): boolean {
  // Text that continues from the previous page, perhaps after a page number.
  if (!small && /^(?:[^\p{L}\p{N}]{0,3}|\d{1,3}\s)\p{Ll}/u.test(text)) return false;
  if (!/^[\p{L}\p{N}§"'“‘«„(¿¡「『（《【]/u.test(text)) return false;
  return before === undefined || !(leadsOn(before.text) || brokeOff(before));
}
const brokeOff = ({ kind, text }: Block): boolean =>
  kind === 'prose' && text.length > 40 && /[\p{L}\p{N},]$/u.test(text) && !END.test(text);

/**
 * `sentences`: how many may be quoted. `atMost`: how many if they are too short to be statements. `long`: whether the first sentence may be
 * a long one. `answer`: whether it may be just "Yes."
 */
export type Limits = { sentences: number; atMost: number; long: boolean; answer?: boolean };

/** Whether a sentence is more than the name of a clause. */
const isStatement = (sentence: string): boolean => countWords(sentence) > FEWEST_WORDS;

/** Whether a quotation may continue with a sentence. */
function goesOn(
  taken: string[],
  sentence: string,
  { sentences: most, atMost, long, answer }: Limits,
): boolean {
  const begun = taken.some(isStatement);
  const ends = endsIn([...taken, sentence]);
  if (!quotable(sentence, answer) || ends > (begun ? most : atMost)) return false;
  if (wordsIn([sentence]) > LONG) return !begun && long;
  return !begun || wordsIn([...taken, sentence]) <= MOST_WORDS;
}

/** The first sentences of `blocks[from]` and of the paragraphs that directly follow it. */
function runFrom(blocks: Block[], from: number, reading: Reading, limits: Limits): string[] {
  const taken: string[] = [];
  for (const [index, block] of blocks.slice(from).entries()) {
    if (block.kind !== blocks[from]?.kind) break;
    if (index > 0 && !begins(unnumbered(block.text), blocks[from + index - 1], reading.hasty)) break;
    for (const sentence of sentencesIn(block, reading)) {
      if (!goesOn(taken, sentence, limits)) return taken;
      taken.push(sentence);
    }
  }
  return taken;
}

/** The sentences without questions at the end, because the answers to those would not be quoted. */
function answered(sentences: string[]): string[] {
  const last = sentences.findLastIndex(sentence => !isQuestion(sentence));
  return sentences.slice(0, last + 1);
}

const isDecision = ({ kind, text }: Block): boolean =>
  kind === 'item' || (kind === 'prose' && END.test(text) && countWords(text) >= FEWEST_QUOTED);

/** The beginning of a section; empty if its first paragraph can't be quoted. */
export function beginningOf(
  { heading, blocks, purpose }: Section,
  reading: Reading,
  limits: Limits,
): string[] {
  const decides = purpose === 'result';
  const at = blocks.findIndex(block => isParagraph(block) || (decides && isDecision(block)));
  const block = blocks[at];
  // Text after a list or a table may refer to it.
  const listed = blocks
    .slice(0, at)
    .some(({ kind }) => kind === 'row' || (kind === 'item' && block?.kind !== 'item'));
  const before = decides ? undefined : blocks[at - 1];
  // A line that only looks like a title may be the beginning of a sentence that continues below it.
  const small = reading.hasty || (at === 0 && (heading === undefined || heading.level !== undefined));
  if (block === undefined || listed || !begins(unnumbered(block.text), before, small)) return [];
  // A line without an end mark counts as a whole sentence if it is the only line of its section.
  const whole =
    blocks.length === 1 && !leadsOn(block.text) ? [{ ...block, text: ended(block.text) }] : blocks;
  const run = answered(runFrom(whole, at, reading, limits));
  return decides || run.length > 1 || run.some(isStatement) ? run : [];
}

/** A passage that is labelled as the result: "Conclusion: …", "For these reasons, …" */
export function labelledOf(blocks: Block[], reading: Reading, limits: Limits): string[] {
  for (const block of [...blocks].reverse()) {
    if (block.kind !== 'prose') continue;
    const sentences = sentencesIn(block, reading);
    const at = sentences.findLastIndex(sentence => {
      const label = LABEL.exec(sentence)?.[0];
      return label !== undefined && purposeOf(label) === 'result';
    });
    if (at < 0) continue;
    const text = sentences.slice(at).join(' ');
    return answered(runFrom([{ text, kind: 'prose' }], 0, reading, limits));
  }
  return [];
}
const LABEL = /^\p{Lu}[^,:：，.!?]{2,40}(?=[,:：，])|^[\p{scx=Han}]{2,6}(?=[:：])/u;

/**
 * The sentences of a block that state terms. If the block begins with a name such as "Limitation of liability", the sentences after the
 * name. Otherwise, all its sentences if it is the first block of a section with such a name.
 */
function termsIn(block: Block, isFirst: boolean, reading: Reading): string[] {
  if (block.kind !== 'prose' && block.kind !== 'item') return [];
  const [name = '', ...rest] = sentencesIn(block, reading);
  if (rest.length > 0 && countWords(name) <= NAME_WORDS && purposeOf(name) === 'terms') return rest;
  return isFirst ? [name, ...rest] : [];
}
const NAME_WORDS = 7;

/** The clause in which a licence grants rights or a contract limits them, if the whole clause can be quoted. */
export function clauseOf(sections: Section[], reading: Reading, most: number): string[] {
  const clauses = sections.flatMap(({ purpose, blocks }) =>
    blocks.map((block, index) => termsIn(block, purpose === 'terms' && index === 0, reading)),
  );
  const fits = (clause: string[]): boolean =>
    clause.length > 0 &&
    begins(clause[0] ?? '', undefined, false) &&
    clause.every(sentence => quotable(sentence) && wordsIn([sentence]) <= LONG) &&
    endsIn(clause) <= most;
  return clauses.find(fits) ?? [];
}
