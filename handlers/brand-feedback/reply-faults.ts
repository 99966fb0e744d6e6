import { charactersOf, tidyReply, wordsOf } from './reply-text.js';
import { MAX_REPLY_CHARACTERS, type Reply, SENTIMENTS } from './replies.js';

/** The form control that the respondent must correct. */
export type Control = 'text' | 'sentiment';

export type ReplyFault = { message: string; control: Control };

const NO_CHOICE: ReplyFault = {
  message: 'Please choose positive, neutral or negative.',
  control: 'sentiment',
};

/** What is wrong with a reply, if anything. */
export function faultIn(raw: string, sentiment: string): ReplyFault | undefined {
  if (tidyReply(raw) === '') return { message: 'Please write your reply first.', control: 'text' };
  const length = charactersOf(raw.replace(/\r\n?/g, '\n').trim());
  if (length > MAX_REPLY_CHARACTERS)
    return {
      message: `Your reply has ${length} characters; please shorten it to ${MAX_REPLY_CHARACTERS}.`,
      control: 'text',
    };
  if (!(SENTIMENTS as string[]).includes(sentiment)) return NO_CHOICE;
  return undefined;
}

/** Whether another person has said the same, except for capitals, spaces and punctuation. */
export function repeats(text: string, respondent: string, replies: Reply[]): boolean {
  const words = wordsOf(text);
  return replies.some(
    reply => reply.respondent !== respondent && !reply.isSample && wordsOf(reply.text) === words,
  );
}
