import type { Json } from './json.js';
import { exampleOf, type Fault } from './read-parameters.js';
import type { AnswerCheck } from './read-upstream.js';
import { follow, isObject, objectOf } from './references.js';
import { SOLD_STATUSES, type SoldStatus } from './sold-status.js';

/** One form of an answer. */
export type Form = {
  /** Empty if there is no body. */
  mimeType: string;
  kind: 'json' | 'text' | 'binary' | 'none';
  /** As in the document; absent if any value is allowed. */
  schema?: Json;
  example?: unknown;
};

/** One form of the answer that is sold. */
export type AnswerForm = Form & { status: SoldStatus };

/** The forms of an answer; the first one of a status is the default. */
export type AnswerForms = [AnswerForm, ...AnswerForm[]];

/** The form of an unchecked answer whose contract declares no content type. */
const ANYTHING: Form = { mimeType: 'application/octet-stream', kind: 'binary' };
const NOTHING: Form = { mimeType: '', kind: 'none' };
const CONTENT = 'content: { application/json: { schema: { type: object } } }';
const NO_STREAMS =
  "which can't be sold as one call: declare an answer that is sent as a whole, such as application/json, or leave the operation out";
const UNCHECKED = 'an operation that sells whatever its API answers has x-upstream: { check: none }';

/**
 * Reads the forms of the sold answer for every success status that the operation declares.
 * @param check what its upstream's answers must conform to
 * @param at the place of the responses
 */
export function readAnswers(
  document: Json,
  responses: Json,
  check: AnswerCheck,
  at: string[],
  fault: Fault,
): AnswerForms | undefined {
  const declared = SOLD_STATUSES.filter(status => Object.hasOwn(responses, status));
  const forms = declared.flatMap(status => {
    const place = [...at, String(status)];
    const content = objectOf(follow(document, responses[status]).content);
    const own = status === 204 ? [NOTHING] : readForms(document, { status, content, check }, place, fault);
    return own.map((form): AnswerForm => ({ status, ...form }));
  });
  if (declared.length === 0 && '101' in responses)
    fault([...at, '101'], `answers a websocket, ${NO_STREAMS}`);
  else if (declared.length === 0)
    fault(
      at,
      `must declare 200, which is what is sold: '200': { ${CONTENT} } (or one of 201, 202, 203 and 204)`,
    );
  const [first, ...others] = forms;
  return first && [first, ...others];
}

/** The answer sold with one status. */
type Declared = { status: SoldStatus; content: Json; check: AnswerCheck };

function readForms(
  document: Json,
  { status, content, check }: Declared,
  place: string[],
  fault: Fault,
): Form[] {
  const all = Object.entries(content);
  const named = all.filter(each => !isRange(each) && !isStream(each[0]));
  const unchecked = check === 'none';
  if (!unchecked)
    for (const [range] of all.filter(isRange))
      fault(place, `must name a content type, not ${range}; ${UNCHECKED}`);
  if (named.length > 0)
    return named.map(([mimeType, media]) => readForm(document, mimeType, objectOf(media)));
  const stream = all.find(([mimeType]) => isStream(mimeType));
  if (stream) fault(place, `answers with a stream (${stream[0]}), ${NO_STREAMS}`);
  if (stream) return [];
  if (unchecked) return [ANYTHING];
  if (status !== 200 && all.length === 0) return [NOTHING];
  if (all.length === 0) fault(place, `must have content, which is what is sold: ${CONTENT}; ${UNCHECKED}`);
  return [];
}

function isRange([mimeType]: [string, unknown]): boolean {
  return mimeType.includes('*');
}

function readForm(document: Json, mimeType: string, media: Json): Form {
  const { schema } = media;
  const example = exampleOf(document, media);
  return {
    mimeType,
    kind: kindOf(mimeType),
    ...(isObject(schema) ? { schema } : {}),
    ...(example === undefined ? {} : { example }),
  };
}

const STREAM =
  /^(text\/event-stream|application\/(x-)?(ndjson|jsonl|json-seq|stream\+json|json-lines)|multipart\/(x-)?mixed.*)$/i;

/** Whether an answer of this type is an endless stream of parts, which a call can't wait for. */
export function isStream(mimeType: string): boolean {
  return STREAM.test((mimeType.split(';', 1)[0] ?? '').trim());
}

/** How the body of an answer is written. */
export function kindOf(mimeType: string): Form['kind'] {
  const [type = ''] = mimeType.split(';', 1);
  if (/^application\/(json|[\w.-]+\+json)$/i.test(type.trim())) return 'json';
  return /^text\//i.test(type.trim()) ? 'text' : 'binary';
}
