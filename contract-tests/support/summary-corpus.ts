import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';

/** The corpus of contract-tests/fixtures/summaries, and how a summary of one of its texts is scored. */

/**
 * `must`: what a good summary contains, each with its accepted wordings. `mustNot`: what it leaves out. `held`: the
 * summarizer was not tuned on this text.
 */
export type CorpusText = {
  id: string;
  language: string;
  kind: string;
  held: boolean;
  must: string[][];
  mustNot: string[];
  text: string;
};

/**
 * `facts`: the share of `must` that the summary contains. `unwanted`: how many of `mustNot` it contains. `faults`:
 * where it breaks the rules for a summary's form, in words. `score`: 0 to 1. `words`: its length.
 */
export type Score = { facts: number; unwanted: number; faults: string[]; score: number; words: number };

const FOLDER = fileURLToPath(new URL('../../../contract-tests/fixtures/summaries/', import.meta.url));
const MOST_SENTENCES = 3;
const WORD_LIMIT = 60;
const COST_OF_UNWANTED = 0.25;
const COST_OF_FAULT = 0.5;

type Entry = {
  id: string;
  kind: string;
  held?: boolean;
  must: (string | string[])[];
  mustNot: string[];
  text: string;
};

export function readCorpus(): CorpusText[] {
  return readdirSync(FOLDER)
    .filter(name => name.endsWith('.yaml'))
    .sort()
    .flatMap(name => {
      const entries = parse(readFileSync(FOLDER + name, 'utf8')) as Entry[];
      return entries.map(entry => ({
        ...entry,
        language: name.slice(0, 2),
        held: entry.held === true,
        must: entry.must.map(fact => [fact].flat()),
      }));
    });
}

/** Normalizes case, digits, quotes and spaces: typography does not change a summary's score. */
const plain = (text: string): string =>
  text.normalize('NFKC').toLowerCase().replaceAll('’', "'").replace(/\s+/g, ' ');

export function wordCount(text: string, language: string): number {
  let count = 0;
  for (const { isWordLike } of new Intl.Segmenter(language, { granularity: 'word' }).segment(text))
    if (isWordLike) count += 1;
  return count;
}

/** The sentences of a summary, split in two ways: by ICU, and at every end mark before a space. */
function countings(summary: string, language: string): string[][] {
  const icu = [...new Intl.Segmenter(language, { granularity: 'sentence' }).segment(summary)];
  const byMarks = summary.split(/(?<=[.!?…]["'”’»)\]]*)\s+|(?<=[。！？]["'”’」』)）]*)(?=\S)/u);
  return [icu.map(({ segment }) => segment), byMarks].map(list =>
    list.filter(part => /[\p{L}\p{N}]/u.test(part)),
  );
}

/** Where `summary` breaks the form that the contract and docs/explanation/promises.md promise. */
export function formFaults(summary: string, language: string): string[] {
  const faults: string[] = [];
  for (const sentences of countings(summary, language)) {
    if (sentences.length < 1 || sentences.length > MOST_SENTENCES)
      faults.push(`${sentences.length} sentences`);
    for (const sentence of sentences) {
      const spaced = sentence.trim().split(/\s+/).length;
      const words = Math.max(spaced, wordCount(sentence, language));
      if (words >= WORD_LIMIT) faults.push(`a sentence of ${words} words`);
    }
  }
  if (/[\r\n]/.test(summary)) faults.push('a line break');
  if (/[。！？] /u.test(summary)) faults.push('a space after 。');
  return [...new Set(faults)];
}

export function scoreOf(summary: string, { must, mustNot, language }: CorpusText): Score {
  const said = plain(summary);
  const met = must.filter(wordings => wordings.some(wording => said.includes(plain(wording)))).length;
  const unwanted = mustNot.filter(wording => said.includes(plain(wording))).length;
  const facts = met / must.length;
  const faults = formFaults(summary, language);
  const content = Math.max(0, facts - COST_OF_UNWANTED * unwanted);
  const score = content * (faults.length > 0 ? COST_OF_FAULT : 1);
  return { facts, unwanted, faults, score, words: wordCount(summary, language) };
}

/** The sentences of `text` by ICU, in order; a line break ends a sentence. */
export function sentencesOf(text: string, language: string): string[] {
  const segmenter = new Intl.Segmenter(language, { granularity: 'sentence' });
  return [...segmenter.segment(text)]
    .map(({ segment }) => segment.trim())
    .filter(sentence => /[\p{L}\p{N}]/u.test(sentence));
}

/** The first three sentences: for news, the baseline that is hardest to beat. */
export const leadThree = ({ text, language }: Pick<CorpusText, 'text' | 'language'>): string =>
  sentencesOf(text, language).slice(0, MOST_SENTENCES).join(' ');

/** Whole sentences from the beginning of the text, with at least `words` words in all if the text has that many. */
export function leadAsLong({ text, language }: CorpusText, words: number): string {
  const taken: string[] = [];
  let length = 0;
  for (const sentence of sentencesOf(text, language)) {
    if (length >= words) break;
    taken.push(sentence);
    length += wordCount(sentence, language);
  }
  return taken.join(' ');
}

/** The source of a text of contract-tests/fixtures/judged. */
export type Source = {
  id: string;
  language: string;
  kind: string;
  package: string;
  path: string;
  licence: string;
};

const JUDGED = fileURLToPath(new URL('../../../contract-tests/fixtures/judged/', import.meta.url));

/** The texts that were not written for this repository, with their sources. */
export const readJudged = (): (Source & { text: string })[] =>
  (JSON.parse(readFileSync(`${JUDGED}sources.json`, 'utf8')) as Source[]).map(source => ({
    ...source,
    text: gunzipSync(readFileSync(`${JUDGED}${source.id}.txt.gz`)).toString(),
  }));
