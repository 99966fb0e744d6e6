import { createHash } from 'node:crypto';
import { classify } from './classify.js';
import type { Reply } from './people.js';
import { isJson, type Json } from './rapidata-api.js';
import { tidyReply } from './reply-text.js';

/** Bounds the work on a result file; more than 50 replies are never asked for. */
const MAX_ENTRIES = 1_000;
const TEXT_FIELDS = ['answer', 'text', 'response', 'value', 'votedFor'];
const WORKER_FIELDS = ['userId', 'workerId', 'labelerId', 'id'];

/**
 * The replies of a result file (`results[].detailedResults[]`, each with the text and `userDetails`), as the book takes them.
 * Left out: empty texts, and people whose age group is known to begin below 18. Sentiments are inferred from the texts.
 * The published schemas leave the file untyped and its documentation shows choices only, so the text is looked for under
 * each of the names in use. Files differ in whether they name the worker; without a name, text and details tell two apart.
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
  const text = tidyReply(textOf(entry));
  if (text === '' || isMinor(details['age'])) return [];
  const worker = idOf(details) ?? idOf(entry) ?? digest(JSON.stringify([text, details]));
  const respondent = `rapidata-${worker}`;
  const id = digest(`${questionId} ${respondent}`);
  return [{ id, text, sentiment: classify(text), respondent, inferred: true, isSample: false }];
}

function textOf(entry: Json): string {
  for (const name of TEXT_FIELDS) {
    const value = entry[name];
    if (typeof value === 'string') return value;
    if (isJson(value) && typeof value['answer'] === 'string') return value['answer'];
  }
  return '';
}

/** Age groups are written `0-17`, `18-29`, `65+`, `Unknown`. */
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

/** We need to tell workers apart, not to know them. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}
