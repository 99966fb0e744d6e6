/** Sentence boundaries, and cuts of sentences that are too long to quote. */

const sentenceSegmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
const graphemeSegmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** `Intl.Segmenter` takes quadratic time, so its input is limited to this length. */
const WINDOW = 4_000;
/** The longest sentence in a summary. A longer one is cut at a clause boundary. */
export const MAX_SENTENCE = 300;
/** A word up to this length, such as a URL, is not cut. */
const MAX_WORD = 2_000;

const words = (list: string): Set<string> => new Set(list.split(' '));

/** Always followed by the rest of the sentence. */
const TITLES = words(
  'dr mr mrs ms mx prof rev hon gen col maj capt cmdr lt sgt sen rep gov pres amb supt mt messrs mme mlle sra srta dra ' +
    'vs cf al viz approx ej ca resp bzw evtl ggf vgl z.b d.h u.a i.e e.g a.k.a p.ej c.-à-d ft est incl excl sr hr fr st mio mrd tsd bd bzgl inkl exkl',
);
/** Followed by the rest of the sentence if that begins with a number. */
const BEFORE_NUMBERS = words(
  'no nos nr num fig figs eq eqs sec sect art para pp p pg vol ch chap app jan feb mar apr jun jul aug sep sept oct nov ' +
    'dec tel ext v ver line lines item ref §',
);
/** May or may not end a sentence; the next word decides. */
const EITHER = words(
  'approx resp incl excl evtl ggf bzw usw misc temp orig transl trans assoc intl natl attn cont hrs hr mins secs tbsp tsp govt mfg prof capt std avg abs abb bsp inc ltd co corp bros llc plc gmbh jr etc a.m p.m am pm u.s u.k u.n e.u u.s.a d.c ph.d m.d b.a m.a b.sc m.sc ave blvd rd ' +
    'dept univ assn jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri sat sun min max ed eds',
);
/** Words that begin sentences and hardly ever follow an abbreviation inside one. */
const STARTERS = words(
  'the a an this that these those it he she they we you i in on at but and or so if when while after before although ' +
    'however there here his her their our my your its as for to from with by both all some many most no not what why how ' +
    'who where then also yet still meanwhile moreover instead please now today yesterday tomorrow only even each every ' +
    'since until because thus therefore finally der die das ein eine er sie es wir ich le la les un une il elle el los dont im ive ill thats pls btw',
);

