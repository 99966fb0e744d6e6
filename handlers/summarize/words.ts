/** Counting words, in scripts with and without spaces between them. */

const wordSegmenter = new Intl.Segmenter('en', { granularity: 'word' });
/** The segmenter takes about a microsecond per character, so the words of longer texts are estimated. */
const SEGMENTED = 2_000;
const CHARACTERS_PER_WORD = 1.6;

/** Scripts that are written without spaces between words. */
export const SPACELESS =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;
/** The scripts among them that separate sentences with a space instead of a punctuation mark. */
export const UNMARKED = /[\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]/u;

/** The number of words, by the higher of two counts: by spaces, or by runs of letters and digits. */
export function countWords(text: string): number {
  const bySpaces = text.match(/\S+/g)?.length ?? 0;
  const byLetters = text.match(/[\p{L}\p{N}\p{M}]+/gu)?.length ?? 0;
  if (!SPACELESS.test(text)) return Math.max(bySpaces, byLetters);
  if (text.length > SEGMENTED) return Math.ceil(text.length / CHARACTERS_PER_WORD);
  let segmented = 0;
  for (const { isWordLike } of wordSegmenter.segment(text)) if (isWordLike) segmented += 1;
  return Math.max(bySpaces, segmented);
}
