import { UNMARKED } from './words.js';

/** Sentence boundaries. */

const sentenceSegmenter = new Intl.Segmenter('en', { granularity: 'sentence' });
const graphemeSegmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** `Intl.Segmenter` takes quadratic time, so its input is limited to this length. */
const WINDOW = 4_000;
const words = (list: string): Set<string> => new Set(list.split(' '));

/** Always followed by the rest of the sentence. */
const TITLES = words(
  'dr mr mrs ms mx prof rev hon gen col maj capt cmdr lt sgt sen rep gov pres amb supt mt messrs mme mlle sra srta dra ' +
    'vs cf al viz approx ej ca resp bzw evtl ggf vgl z.b d.h u.a i.e e.g a.k.a p.ej c.-à-d ft est incl excl sr hr fr st mio mrd tsd bd bzgl inkl exkl ул пр пл обл им тел д кв стр т.е т.к т.н гр ок ст п пп см ср напр',
);
/** Followed by the rest of the sentence if that begins with a number. */
const BEFORE_NUMBERS = words(
  'no nos nr num fig figs eq eqs sec sect art para pp p pg vol ch chap app jan feb mar apr jun jul aug sep sept oct nov ' +
    'dec tel ext v ver line lines item ref §',
);
/** May or may not end a sentence; the next word decides. */
const EITHER = words(
  'approx resp incl excl evtl ggf bzw usw misc temp orig transl trans assoc intl natl attn cont hrs hr mins secs tbsp tsp govt mfg prof capt std avg abs abb bsp inc ltd co corp bros llc plc gmbh jr etc a.m p.m am pm u.s u.k u.n e.u u.s.a d.c ph.d m.d b.a m.a b.sc m.sc ave blvd rd руб тыс млн млрд г гг т.д т.п др коп ' +
    'dept univ assn jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri sat sun min max ed eds',
);
/** Words that begin sentences and hardly ever follow an abbreviation inside one. */
const STARTERS = words(
  'the a an this that these those it he she they we you i in on at but and or so if when while after before although ' +
    'however there here his her their our my your its as for to from with by both all some many most no not what why how ' +
    'who where then also yet still meanwhile moreover instead please now today yesterday tomorrow only even each every ' +
    'since until because thus therefore finally der die das ein eine er sie es wir ich le la les un une il elle el los dont im ive ill thats pls btw',
);

/** Words of hasty messages without a vowel, which no abbreviation of a longer text ends with. */
const HASTY = words(
  'ok okay thx thnx tks pls plz lol lmk np ty tbh rn brb grz grzz cmq xd msg jpp stp svp mdr slt bjr ptdr mfg vg lg tmb pq abs bjs vlw blz спс пжл',
);

/** The last word of a piece without opening marks, in lower case, and whether it ends in a full stop. */
export function lastWord(piece: string): { word: string; dotted: boolean } {
  const tail = piece.slice(-40);
  const word = /(?<!\S)(\S+)$/.exec(tail)?.[1] ?? '';
  const dotted = word.endsWith('.');
  const bare = word.replace(/^[("'“‘[«¿¡]+/, '').replace(/\.$/, '');
  return { word: bare, dotted };
}

/** Whether a full stop after `word` (in lower case: `lower`) does not end the sentence before `next`. */
function abbreviates(word: string, lower: string, next: string): boolean {
  if (TITLES.has(lower)) return true;
  if (HASTY.has(lower)) return false;
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
  if (HASTY.has(lower)) return true;
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
export function graphemeCut(text: string, from: number, limit: number): number {
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

/** Words that continue a Thai sentence after a space. */
const THAI_CONTINUES =
  /^(?:และ|หรือ|แต่|ซึ่ง|โดย|ที่|เพื่อ|จาก|ของ|ใน|เช่น|คือ|ได้แก่|รวม|เนื่อง|ภายใน|ตั้งแต่|จนถึง|พร้อม|จึง|ก็|ว่า|เป็น|จะ|กับ|เพราะ|อย่างมี)/u;
const FEWEST_THAI_LETTERS = 24;
const MOST_THAI_LETTERS = 160;

/**
 * The sentences of a text in a script that marks their ends only by a space, as it does clauses, numbers and names. A space inside
 * a phrase, around a number or before a conjunction ends none.
 */
export function splitUnmarked(text: string): string[] {
  const sentences: string[] = [];
  let open = '';
  for (const phrase of text.split(' ')) {
    const letter = /^\p{L}/u.test(phrase) && UNMARKED.test(phrase.charAt(0));
    const closed = open.length >= FEWEST_THAI_LETTERS && !/[\p{N}(,:]$|[A-Za-z]$/u.test(open);
    const continues = !letter || (THAI_CONTINUES.test(phrase) && open.length < MOST_THAI_LETTERS);
    if (open !== '' && closed && !continues) {
      sentences.push(open);
      open = phrase;
    } else open = open === '' ? phrase : `${open} ${phrase}`;
  }
  if (open !== '') sentences.push(open);
  return sentences;
}
