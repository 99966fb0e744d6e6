import type { Question, Reply, Sentiment } from './replies.js';

/** The replies to a question with their aggregate: the body that `brandFeedback` answers. */
export type BrandFeedback = {
  brand: string;
  question: string;
  /** Number of respondents requested. */
  n: number;
  responses: { text: string; sentiment: Sentiment }[];
  aggregate: Counts & { summary: string };
  mock: boolean;
};

const MAX_QUOTE_CHARACTERS = 160;

/**
 * Builds the answer from a question and its replies. `mock` is true only if a sample respondent wrote one of the replies.
 * @param unread how many replies count as neutral because their language is not known to the classifier
 */
export function createBrandFeedback(
  { brand, question, wanted }: Pick<Question, 'brand' | 'question' | 'wanted'>,
  replies: Reply[],
  unread = 0,
): BrandFeedback {
  const of = (sentiment: Sentiment) => replies.filter(reply => reply.sentiment === sentiment);
  const counts = {
    positive: of('positive').length,
    neutral: of('neutral').length,
    negative: of('negative').length,
  };
  return {
    brand,
    question,
    n: wanted,
    responses: replies.map(({ text, sentiment }) => ({ text, sentiment })),
    aggregate: { ...counts, summary: `${summarise(counts, replies, wanted)}${unreadNote(unread)}` },
    mock: replies.some(({ isSample }) => isSample),
  };
}

function unreadNote(unread: number): string {
  if (unread === 0) return '';
  const [replies, count] = unread === 1 ? ['reply is', 'it counts'] : ['replies are', 'they count'];
  return ` ${unread} ${replies} in a language whose sentiment could not be inferred; ${count} as neutral.`;
}

/** How many replies came without a sentiment, in a language that the classifier does not know. */
export async function countUnread(replies: Reply[]): Promise<number> {
  const inferred = replies.filter(reply => reply.inferred);
  if (inferred.length === 0) return 0;
  const { inferSentiment } = await import('./classify.js');
  return inferred.filter(({ text }) => inferSentiment(text) === undefined).length;
}

type Counts = Record<Sentiment, number>;

function summarise(counts: Counts, replies: Reply[], wanted: number): string {
  const given = replies.length;
  if (given === 0) return `None of ${people(wanted)} answered before the deadline.`;
  const short = given < wanted ? `Only ${given} of ${people(wanted)} answered before the deadline` : '';
  const tally = tallyOf(counts, given);
  const first = short ? `${short}: ${tally}.` : `${capital(tally)}.`;
  return `${first} ${quotes(counts, replies)}`;
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

/** One sentence that quotes a typical reply of the largest group and, if there is one, of a group with another opinion. */
function quotes(counts: Counts, replies: Reply[]): string {
  const order = VERDICTS.filter(verdict => counts[verdict] > 0).sort((a, b) => counts[b] - counts[a]);
  const [main] = order;
  const other = order.find(verdict => verdict !== main && verdict !== 'neutral');
  const said = main ? telling(replies, main) : undefined;
  const against = other ? telling(replies, other) : undefined;
  if (!said) return '';
  return against ? `Example replies: “${said}” and “${against}”.` : `Example reply: “${said}”.`;
}

/** The reply that shares the most words with others of its sentiment; among equals, the one nearest to 80 characters. */
function telling(replies: Reply[], sentiment: Sentiment): string | undefined {
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
