import { UpstreamFailure } from 'coinslot';
import { MAX_SENTENCES } from './gate.js';

/** Sentences of summaries are far shorter; a longer one repeats the document. */
const MAX_SENTENCE_CHARACTERS = 2_000;

/** Phrases with which models decline. */
const REFUSALS = [
  /^(?:i'm|i am)? ?(?:\w{1,12} )?(?:sorry|apologi[sz]e|apologies|unfortunately)\b[^.]{0,40}\bi (?:can't|cannot|can not|won't|am unable|am not able)\b/i,
  /^(?:i (?:can't|cannot|can not|won't)|i'm (?:unable|not able) to|i am (?:unable|not able) to) (?:\w{1,12} )?(?:help|assist|comply|fulfil|fulfill|provide|summari[sz]e|answer|create|produce|process|engage|do that)\b/i,
  /^i must (?:\w{1,20} )?(?:decline|refuse)\b/i,
  /^as an? (?:ai|artificial|language model|large language)\b/i,
];
/** If the document itself contains such a sentence, its summary may too. */
const SAYS_SO_ITSELF =
  /\bi(?:'m| am)? (?:can't|cannot|can not|won't|unable|not able|must)\b|\bas an? (?:ai|artificial|language|large)\b/i;

export const unusable = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the summarizer gave no usable answer: try again', { cause });
const refused = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the model behind the summarizer declined to summarize this text', { cause });

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The text of `choices[0].message.content`: a string, or parts with texts. */
function readContent(body: string): string {
  const envelope = parseJson(body);
  const choices = isRecord(envelope) ? envelope.choices : undefined;
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const message = isRecord(choice) ? choice.message : undefined;
  if (!isRecord(choice) || !isRecord(message)) throw unusable('no choices[0].message in the answer');
  if (choice.finish_reason === 'content_filter') throw refused('finish_reason content_filter');
  if (typeof message.refusal === 'string' && message.refusal !== '') throw refused('a refusal field');
  const parts: unknown[] = Array.isArray(message.content) ? message.content : [message.content];
  return parts
    .map(part => (isRecord(part) ? part.text : part))
    .filter(part => typeof part === 'string')
    .join('');
}

/** The model's answer without its reasoning and without a code fence around it. */
function bareAnswer(content: string): string {
  const spoken = content
    .replace(/<think(?:ing)?>[\s\S]*?(?:<\/think(?:ing)?>|$)/gi, '')
    .replace(/^[\s\S]*<\/think(?:ing)?>/i, '')
    .trim();
  return /^```[a-z]*[^\S\n]*\n([\s\S]*)```$/i.exec(spoken)?.[1]?.trim() ?? spoken;
}

function isSentence(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= MAX_SENTENCE_CHARACTERS;
}

function isRefusal(sentence: string): boolean {
  const plain = sentence.trim().replaceAll('’', "'");
  return REFUSALS.some(refusal => refusal.test(plain));
}

/**
 * Reads one to three sentences from an answer of `/chat/completions`. It must be the requested JSON: prose may be a refusal, an
 * introduction or a question, and would be sold as a summary. `document` is the text that was to be summarised.
 * @throws UpstreamFailure `failed`
 */
export function readSentences(body: string, document: string): string[] {
  const parsed = parseJson(bareAnswer(readContent(body)));
  const listed: unknown = isRecord(parsed) && Object.keys(parsed).length === 1 ? parsed.sentences : undefined;
  if (
    !Array.isArray(listed) ||
    listed.length === 0 ||
    listed.length > MAX_SENTENCES ||
    !listed.every(isSentence)
  ) {
    throw unusable('the answer is not the requested JSON');
  }
  if (listed.some(isRefusal) && !SAYS_SO_ITSELF.test(document.replaceAll('’', "'"))) throw refused(listed[0]);
  return listed;
}
