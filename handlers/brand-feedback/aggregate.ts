import { languageOf } from './language.js';
import type { SoldReply } from './with-opinions.js';
import type { Question, Sentiment } from './replies.js';
import { summaryIn } from './summary-words.js';

/** The body of `brandFeedback`'s answer: the replies to a question, and their aggregate. */
export type BrandFeedback = {
  brand: string;
  question: string;
  /** Number of respondents requested. */
  n: number;
  /** `sentimentFrom`: the source of the sentiment, if the respondent did not state it. */
  responses: { text: string; sentiment: Sentiment; sentimentFrom?: 'model' | 'unknown' }[];
  /** `opinionsKnown`: the number of replies whose opinion is known. */
  aggregate: Counts & { opinionsKnown: number; summary: string };
  mock: boolean;
};

const MAX_QUOTE_CHARACTERS = 160;

/**
 * Builds the answer from a question and its replies. `mock` is true only if a sample respondent wrote one of the replies. The summary is
 * in the language of the replies if `summary-words.ts` has that language, otherwise in English.
 */
export function createBrandFeedback(
  { brand, question, wanted }: Pick<Question, 'brand' | 'question' | 'wanted'>,
  replies: readonly SoldReply[],
): BrandFeedback {
  const of = (sentiment: Sentiment) => replies.filter(reply => reply.sentiment === sentiment);
  const counts = {
    positive: of('positive').length,
    neutral: of('neutral').length,
    negative: of('negative').length,
  };
  const unknown = replies.filter(({ from }) => from === 'unknown').length;
  return {
    brand,
    question,
    n: wanted,
    responses: replies.map(({ text, sentiment, from }) =>
      from === 'respondent' ? { text, sentiment } : { text, sentiment, sentimentFrom: from },
    ),
    aggregate: {
      ...counts,
      opinionsKnown: replies.length - unknown,
      summary: summarise(counts, replies, wanted, unknown),
    },
    mock: replies.some(({ isSample }) => isSample),
  };
}

function unknownNote(unknown: number): string {
  if (unknown === 0) return '';
  const [replies, count] =
    unknown === 1 ? ['1 respondent', 'the reply counts'] : [`${unknown} respondents`, 'their replies count'];
  return ` ${replies} did not state an opinion; ${count} as neutral.`;
}

type Counts = Record<Sentiment, number>;

function summarise(counts: Counts, replies: readonly SoldReply[], wanted: number, unknown: number): string {
  const given = replies.length;
  if (given === 0) return `None of ${people(wanted)} answered before the deadline.`;
  const quotes = quotesOf(counts, replies);
  const foreign = summaryIn(languageOfAll(replies), { given, wanted, counts, unknown, quotes });
  if (foreign !== undefined) return foreign;
  const short = given < wanted ? `Only ${given} of ${people(wanted)} answered before the deadline` : '';
  const tally = tallyOf(counts, given);
  const first = short ? `${short}: ${tally}.` : `${capital(tally)}.`;
  return `${first}${examples(quotes)}${unknownNote(unknown)}`;
}

/** The language of most of the replies; undefined if it can't be detected. */
function languageOfAll(replies: readonly SoldReply[]): string | undefined {
  const found = replies.map(({ text }) => languageOf(text));
  const count = (language: string | undefined) => found.filter(each => each === language).length;
  const [most] = [...new Set(found)].filter(each => each !== undefined).sort((a, b) => count(b) - count(a));
  return count(most) * 2 > replies.length - count(undefined) ? most : undefined;
}

function examples([said, against]: readonly string[]): string {
  if (said === undefined) return '';
  return against === undefined
    ? ` Example reply: “${said}”.`
    : ` Example replies: “${said}” and “${against}”.`;
}

function people(n: number): string {
  return n === 1 ? '1 person' : `${n} people`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const VERDICTS: Sentiment[] = ['positive', 'neutral', 'negative'];

/** `3 of 5 were positive, 1 neutral and 1 negative`. */
function tallyOf(counts: Counts, given: number): string {
  const [first = 'neutral', ...others] = VERDICTS.filter(verdict => counts[verdict] > 0).sort(
    (a, b) => counts[b] - counts[a],
  );
  if (given === 1) return `the one reply was ${first}`;
  if (others.length === 0) return `all ${given} replies were ${first}`;
  const rest = others.map(verdict => `${counts[verdict]} ${verdict}`).join(' and ');
  const [head, tail] = others.length > 1 ? [', ', rest] : [' and ', rest];
  return `${counts[first]} of ${given} replies ${counts[first] === 1 ? 'was' : 'were'} ${first}${head}${tail}`;
}

/** A typical reply from the largest group and, if another group has a positive or negative opinion, a typical reply from that group. */
function quotesOf(counts: Counts, replies: readonly SoldReply[]): string[] {
  const order = VERDICTS.filter(verdict => counts[verdict] > 0).sort((a, b) => counts[b] - counts[a]);
  const [main] = order;
  const other = order.find(verdict => verdict !== main && verdict !== 'neutral');
  const said = main ? telling(replies, main) : undefined;
  const against = other ? telling(replies, other) : undefined;
  return [said, against].filter(text => text !== undefined);
}

/** The reply that shares the most words with others of its sentiment; among equals, the one nearest to 80 characters. */
function telling(replies: readonly SoldReply[], sentiment: Sentiment): string | undefined {
  const texts = replies.filter(reply => reply.sentiment === sentiment).map(({ text }) => text);
  const words = texts.map(text => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu) ?? []));
  const frequency = new Map<string, number>();
  for (const set of words) for (const word of set) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  let best: { text: string; rank: number } | undefined;
  texts.forEach((text, index) => {
    const set = words[index] ?? new Set<string>();
    const shared =
      [...set].reduce((sum, word) => sum + (frequency.get(word) ?? 0) - 1, 0) / Math.max(set.size, 1);
    const rank = shared - Math.min(Math.abs(text.length - 80), 400) / 400;
    if (!best || rank > best.rank) best = { text, rank };
  });
  return best && quote(best.text);
}

/** A quotation on one line, without its final full stop, cut after a word if it is too long. */
function quote(text: string): string {
  const line = text
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .replaceAll('“', '"')
    .replaceAll('”', '"')
    .trim();
  const characters = [...line];
  if (characters.length <= MAX_QUOTE_CHARACTERS) return line.replace(/(?<!\.)\.$/, '');
  const cut = characters.slice(0, MAX_QUOTE_CHARACTERS).join('');
  return `${cut.replace(/(?<!\s)\s+\S*$/, '')}…`;
}
