import type { Log } from 'coinslot';
import type { Reply, Sentiment } from './replies.js';
import type { SentimentModel } from './sentiment-model.js';

/** A reply as it is sold. `from`: the source of its opinion. If that is `unknown`, the reply counts as neutral. */
export type SoldReply = Pick<Reply, 'text' | 'isSample'> & {
  sentiment: Sentiment;
  from: 'respondent' | 'model' | 'unknown';
};

const AT_A_TIME = 4;

/**
 * Asks the operator's model, if there is one, for the opinions that respondents did not state. Opinions that it can't infer stay unknown.
 */
export async function withOpinions(
  replies: readonly Reply[],
  model: SentimentModel | undefined,
  signal: AbortSignal,
  log?: Pick<Log, 'warn'>,
): Promise<SoldReply[]> {
  const waiting = replies
    .map((reply, at) => ({ reply, at }))
    .filter(({ reply }) => reply.sentiment === 'unknown');
  const found = new Map<number, Sentiment>();
  const take = async (): Promise<void> => {
    for (let next = waiting.shift(); model && next; next = waiting.shift()) {
      const sentiment = await model.sentimentOf(next.reply.text, signal);
      if (sentiment !== 'unknown') found.set(next.at, sentiment);
    }
  };
  if (model && waiting.length > 0)
    await Promise.all(Array.from({ length: AT_A_TIME }, take)).catch((error: unknown) => {
      signal.throwIfAborted();
      log?.warn({ err: error }, 'the model could not infer opinions from replies');
    });
  return replies.map(({ text, isSample, sentiment }, at) => {
    if (sentiment !== 'unknown') return { text, isSample, sentiment, from: 'respondent' };
    const inferred = found.get(at);
    return inferred
      ? { text, isSample, sentiment: inferred, from: 'model' }
      : { text, isSample, sentiment: 'neutral', from: 'unknown' };
  });
}
