import { cutSentence, MAX_SENTENCE, present, type Piece } from './cuts.js';
import { opensSubordinate, shorten } from './clauses.js';
import { cuesOf, genreOf, isChat, substance, type Genre } from './cues.js';
import { gatherLists } from './lists.js';
import { MAX_SENTENCES, MAX_WORDS, pack } from './pack.js';
import { toBlocks, type Block } from './plain-text.js';
import { rank, type Candidate } from './ranking.js';
import { splitSentences, splitUnmarked } from './sentences.js';
import { countWords, SPACELESS, UNMARKED } from './words.js';

/** A longer sentence is a run-on: each piece of it may be quoted, not only its beginning. */
const RUN_ON = 1_000;
/** A sentence of more characters is shortened even if its words are few. */
const MAX_CHARACTERS = 420;
/** Words of a piece on average, so that hardly one has too many. */
const WORDS_OF_PIECE = 45;
const FEWEST_CHARACTERS = 40;
/** Statements beyond this number are not ranked. */
const MAX_CANDIDATES = 20_000;
const MAX_EMOJI = 120;

/** Of fewer words, or with less weight, a candidate is a fragment or a frame. */
const FRAGMENT_WORDS = 4;
const LEAST_WEIGHT = 0.25;
/** The weight of code, greetings and advertisements, which even a short text does not keep. */
const AROUND_A_TEXT = 0.12;
/** A text of so few words is kept whole, if it fits into three sentences. */
const KEPT_WHOLE = 75;
const MOST_KEPT_WHOLE = 40;
/** Words of a summary: a share of the text's, at least and at most so many. */
const SHARE = 0.5;
const FEWEST_WORDS = 65;
const MOST_WORDS = 110;
const MOST_STATEMENTS = 6;
/** Where words are told apart by a dictionary, particles and endings count, too. */
const FINE_WORDS = 1.3;

const KIND_WEIGHT: Record<Block['kind'], number> = {
  prose: 1,
  list: 1,
  item: 0.85,
  quote: 0.6,
  heading: 0.35,
  row: 0.3,
  frame: 0.1,
  code: 0.1,
};

type Quote = Candidate & { piece: Piece; kind: Block['kind'] };

const LEANS_ON_CONTEXT =
  /^(?:however|but|and|so|thus|therefore|moreover|furthermore|also|then|this|these|those|that|it|he|she|they|such|instead|meanwhile|for example|for instance|yes|no|ok|okay|well|lol|thanks|sorry)\b/i;

