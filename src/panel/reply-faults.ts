import { MAX_REPLY_CHARACTERS, type Reply, SENTIMENTS } from '../upstreams/people/people.js';
import { charactersOf, tidyReply, wordsOf } from '../upstreams/people/reply-text.js';

/** What is wrong with a reply, if anything. */
export function faultIn(raw: string, sentiment: string): string | undefined {
  if (tidyReply(raw) === '') return 'Please write your reply first.';
  const length = charactersOf(raw.replace(/\r\n?/g, '\n').trim());
  if (length > MAX_REPLY_CHARACTERS)
    return `Your reply has ${length} characters; please shorten it to ${MAX_REPLY_CHARACTERS}.`;
  if (sentiment !== '' && !(SENTIMENTS as string[]).includes(sentiment))
    return 'Please choose positive, neutral or negative.';
  return undefined;
}

/** Whether another person has said the same, but for capitals, spaces and punctuation. */
export function repeats(text: string, respondent: string, replies: Reply[]): boolean {
  const words = wordsOf(text);
  return replies.some(
    reply => reply.respondent !== respondent && !reply.isSample && wordsOf(reply.text) === words,
  );
}