/** The last word of a piece without opening marks, in lower case, and whether it ends in a full stop. */
function lastWord(piece: string): { word: string; dotted: boolean } {
  const tail = piece.slice(-40);
  const word = /(?<!\S)(\S+)$/.exec(tail)?.[1] ?? '';
  const dotted = word.endsWith('.');
  const bare = word.replace(/^[("'“‘[«¿¡]+/, '').replace(/\.$/, '');
  return { word: bare, dotted };
}

/** Whether a full stop after `word` (in lower case: `lower`) does not end the sentence before `next`. */
function abbreviates(word: string, lower: string, next: string): boolean {
  if (TITLES.has(lower)) return true;
  if (BEFORE_NUMBERS.has(lower) && /^\p{N}/u.test(next)) return true;
  if (STARTERS.has(next.toLowerCase())) return false;
  if (EITHER.has(lower)) return true;
  if (/^(?:\p{L}\.)+\p{L}$/u.test(word) || (/^\p{L}$/u.test(word) && word !== 'I')) return true;
  return /^\d{1,2}$/.test(word) && /^\p{L}/u.test(next);
}

/**
 * Whether a sentence ends before a word in lower case, as in hasty messages. After a full stop, only if the word before it can't be
 * an abbreviation, that is: a known one, a single letter, or a short word that is not followed by a known sentence opener.
 */
function endsBeforeLowerCase(left: string, right: string): boolean {
  if (/(?:\.\.|…)$/.test(left) || !/[.!?]$/.test(left)) return false;
  const { word, dotted } = lastWord(left);
  if (!dotted) return true;
  const lower = word.toLowerCase();
  const numbered = BEFORE_NUMBERS.has(lower) && !/^(?:no|lines?|item)$/.test(lower);
  if (
    numbered ||
    TITLES.has(lower) ||
    EITHER.has(lower) ||
    !/^\p{L}{2,}$/u.test(word.replace(/[,'’)-]/g, ''))
  )
    return false;
  const next = /\p{L}+/u.exec(right)?.[0] ?? '';
  return STARTERS.has(next) || (word.length >= 3 && /[aeiouyäöüáéíóú]/i.test(word));
}

/** Whether the supposed boundary between `left` and `right` is not one; `open` is the length of the sentence up to it. */
function belongsTogether(left: string, right: string, open: number): boolean {
  if (!/^[A-Z0-9]/.test(right)) {
    if (LOWER_CASE.test(right)) return !endsBeforeLowerCase(left, right);
    if (/^[\p{Pe}\p{Pf},;:%]/u.test(right)) return true;
  }
  const { word, dotted } = lastWord(left);
  if (!dotted) return false;
  if (open <= 5 && /^\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})\)?\.$/.test(left)) return true;
  const next = /^[\p{Pi}\p{Ps}"'¿¡]*([\p{L}\p{M}'’]+|\p{N}+)?/u.exec(right)?.[1] ?? '';
  return abbreviates(word, word.toLowerCase(), next);
}

const LOWER_CASE = /^["'“‘«(<@#]{0,2}\p{Ll}/u;
/** Full stops before lower case, which ICU never treats as an end. */
const STOP_BEFORE_LOWER_CASE = /\.\s+(?=["'“‘«(<@#]{0,2}\p{Ll})/gu;

/** Places where a sentence may end, by ICU and by the rule above, in order. */
function* boundaries(text: string): Generator<{ segment: string; index: number }> {
  for (const { segment, index } of sentenceSegmenter.segment(text)) {
    let from = 0;
    for (const match of segment.matchAll(STOP_BEFORE_LOWER_CASE)) {
      const end = match.index + match[0].length;
      yield { segment: segment.slice(from, end), index: index + from };
      from = end;
    }
    yield { segment: segment.slice(from), index: index + from };
  }
}

function segmentWindow(text: string): string[] {
  const sentences: string[] = [];
  let start = 0;
  let left = '';
  let solid = false;
  for (const { segment, index } of boundaries(text)) {
    if (left !== '' && !solid && !belongsTogether(left, segment, index - start)) {
      sentences.push(text.slice(start, index));
      start = index;
    }
    left = segment.trimEnd();
    // In a script with spaces, a mark without a space after it does not end a sentence: it is part of a URL, a name or a number.
    solid = left.length === segment.length && /[.!?…][)"'”’»\]]*$/.test(left);
  }
  const rest = text.slice(start);
  if (rest.trim() !== '') sentences.push(rest);
  return sentences;
}

/** The last place at or before `limit` where a window may end: after a space, otherwise between two characters. */
function windowEnd(text: string, from: number, limit: number): number {
  if (limit >= text.length) return text.length;
  const space = text.lastIndexOf(' ', limit);
  if (space > from + WINDOW / 2) return space + 1;
  return graphemeCut(text, from, limit);
}

/** The last grapheme boundary at or before `limit`; reads at most 64 characters. */
function graphemeCut(text: string, from: number, limit: number): number {
  const start = Math.max(from, limit - 64);
  let cut = start;
  for (const { index } of graphemeSegmenter.segment(text.slice(start, limit + 32))) {
    if (start + index > limit) break;
    cut = start + index;
  }
  if (cut > from) return cut;
  return /^[\udc00-\udfff]/.test(text.charAt(limit)) ? limit - 1 : limit;
}

/**
 * The sentences of one line of text, in order, trimmed; together they contain every character except spaces. Abbreviations, initials,
 * ordinals, decimal numbers, versions and URLs do not end a sentence. Linear in the length of the text: a stretch of 4 000 characters
 * without an end is split.
 */
export function splitSentences(text: string): string[] {
  const sentences: string[] = [];
  for (let from = 0; from < text.length;) {
    const end = windowEnd(text, from, from + WINDOW);
    const found = segmentWindow(text.slice(from, end));
    const last = found.at(-1);
    let next = end;
    // The last sentence may continue after the window, so it is read again with what follows, unless it fills the window.
    if (end < text.length && last !== undefined && found.length > 1 && last.length < WINDOW / 2) {
      next = end - last.length;
      found.pop();
    }
    for (const sentence of found) sentences.push(sentence.trim());
    from = next;
  }
  return sentences;
}

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
