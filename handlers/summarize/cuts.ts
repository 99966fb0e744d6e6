import { graphemeCut, lastWord } from './sentences.js';

/** Cuts sentences whose main clause can't be told, and gives every quote an end. */

/** The longest piece of a sentence in a summary, in characters. */
export const MAX_SENTENCE = 300;
/** A word up to this length, such as a URL, is not cut. */
const MAX_WORD = 2_000;

const CLAUSE_ENDS: readonly RegExp[] = [
  /[;:—–](?=\s)|[；：](?=.)/gu,
  /,(?=\s)|[，、](?=.)|[)\]”»](?=\s)|\s(?=[(–—])/gu,
  /\s(?=(?:and|but|or|so|because|which|that|when|while|where|who|then|if|und|oder|aber|weil|et|mais|ou|que|qui|y|pero|o)\s)/giu,
];

/** The end of the last match of `pattern` in `text` at or after `least`, or -1. */
function lastBoundary(text: string, pattern: RegExp, least: number): number {
  let found = -1;
  for (const match of text.matchAll(pattern)) if (match.index >= least) found = match.index + match[0].length;
  return found;
}

/** A space that separates words: not inside "Dr. Smith", "10 000" or "5 km". */
function wordBoundary(text: string, least: number): number {
  for (let at = text.lastIndexOf(' '); at >= least; at = text.lastIndexOf(' ', at - 1)) {
    const { word, dotted } = lastWord(text.slice(Math.max(0, at - 40), at));
    const abbreviated = dotted && (word.includes('.') || word.length <= 4);
    if (!abbreviated && !/\d[%$€£]?$/.test(word)) return at;
    if (at === 0) break;
  }
  return -1;
}

/** Where to cut a text that is longer than `limit`: after a clause, otherwise after a word, otherwise after a character. */
function cutAt(text: string, limit: number): number {
  const head = text.slice(0, limit + 1);
  for (const pattern of CLAUSE_ENDS) {
    const at = lastBoundary(head, pattern, Math.floor(limit / 3));
    if (at > 0 && at <= limit) return at;
  }
  const space = wordBoundary(head, Math.floor(limit / 6));
  if (space > 0) return space;
  return uncuttable(text, limit);
}

/** For a beginning without a usable space: a URL, path or number is kept whole if it is shorter than 2 000 characters. */
function uncuttable(text: string, limit: number): number {
  const start = text.lastIndexOf(' ', limit) + 1;
  if (start > 1) return start;
  const end = text.indexOf(' ');
  const word = end < 0 ? text.slice(0, MAX_WORD + 1) : text.slice(0, Math.min(end, MAX_WORD + 1));
  const solid = /^\W{0,3}(?:[a-z][a-z0-9+.-]{1,15}:\/\/|www\.|[\d.,-]+$)/i.test(word);
  return solid && word.length <= MAX_WORD ? word.length : graphemeCut(text, 0, limit);
}

/** A part of a sentence, and whether the sentence begins before it or continues after it. */
export type Piece = { text: string; continued: boolean; continues: boolean };

/** Cuts a sentence into pieces of at most `limit` characters at clause boundaries; `most` limits their number. */
export function cutSentence(sentence: string, most: number, limit = MAX_SENTENCE): Piece[] {
  const pieces: Piece[] = [];
  let rest = sentence;
  while (rest !== '' && pieces.length < most) {
    const cut = rest.length <= limit ? rest.length : cutAt(rest, limit);
    const text = rest.slice(0, cut).trim();
    rest = rest.slice(cut).trim();
    if (text !== '') pieces.push({ text, continued: pieces.length > 0, continues: rest !== '' });
  }
  return pieces;
}

/** A piece as it appears in a summary: an ellipsis where the sentence was cut, a full stop where the text has no mark. */
export function present(piece: Piece): string {
  const trimmed = piece.text.replace(/(?<![\s,;:，、；：–—-])[\s,;:，、；：–—-]+$/u, '');
  const text = trimmed === '' ? piece.text : trimmed;
  const head = piece.continued ? '… ' : '';
  if (piece.continues) return `${head}${text.replace(/(?<![.\s])[.…]$/u, '')}…`;
  const last = /(?<!\S)\S+$/.exec(text.slice(-200))?.[0] ?? '';
  const plainEnd = /[\p{L}\p{N}\p{M}%°"'”’»)\]]$/u.test(last) && !/[.!?。！？…]["'”’»)\]]*$/u.test(last);
  if (!plainEnd || /[/@\\=<>{}#_]|[\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}]$/u.test(last)) return head + text;
  return `${head}${text}${/[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}]$/u.test(text) ? '。' : '.'}`;
}
