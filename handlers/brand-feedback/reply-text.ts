import { MAX_REPLY_CHARACTERS } from './replies.js';

/**
 * Cleans a reply: unified line ends, no characters that a database or page cannot store (control characters are removed, lone
 * surrogates become U+FFFD), at most `max` characters, trimmed. Empty if nothing visible is left.
 */
export function tidyReply(raw: string, max = MAX_REPLY_CHARACTERS): string {
  // Four UTF-16 units per character are more than enough; the rest is ignored.
  const text = raw
    .slice(0, 4 * max)
    .replace(/\r\n?/g, '\n')
    // eslint-disable-next-line no-control-regex -- these are the ones to go
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|\p{Surrogate}/gu, '\ufffd')
    .trim();
  const cut = [...text].slice(0, max).join('').trim();
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(cut.replaceAll('\ufffd', '')) ? cut : '';
}

/** Length in code points, which is close to what people count as characters. */
export function charactersOf(text: string): number {
  return [...text].length;
}

/**
 * The words of a reply, for comparison: two replies with the same words count as equal. The text itself if it has no words, such as an
 * emoji.
 */
export function wordsOf(text: string): string {
  const words = text
    .normalize('NFKC')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  return words?.join(' ') ?? text.trim();
}
