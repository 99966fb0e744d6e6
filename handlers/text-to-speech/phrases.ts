/** A phrase for one run of the engine, and the pause after it. */
export type Phrase = { text: string; pauseMs: number };

const ABBREVIATED = /(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Gen|St|Jr|Sr|vs|etc|e\.g|i\.e|Inc|Ltd|Co|No)|\b[A-Z])\.$/;
const PAUSES_MS = { paragraph: 600, sentence: 350, clause: 200, word: 40, end: 150 };

function sentences(paragraph: string): string[] {
  const found: string[] = [];
  for (const part of paragraph.split(/ (?<=[.!?][')]{0,3} )/)) {
    const before = found.at(-1);
    if (before !== undefined && ABBREVIATED.test(before)) found[found.length - 1] = `${before} ${part}`;
    else found.push(part);
  }
  return found;
}

/** Where to split, best place first, and what joins two parts that fit into one phrase. A very long word is cut. */
const SPLITS: { split: (text: string, limit: number) => string[]; joint: string }[] = [
  { split: text => text.split('\n\n'), joint: '\n\n' },
  { split: sentences, joint: ' ' },
  { split: text => text.split(/(?<=[,;:)]) /), joint: ' ' },
  { split: text => text.split(' '), joint: ' ' },
  { split: (text, limit) => text.match(new RegExp(`.{1,${limit}}`, 'g')) ?? [], joint: '' },
];

function pauseAfter(text: string): number {
  if (/[.!?][')]*$/.test(text)) return PAUSES_MS.sentence;
  return /[,;:)]$/.test(text) ? PAUSES_MS.clause : PAUSES_MS.word;
}

function pack(text: string, limit: number, level: number): Phrase[] {
  const way = SPLITS[level];
  if (text.length <= limit || !way) return [{ text, pauseMs: pauseAfter(text) }];
  const packed: Phrase[] = [];
  for (const part of way.split(text, limit)) {
    const before = packed.at(-1);
    const joined = before && before.text + way.joint + part;
    if (before && joined && joined.length <= limit) {
      before.text = joined;
      before.pauseMs = pauseAfter(joined);
    } else packed.push(...pack(part, limit, level + 1));
    const last = packed.at(-1);
    if (level === 0 && last) last.pauseMs = PAUSES_MS.paragraph;
  }
  return packed;
}

/** Cuts the result of `spokenText` into phrases of at most `limit` characters, none of them empty. */
export function phrases(text: string, limit: number): Phrase[] {
  const packed = pack(text, limit, 0).filter(phrase => /[A-Za-z0-9]/.test(phrase.text));
  const last = packed.at(-1);
  if (last) last.pauseMs = PAUSES_MS.end;
  return packed;
}
