/** Rows of keys on common keyboards. Each row is also searched in reverse. */
const ROWS = ['qwertyuiop', 'qwertzuiop', 'azertyuiop', 'asdfghjkl', 'qsdfghjklm', 'zxcvbnm', 'yxcvbnm'];
const KEYS = [...ROWS, ...ROWS.map(row => [...row].reverse().join(''))];
const LEAST_RUN = 4;
/** A word counts as junk, and a text as gibberish, if at least this share of it is junk. */
const MOST = 0.6;

/**
 * Whether a reply looks as if somebody only hit keys: `asdf asdf`, `hhhhhh`, `...`. It checks letters, not words, so it can be wrong:
 * such a reply is held until the operator has read it. Emoji and numbers count as content.
 */
export function looksLikeGibberish(text: string): boolean {
  if (/\p{Extended_Pictographic}|\p{N}/u.test(text)) return false;
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  if (words.length === 0) return !/^[+−–-]$/u.test(text.trim());
  const letters = words.join('').length;
  const junk = words.filter(isJunk).join('').length;
  return junk / letters >= MOST;
}

function isJunk(word: string): boolean {
  if (word.length < LEAST_RUN) return false;
  if (/^(.)\1+$/u.test(word) || /^(.{2,4})\1{1,}.{0,3}$/u.test(word)) return true;
  if (!/^\p{Script=Latin}+$/u.test(word)) return false;
  return !/[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýœ]/u.test(word) || keyRun(word) / word.length >= MOST;
}

/** The number of letters in a word that follow each other on a keyboard, in runs of four or more. */
function keyRun(word: string): number {
  let covered = 0;
  for (let at = 0; at < word.length;) {
    let length = 0;
    while (at + length < word.length && KEYS.some(row => row.includes(word.slice(at, at + length + 1))))
      length++;
    if (length >= LEAST_RUN) covered += length;
    at += Math.max(length, 1);
  }
  return covered;
}
