import { createHash } from 'node:crypto';
import { looksLikeGibberish } from './gibberish.js';
import { readMark } from './opinion-mark.js';
import { tidyReply } from './reply-text.js';
import { isJson, type Json } from './rapidata-api.js';
import type { Reply } from './replies.js';

/**
 * The replies among the responses of a job (`GetJobResponsesEndpoint_Output_Response`). Skipped tasks and empty texts are left out, and so
 * are people whose age group begins below 18. The opinion is the mark that people were asked to begin their reply with.
 */
export function readResponses(questionId: string, responses: readonly Json[]): Reply[] {
  return responses.flatMap(response => readResponse(questionId, response));
}

function readResponse(questionId: string, { userId, age, result }: Json): Reply[] {
  const answer = isJson(result) && result['_t'] === 'FreeTextResult' ? result['answer'] : undefined;
  if (typeof answer !== 'string' || typeof userId !== 'string' || userId === '' || isMinor(age)) return [];
  const { text, sentiment } = readMark(tidyReply(answer));
  if (text === '') return [];
  const respondent = `rapidata-${digest(userId)}`;
  const id = digest(`${questionId} ${respondent}`);
  return [{ id, text, sentiment, respondent, isSample: false, isHeld: looksLikeGibberish(text) }];
}

/** Age groups have the form `0-17`, `18-29`, `65+`, `Unknown`. */
function isMinor(age: unknown): boolean {
  const from = Number.parseInt(typeof age === 'string' ? age : '', 10);
  return Number.isFinite(from) && from < 18;
}

/** Workers must be distinguishable, but their ids need not be stored. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}
