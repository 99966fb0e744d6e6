import { createHash } from 'node:crypto';
import { looksLikeGibberish } from './gibberish.js';
import { readMark } from './opinion-mark.js';
import { tidyReply } from './reply-text.js';
import { isJson, type Json } from './rapidata-api.js';
import type { Reply } from './replies.js';

/** Limits the work on one result file. */
const MAX_ENTRIES = 1_000;
const TEXT_FIELDS = ['answer', 'text', 'response', 'value', 'votedFor'];
const WORKER_FIELDS = ['userId', 'workerId', 'labelerId', 'id'];

/**
 * The replies of a result file (`results[].detailedResults[]`, each with the text and `userDetails`). Empty texts are left out,
 * and so are people whose age group begins below 18. The opinion is the mark that people were asked to begin with. The published
 * schemas do not type this file and its documentation shows only multiple-choice results, so the text is looked up under several field
 * names. Some files do not identify the worker; then two replies are the same if their text and details are.
 */
export function readResults(questionId: string, file: Json): Reply[] {
  const results = Array.isArray(file['results']) ? (file['results'] as unknown[]) : [];
  const entries = results.filter(isJson).flatMap(result => {
    const detailed = result['detailedResults'];
    return Array.isArray(detailed) ? detailed.filter(isJson) : [];
  });
  return entries.slice(0, MAX_ENTRIES).flatMap(entry => readEntry(questionId, entry));
}

function readEntry(questionId: string, entry: Json): Reply[] {
  const details = isJson(entry['userDetails']) ? entry['userDetails'] : {};
  const { text, sentiment } = readMark(tidyReply(textOf(entry)));
  if (text === '' || isMinor(details['age'])) return [];
  const worker = idOf(details) ?? idOf(entry) ?? digest(JSON.stringify([text, details]));
  const respondent = `rapidata-${worker}`;
  const id = digest(`${questionId} ${respondent}`);
  return [{ id, text, sentiment, respondent, isSample: false, isHeld: looksLikeGibberish(text) }];
}

function textOf(entry: Json): string {
  for (const name of TEXT_FIELDS) {
    const value = entry[name];
    if (typeof value === 'string') return value;
    if (isJson(value) && typeof value['answer'] === 'string') return value['answer'];
  }
  return '';
}

/** Age groups have the form `0-17`, `18-29`, `65+`, `Unknown`. */
function isMinor(age: unknown): boolean {
  const from = typeof age === 'number' ? age : Number.parseInt(typeof age === 'string' ? age : '', 10);
  return Number.isFinite(from) && from < 18;
}

function idOf(json: Json): string | undefined {
  for (const name of WORKER_FIELDS) {
    const value = json[name];
    if (typeof value === 'string' && value !== '') return digest(value);
    if (typeof value === 'number') return digest(String(value));
  }
  return undefined;
}

/** Workers must be distinguishable, but their ids need not be stored. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}