/** How well a sentence reads outside its text. */
function readability(piece: Piece): number {
  const { text } = piece;
  const letters = text.match(/[\p{L}\p{M}]/gu)?.length ?? 0;
  let weight = letters / text.replace(/\s/g, '').length >= 0.65 ? 1 : 0.4;
  if (letters < 3) weight *= 0.2;
  if (LEANS_ON_CONTEXT.test(text)) weight *= 0.7;
  if (/[?？]["'”’)]*$/.test(text)) weight *= 0.3;
  if (/[:：]$/.test(text)) weight *= 0.4;
  if (/[!！]$/.test(text)) weight *= 0.45;
  if (piece.continued) weight *= 0.6;
  else if (piece.continues) weight *= 0.5;
  if (text.length > 12 && text === text.toUpperCase() && text !== text.toLowerCase()) weight *= 0.6;
  if (/(?:https?:\/\/|www\.)\S+/.test(text)) weight *= 0.7;
  return weight * substance(text);
}

/** Of the copies of a sentence (quoted replies, repeated footers), keeps the first, with the greatest weight of all. */
function dedupe(quotes: Quote[]): Quote[] {
  const seen = new Map<string, Quote>();
  for (const quote of quotes) {
    const key = quote.text.toLowerCase();
    const first = seen.get(key);
    if (first) first.weight = Math.max(first.weight, quote.weight);
    else seen.set(key, quote);
  }
  return [...seen.values()];
}

/** Of the stamp of a line in a log, the date and the seconds. */
const STAMP = /^\[?\d{4}-\d\d-\d\d[T ](\d\d:\d\d)(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?\s+/;

/** Numbers of paragraphs, "(2)" and "11.3", say nothing outside their text, and are taken for ends of sentences. */
const unnumbered = (sentence: string): string =>
  sentence
    .replace(STAMP, '$1 ')
    .replace(/^(?:\(\d{1,3}\)|\d{1,3}(?:\.\d{1,3})+\.?|§\s?\d{1,4})\s+(?=\p{L})/u, '');

/** The sentences of a block. A list is one statement. */
function sentencesOf({ text, kind }: Block): string[] {
  if (kind === 'list') return [text];
  const sentences = splitSentences(text).map(unnumbered);
  return sentences.flatMap(sentence => (UNMARKED.test(sentence) ? splitUnmarked(sentence) : [sentence]));
}

/** A sentence as it may be quoted: whole, without subordinate clauses, or, if its main clause can't be told, in pieces. */
function piecesOf(sentence: string): Piece[] {
  const whole = sentence.length <= MAX_CHARACTERS && countWords(sentence) <= MAX_WORDS;
  if (whole) return [{ text: sentence, continued: false, continues: false }];
  const short = sentence.length <= RUN_ON * 4 ? shorten(sentence, MAX_WORDS) : undefined;
  if (short !== undefined && short.length <= MAX_CHARACTERS)
    return [{ text: short, continued: false, continues: false }];
  return cutPieces(sentence);
}

/** A sentence in pieces of few enough words, without those that lie before its main clause. */
function cutPieces(sentence: string): Piece[] {
  const perWord = sentence.length / Math.max(1, countWords(sentence));
  const limit = Math.min(MAX_SENTENCE, Math.max(FEWEST_CHARACTERS, Math.floor(perWord * WORDS_OF_PIECE)));
  const isRunOn = sentence.length > RUN_ON;
  if (!opensSubordinate(sentence))
    return cutSentence(sentence, isRunOn ? Number.POSITIVE_INFINITY : 1, limit);
  const pieces = cutSentence(sentence, Number.POSITIVE_INFINITY, limit);
  return pieces.slice(isRunOn ? Math.min(1, pieces.length - 1) : -1);
}

/** Every sentence that could be quoted, in text order. Text without letters or digits is left to `pictures`. */
function candidatesOf(blocks: Block[]): Quote[] {
  const quotes: Quote[] = [];
  for (const [block, entry] of blocks.entries()) {
    for (const [index, sentence] of sentencesOf(entry).entries()) {
      if (!/[\p{L}\p{N}]/u.test(sentence)) continue;
      for (const piece of piecesOf(sentence)) {
        if (!/[\p{L}\p{N}]/u.test(piece.text)) continue;
        const weight = KIND_WEIGHT[entry.kind] * readability(piece);
        const { text } = piece;
        quotes.push({
          text,
          block,
          firstOfBlock: index === 0,
          weight,
          piece,
          kind: entry.kind,
          cues: cuesOf(text),
        });
      }
      if (quotes.length >= MAX_CANDIDATES) return dedupe(quotes);
    }
  }
  return dedupe(quotes);
}

/** Without headings, questions, fragments and what surrounds a text, if anything else is said. */
function worthwhile(quotes: Quote[]): Quote[] {
  const fit = quotes.filter(
    ({ kind, weight, text }) =>
      kind === 'list' || (kind !== 'heading' && weight >= LEAST_WEIGHT && countWords(text) >= FRAGMENT_WORDS),
  );
  return fit.length >= 2 ? fit : quotes;
}

/** A text of only emoji is its own summary, cut if it is long; other signs are no content. */
function pictures(blocks: Block[]): string[] | null {
  const text = blocks.map(block => block.text).join(' ');
  if (!/[\p{Extended_Pictographic}\p{RI}]/u.test(text)) return null;
  const [piece] = cutSentence(text, 1, MAX_EMOJI);
  return piece ? [piece.continues ? `${piece.text}…` : piece.text] : null;
}

const countByRules = (text: string): number => splitSentences(text).length;

/** The statements with these indices, in text order, as sentences; undefined if they don't fit into three. */
function packed(quotes: Quote[], indices: number[]): string[] | undefined {
  const statements = [...indices]
    .sort((left, right) => left - right)
    .flatMap(index => (quotes[index] ? [present(quotes[index].piece)] : []));
  return pack(statements, countByRules);
}

/** Everything that a short text says; undefined if the text is not short. */
function wholeOf(quotes: Quote[]): string[] | undefined {
  const content = quotes.flatMap(({ kind, weight }, index) =>
    kind === 'frame' || weight < AROUND_A_TEXT ? [] : [index],
  );
  const total = content.reduce((sum, index) => sum + countWords(quotes[index]?.text ?? ''), 0);
  return content.length > 0 && total <= KEPT_WHOLE ? packed(quotes, content) : undefined;
}

/** Indices of the best statements that fit into a summary of the length that the text earns. */
function chosen(quotes: Quote[], genre: Genre, topic: string): number[] {
  const words = quotes.map(({ text }) => countWords(text));
  const total = words.reduce((sum, count) => sum + count, 0);
  const wide = SPACELESS.test(topic + (quotes[0]?.text ?? '')) ? FINE_WORDS : 1;
  const budget = Math.min(wide * MOST_WORDS, Math.max(wide * FEWEST_WORDS, total * SHARE));
  return rank(quotes, { genre, topic }, picked => {
    if (picked.length > MOST_STATEMENTS) return false;
    const length = picked.reduce((sum, index) => sum + (words[index] ?? 0), 0);
    return length <= budget && packed(quotes, picked) !== undefined;
  });
}

/** What begins with a greeting or the head of a mail is a message, whatever it is about. */
function genreFor(text: string, blocks: Block[]): Genre {
  const genre = genreOf(text);
  if (genre !== 'plain') return genre;
  return isChat(text) || blocks.slice(0, 3).some(({ kind }) => kind === 'frame') ? 'message' : genre;
}

/**
 * A summary of `text` in one to three sentences of under 60 words, in text order; null if the text has no content (only white space,
 * markup or punctuation). Statements are the text's own: whole sentences, sentences without some of their subordinate clauses, or
 * lists; several short ones may share a sentence. Deterministic and linear in the length of the text.
 */
export function extractSummary(text: string): string[] | null {
  const blocks = toBlocks(text);
  const quotes = candidatesOf(gatherLists(blocks));
  if (quotes.length === 0) return pictures(blocks);
  const whole = quotes.length <= MOST_KEPT_WHOLE ? wholeOf(quotes) : undefined;
  if (whole) return whole;
  const topic = blocks.find(({ kind }) => kind === 'heading')?.text ?? '';
  const fit = worthwhile(quotes);
  return packed(fit, chosen(fit, genreFor(text, blocks), topic)) ?? null;
}

/** The first one to three sentences of a model's summary, cleaned like any text; null if it has no content. */
export function firstSentences(text: string): string[] | null {
  const sentences: string[] = [];
  for (const block of toBlocks(text)) {
    for (const sentence of splitSentences(block.text)) {
      const [piece] = cutSentence(sentence, 1, 2 * MAX_SENTENCE);
      if (piece && /[\p{L}\p{N}]/u.test(piece.text)) sentences.push(present(piece));
    }
  }
  return sentences.length === 0 ? null : sentences.slice(0, MAX_SENTENCES);
}
