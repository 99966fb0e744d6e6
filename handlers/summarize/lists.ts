import type { Block } from './plain-text.js';
import { countWords, SPACELESS } from './words.js';

/** Makes one statement of a list: "Bring: tent, torch, rope." */

const FEWEST_ITEMS = 3;
/** An item with more words is a paragraph, and is read like one. */
const ITEM_WORDS = 16;
/** From here on an item is shortened to its first clause if the list is too long. */
const LONG_ITEM = 7;
/** A list in a summary has at most this many words. */
const LIST_WORDS = 50;
const MAX_ITEMS = 60;

const REMARK = /(?<!\s)\s*[(（][^()（）]{1,200}[)）]/gu;
const CLAUSE = /[,;:，；]\s|\s[–—-]\s|[.!?。]\s/u;

const withoutEnd = (text: string): string => text.replace(/(?<![\s.;,。；，])[\s.;,。；，]+$/u, '');

/** An item without what explains it. */
function head(item: string): string {
  const bare = item.replace(REMARK, '').trim();
  const text = bare === '' ? item : bare;
  if (countWords(text) <= LONG_ITEM) return text;
  const cut = text.search(CLAUSE);
  return cut > 0 && countWords(text.slice(0, cut)) >= 2 ? text.slice(0, cut) : text;
}

function separatorOf(items: string[]): string {
  if (items.every(item => SPACELESS.test(item))) return '、';
  return items.some(item => /[,;:]\s/.test(item) || countWords(item) > 5) ? '; ' : ', ';
}

/** The items as one statement in at most `LIST_WORDS` words. Those that don't fit in are counted in brackets. */
function statement(intro: string, items: string[]): string {
  const prefix =
    intro === ''
      ? ''
      : `${withoutEnd(intro)
          .replace(/[:：]$/u, '')
          .trimEnd()}: `;
  const whole = items.map(withoutEnd);
  const fits = (list: string[], more = ''): boolean =>
    countWords(prefix + list.join(separatorOf(list)) + more) <= LIST_WORDS;
  let list = whole;
  if (!fits(list)) list = whole.map(item => withoutEnd(head(item)));
  let left = 0;
  while (list.length > 1 && !fits(list, left > 0 ? ' (+00)' : '')) {
    list = list.slice(0, -1);
    left += 1;
  }
  const end = SPACELESS.test(list.at(-1)?.slice(-1) ?? '') ? '。' : '.';
  return `${prefix}${list.join(separatorOf(list))}${left > 0 ? ` (+${left})` : ''}${end}`;
}

const isShortItem = ({ kind, text }: Block): boolean =>
  kind === 'item' &&
  text.length <= 300 &&
  !/^\[?\d{4}-\d\d-\d\d/.test(text) &&
  countWords(text) <= ITEM_WORDS &&
  !/[.!?。]\s+\S/u.test(text);

/** A heading, or a line that ends in a colon. */
const introduces = (block: Block | undefined): boolean =>
  block !== undefined &&
  (block.kind === 'heading' || (block.kind === 'prose' && /[:：]$/u.test(block.text))) &&
  countWords(block.text) <= ITEM_WORDS;

/** Every list of short items as one block, together with the line that introduces it. Linear in the number of blocks. */
export function gatherLists(blocks: Block[]): Block[] {
  const gathered: Block[] = [];
  for (let at = 0; at < blocks.length;) {
    let end = at;
    while (end < blocks.length && isShortItem(blocks[end] as Block)) end += 1;
    const before = gathered.at(-1);
    const introduced = introduces(before);
    const first = blocks[at] as Block;
    if (end - at >= (introduced ? 1 : FEWEST_ITEMS)) {
      if (introduced && before?.kind === 'prose') gathered.pop();
      const items = blocks.slice(at, Math.min(end, at + MAX_ITEMS)).map(({ text }) => text);
      gathered.push({ text: statement(introduced ? (before?.text ?? '') : '', items), kind: 'list' });
      at = end;
    } else {
      gathered.push(first);
      at += 1;
    }
  }
  return gathered;
}
