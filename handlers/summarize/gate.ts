/** The check that every sentence of an extractive summary passes: only complete sentences pass. */

/** The contract promises at most this many sentences. */
export const MAX_SENTENCES = 3;
/** How a sentence ends, in any script. */
export const END =
  /(?:[.!?…。！？．।॥؟۔]["'”’»)\]」』）》]*|[\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}])$/u;
const LIST_MARK = /^(?:[-*+•‣◦▪●○·–—#>|]|\(?\d{1,3}(?:\.\d{1,3}){0,4}[.)]|\(?[a-zA-Z]\)|\([ivx]{1,4}\))\s/u;
const PAIRS: readonly (readonly [string, string])[] = [
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
  ['（', '）'],
  ['「', '」'],
  ['『', '』'],
  ['《', '》'],
  ['【', '】'],
];

const count = (text: string, mark: string): number => text.split(mark).length - 1;

/**
 * Quotation marks. German ones open low and close with the mark that opens in English, or with a straight one; French ones may point either
 * way.
 */
const quotesBalance = (text: string): boolean =>
  (text.match(/[“”„"]/g)?.length ?? 0) % 2 === 0 && count(text, '«') === count(text, '»');

/** Whether all brackets and quotation marks in `text` are balanced. */
export function balanced(text: string): boolean {
  return (
    quotesBalance(text) &&
    PAIRS.every(([open, close]) => {
      let depth = 0;
      for (const character of text) {
        if (character === open) depth += 1;
        else if (character === close) depth -= 1;
        if (depth < 0) return false;
      }
      return depth === 0;
    })
  );
}

/**
 * Whether `sentence` may be part of a summary: it ends as a sentence ends, its brackets and quotation marks are balanced, and it has no
 * list mark.
 */
export function passes(sentence: string): boolean {
  return (
    END.test(sentence) &&
    balanced(sentence) &&
    !LIST_MARK.test(sentence) &&
    !/[\r\n\t]| {2}/.test(sentence) &&
    /[\p{L}\p{N}]/u.test(sentence)
  );
}

/** How many sentences there are if every end mark before a space ends one. */
export function countByMarks(text: string): number {
  const parts = text.split(/(?<=[.!?…]["'”’»)\]]{0,9})\s+|(?<=[。！？]["'”’」』)）]{0,9})(?=\S)/u);
  return parts.filter(part => /[\p{L}\p{N}]/u.test(part)).length;
}

/** The sentences on one line, with no space after a full-width mark. */
export const joinSentences = (sentences: string[]): string =>
  sentences.reduce(
    (text, next) =>
      text === '' ? next : /[。！？][」』”’）]*$/u.test(text) ? text + next : `${text} ${next}`,
    '',
  );
