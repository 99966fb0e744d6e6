import type { Opinion, Sentiment } from './replies.js';

/** The instruction for people on a marketplace, where there is no form for choosing an opinion. */
export const MARK_REQUEST = 'Begin with + if your opinion is good, 0 if neutral, - if bad. Then say why.';

const MARKS: Readonly<Record<string, Sentiment>> = {
  '+': 'positive',
  '＋': 'positive',
  '➕': 'positive',
  '0': 'neutral',
  '０': 'neutral',
  '-': 'negative',
  '−': 'negative',
  '–': 'negative',
  '—': 'negative',
  '－': 'negative',
  '➖': 'negative',
};

/** A mark at the start, perhaps in brackets or quotes, and the separator after it. */
const MARKED = /^[([{"'“‘]?([+＋➕0０\-−–—－➖])(?![+\-\d%/.,]\d|\d|[%/])[)\]}"'”’]?[\s:;.,)\-–—]*/u;
/** A bullet on a later line: the reply is then a list, and a hyphen at its start is not a minus. */
const LIST = /\n[ \t]*[-−–—•*]\s/u;
/** `0 stars` is an opinion, but not a neutral one. */
const A_COUNT = /^[0０]\s+(?:stars?|points?|out of|of|sterne?|estrellas?|étoiles?|stelle|estrelas?)\b/iu;

/** The opinion that a reply begins with, and the words after it; `unknown` and the whole text if it begins with none. */
export function readMark(reply: string): { sentiment: Opinion; text: string } {
  const text = reply.trim();
  const [whole, mark] = MARKED.exec(text) ?? [];
  if (whole === undefined || mark === undefined || LIST.test(text) || A_COUNT.test(text))
    return { sentiment: 'unknown', text };
  return { sentiment: MARKS[mark] ?? 'unknown', text: text.slice(whole.length).trim() || text };
}
