import type { Json } from './json.js';
import { exampleOf, type Fault } from './read-parameters.js';
import type { AnswerCheck } from './read-upstream.js';
import { follow, isObject, objectOf } from './references.js';

/** One form of the answer that is sold (status 200). */
export type AnswerForm = {
  mimeType: string;
  kind: 'json' | 'text' | 'binary';
  /** As in the document; absent if any value is right. */
  schema?: Json;
  example?: unknown;
};

/** The forms of an answer; the first is the one that it has unless it says otherwise. */
export type AnswerForms = [AnswerForm, ...AnswerForm[]];

/** What an unchecked answer is, as far as its contract says. */
const ANYTHING: AnswerForm = { mimeType: 'application/octet-stream', kind: 'binary' };
const CONTENT = 'content: { application/json: { schema: { type: object } } }';
const UNCHECKED = 'an operation that sells whatever its API answers has x-upstream: { check: none }';

/** Reads the forms of the answer that is sold. @param check what its upstream's answers must conform to */
export function readAnswers(
  document: Json,
  response: unknown,
  check: AnswerCheck,
  place: string[],
  fault: Fault,
): AnswerForms | undefined {
  const content = Object.entries(objectOf(follow(document, response).content));
  const [wild, named] = [content.filter(isRange), content.filter(each => !isRange(each))];
  const unchecked = check === 'none';
  if (!unchecked)
    for (const [range] of wild) fault(place, `must name a content type, not ${range}; ${UNCHECKED}`);
  const [first = unchecked ? ANYTHING : undefined, ...others] = named.map(([mimeType, media]) =>
    readForm(document, mimeType, objectOf(media)),
  );
  if (first) return [first, ...others];
  if (wild.length === 0) fault(place, `must have content, which is what is sold: ${CONTENT}; ${UNCHECKED}`);
  return undefined;
}

function isRange([mimeType]: [string, unknown]): boolean {
  return mimeType.includes('*');
}

function readForm(document: Json, mimeType: string, media: Json): AnswerForm {
  const { schema } = media;
  const example = exampleOf(document, media);
  return {
    mimeType,
    kind: kindOf(mimeType),
    ...(isObject(schema) ? { schema } : {}),
    ...(example === undefined ? {} : { example }),
  };
}

/** How the body of an answer is written. */
export function kindOf(mimeType: string): AnswerForm['kind'] {
  const [type = ''] = mimeType.split(';', 1);
  if (/^application\/(json|[\w.-]+\+json)$/i.test(type.trim())) return 'json';
  return /^text\//i.test(type.trim()) ? 'text' : 'binary';
}
