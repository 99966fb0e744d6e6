import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { extractSummary } from '../../handlers/summarize/extract.js';
import { joinSentences } from '../../handlers/summarize/gate.js';
import { sentencesOf, type CorpusText } from '../support/summary-corpus.js';

/** The summaries to compare: those of the embedded summarizer and those of the npm package `textrank`. */

type Text = Pick<CorpusText, 'text' | 'language'>;
type Sentence = { tokens: string[] };
type TextRank = new (
  article: string,
  settings: {
    extractAmount: number;
    summaryType: 'array';
    tokens: string[];
    split: string[][];
    sim: (left: Sentence, right: Sentence) => number;
  },
) => { summarizedArticle: string[] };

// `textrank` starts with random ranks; with equal ranks, as in the paper, its figures never vary.
Math.random = () => 0.5;

const load = createRequire(
  fileURLToPath(new URL('../../../contract-tests/tools/package.json', import.meta.url)),
);
const { TextRank } = load('textrank') as { TextRank: TextRank };

const wordsOf = (sentence: string, language: string): string[] =>
  [...new Intl.Segmenter(language, { granularity: 'word' }).segment(sentence.toLowerCase())]
    .filter(({ isWordLike }) => isWordLike)
    .map(({ segment }) => segment);

/**
 * The similarity function of `textrank` (and of its paper), which fails on sentences of one word and on those
 * without a common word.
 */
function similarity({ tokens: left }: Sentence, { tokens: right }: Sentence): number {
  const shared = new Set(left.filter(word => right.includes(word))).size;
  return 1e-6 + shared / Math.max(1, Math.log(left.length) + Math.log(right.length));
}

/** The splitter of `textrank` knows only English, so it gets sentences and words from ICU. */
export function textRank({ text, language }: Text): string {
  const tokens = sentencesOf(text, language);
  if (tokens.length <= 3) return tokens.join(' ');
  const split = tokens.map(sentence => wordsOf(sentence, language));
  const settings = { extractAmount: 3, summaryType: 'array', tokens, split, sim: similarity } as const;
  return new TextRank(text, settings).summarizedArticle.join(' ');
}

export const coinslot = ({ text }: Text): string => joinSentences(extractSummary(text)?.sentences ?? []);
