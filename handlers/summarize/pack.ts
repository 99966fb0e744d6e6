import { SPACELESS, UNMARKED, countWords } from './words.js';

/** Puts statements into at most three sentences, however they are counted, of under 60 words each. */

/** The contract promises at most this many sentences. */
export const MAX_SENTENCES = 3;
/** Sentences have fewer than 60 words; two are kept in reserve, as not everybody counts alike. */
export const MAX_WORDS = 57;

/** Words that are written in lower case inside a sentence. */
const LOWERED = new Set(
  (
    'the a an this these that those it they we you he she there in on at by for from to with no not if when each all only after before ' +
    'until while both then please neither as his her their our its der die das den dem ein eine einen er es wir im am bei für auf nach ' +
    'zum zur mit von bis nicht auch wenn ob dabei außerdem bitte ' +
    'le la les un une des il elle ils elles nous on ce cette ces en à au aux pour par dans si chaque ' +
    'el los las una se lo su sus en por para con no si al ' +
    'i gli uno del della nel per con non chi ' +
    'o os as um uma no na nos nas ao por com não quem para ' +
    'в на и по с он она они это для при также из к от если не'
  ).split(' '),
);
const END = /(?<![.。．…;；,、\s])[.。．…;；,、\s]+$/u;
const TITLE = /(?<!\p{L})(Dr|Mr|Mrs|Ms|Prof|St|No|Nr|Hr|Fr|Sr|Sra|Dra|Mme|Art|\p{Lu})\.(?=\s)/gu;

/** How many sentences a reader counts who takes every end mark before a space for an end. */
export function countByMarks(text: string): number {
  const parts = text.split(/(?<=[.!?…]["'”’»)\]]{0,9})\s+|(?<=[。！？]["'”’」』)）]{0,9})(?=\S)/u);
  return parts.filter(part => /[\p{L}\p{N}]/u.test(part)).length;
}

/** Not where the capital is another letter: ß, ı. */
export const capitalised = (text: string): string =>
  text.replace(/^\p{Ll}/u, letter =>
    letter.toUpperCase().toLowerCase() === letter ? letter.toUpperCase() : letter,
  );

const isUnmarked = (text: string): boolean => UNMARKED.test(text);

/** Two statements as one. */
function joinStatements(left: string, right: string): string {
  if (isUnmarked(left) || isUnmarked(right)) return `${left.replace(END, '')} ${right}`;
  const bare = left.replace(END, '').replace(/(?<!!)!+$/, '');
  if (SPACELESS.test(bare.slice(-1))) return `${bare}；${right}`;
  const first = /^\p{L}+/u.exec(right)?.[0] ?? '';
  const lowered = LOWERED.has(first.toLowerCase()) && first !== 'I' && !/^\p{Lu}{2}/u.test(right);
  return `${bare}; ${lowered ? right.charAt(0).toLowerCase() + right.slice(1) : right}`;
}

/** No space after a full-width mark. */
export function joinSentences(sentences: string[]): string {
  return sentences.reduce(
    (text, next) =>
      text === '' ? next : /[。！？；][」』”’）]*$/u.test(text) ? text + next : `${text} ${next}`,
    '',
  );
}

/** One sentence to every reader: the ends within it become semicolons. */
const asOne = (text: string): string =>
  text
    .replace(/(?<![.!?…])[.!?…]+(?=\s)/gu, ';')
    .replace(/(?<=[。！？])(?=\S)/gu, '；')
    .replace(/[。！？]；/gu, '；');

const isAsking = (text: string): boolean => /[?？]["'”’»)]*$/.test(text);

/** The statements of the pair of neighbours that makes the shortest sentence, as one; undefined if none is short enough. */
function merged(groups: string[]): string[] | undefined {
  let best = -1;
  let fewest = MAX_WORDS + 1;
  for (let index = 0; index + 1 < groups.length; index += 1) {
    const left = groups[index] ?? '';
    const words = isAsking(left)
      ? Number.POSITIVE_INFINITY
      : countWords(joinStatements(left, groups[index + 1] ?? ''));
    if (words < fewest) [best, fewest] = [index, words];
  }
  if (best < 0) return undefined;
  return [
    ...groups.slice(0, best),
    joinStatements(groups[best] ?? '', groups[best + 1] ?? ''),
    ...groups.slice(best + 2),
  ];
}

/**
 * `statements`, in their order, as at most three sentences; undefined if they don't fit. A single statement always does. Abbreviations
 * lose their full stop, and neighbours are joined by a semicolon, only where a reader would count too many sentences.
 */
export function pack(statements: string[], countByRules: (text: string) => number): string[] | undefined {
  // Readers find no end in scripts without marks: all of it is one sentence to them.
  const most = statements.some(isUnmarked) ? 1 : MAX_SENTENCES;
  let groups = statements;
  const fits = (): boolean => {
    if (groups.length > most) return false;
    const text = joinSentences(groups);
    return countByMarks(text) <= MAX_SENTENCES && countByRules(text) <= MAX_SENTENCES;
  };
  if (!fits() && groups.length <= most) groups = groups.map(group => group.replace(TITLE, '$1'));
  while (!fits()) {
    const next = merged(groups);
    if (next === undefined) return statements.length === 1 ? groups.map(asOne) : undefined;
    groups = next;
  }
  // A reader takes an end mark before lower case for none.
  return groups.length > 1 ? groups.map(capitalised) : groups;
}
