import { toBlocks, type Block } from './plain-text.js';
import { rank, type Candidate } from './ranking.js';
import { cutSentence, MAX_SENTENCE, present, splitSentences, type Piece } from './sentences.js';

/** The contract promises at most this many sentences. */
export const MAX_SENTENCES = 3;
/** A longer sentence is a run-on: each piece of it may be quoted, not only its beginning. */
const RUN_ON = 1_000;
/** Sentences beyond this number are not ranked. */
const MAX_CANDIDATES = 20_000;
const MAX_EMOJI = 120;

const KIND_WEIGHT: Record<Block['kind'], number> = {
  prose: 1,
  item: 0.85,
  quote: 0.6,
  heading: 0.35,
  row: 0.3,
  frame: 0.1,
  code: 0.1,
};

type Quote = Candidate & { piece: Piece };

const LEANS_ON_CONTEXT =
  /^(?:however|but|and|so|thus|therefore|moreover|furthermore|also|then|this|these|those|that|it|he|she|they|such|instead|meanwhile|for example|for instance|yes|no|ok|okay|well|lol|thanks|sorry)\b/i;

/** How well a sentence reads outside its text. */
function readability(piece: Piece): number {
  const { text } = piece;
  const letters = text.match(/[\p{L}\p{M}]/gu)?.length ?? 0;
  let weight = letters / text.replace(/\s/g, '').length >= 0.65 ? 1 : 0.4;
  if (letters < 3) weight *= 0.2;
  if (LEANS_ON_CONTEXT.test(text)) weight *= 0.7;
  if (/[?？]["'”’)]*$/.test(text)) weight *= 0.5;
  if (/[:：]$/.test(text)) weight *= 0.4;
  if (piece.continued) weight *= 0.6;
  else if (piece.continues) weight *= 0.85;
  if (text.length > 12 && text === text.toUpperCase() && text !== text.toLowerCase()) weight *= 0.6;
  if (/(?:https?:\/\/|www\.)\S+/.test(text)) weight *= 0.7;
  return weight;
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

/** Every sentence that could be quoted, in text order. Text without letters or digits is left to `pictures`. */
function candidatesOf(blocks: Block[]): Quote[] {
  const quotes: Quote[] = [];
  for (const [block, { text, kind }] of blocks.entries()) {
    for (const [index, sentence] of splitSentences(text).entries()) {
      if (!/[\p{L}\p{N}]/u.test(sentence)) continue;
      const most = sentence.length > RUN_ON ? Number.POSITIVE_INFINITY : 1;
      for (const piece of cutSentence(sentence, most)) {
        if (!/[\p{L}\p{N}]/u.test(piece.text)) continue;
        const weight = KIND_WEIGHT[kind] * readability(piece);
        quotes.push({ text: piece.text, block, firstOfBlock: index === 0, weight, piece });
      }
      if (quotes.length >= MAX_CANDIDATES) return dedupe(quotes);
    }
  }
  return dedupe(quotes);
}

/** A longer text earns a longer summary. */
const wantedCount = (candidates: number): number =>
  candidates <= 2 ? 1 : candidates <= 6 ? 2 : MAX_SENTENCES;

/** A text of only emoji is its own summary, cut if it is long; other signs are no content. */
function pictures(blocks: Block[]): string[] | null {
  const text = blocks.map(block => block.text).join(' ');
  if (!/[\p{Extended_Pictographic}\p{RI}]/u.test(text)) return null;
  const [piece] = cutSentence(text, 1, MAX_EMOJI);
  return piece ? [piece.continues ? `${piece.text}…` : piece.text] : null;
}

/** Joins the sentences, splits them again, and keeps three, so that a reader who splits the summary finds no more. */
function atMostThree(sentences: string[]): string[] {
  const joined = sentences.join(' ');
  const again = splitSentences(joined);
  return again.length <= MAX_SENTENCES ? sentences : again.slice(0, MAX_SENTENCES);
}

/**
 * The one to three most representative sentences of `text`, in text order; null if the text has no content (only white space,
 * markup or punctuation). Each is a sentence of the text, or a part of one, cut at a clause boundary and marked with an ellipsis. A
 * sentence without an end mark gets a full stop. Deterministic and linear in the length of the text.
 */
export function extractSummary(text: string): string[] | null {
  const blocks = toBlocks(text);
  const quotes = candidatesOf(blocks);
  if (quotes.length === 0) return pictures(blocks);
  const topic = blocks.find(({ kind }) => kind === 'heading')?.text ?? '';
  const picked = rank(quotes, wantedCount(quotes.length), topic);
  const sentences = picked.flatMap(index => {
    const quote = quotes[index];
    return quote ? [present(quote.piece)] : [];
  });
  return atMostThree(sentences);
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
  return sentences.length === 0 ? null : atMostThree(sentences.slice(0, MAX_SENTENCES));
}
