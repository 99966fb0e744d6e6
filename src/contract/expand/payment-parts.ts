import type { Json } from '../json.js';
import { kindOf } from '../read-answers.js';
import { isObject, objectOf, resolved } from '../references.js';
import { copied, fill, pricedOf, type Conflict, type Draft, type DraftOperation } from './draft.js';
import { SOLD_STATUSES } from '../sold-status.js';
import { sharedParts } from './shared-parts.js';

const FOR_PAYMENT = 'every paid operation takes its payment in these parameters';
const FOR_WAITING = 'a call that is paid up front may say how long it waits';
const FOR_FAILURES = 'every paid call may be answered this way';
const FOR_RECEIPTS = 'every paid answer has this header';
const FOR_READERS = 'used by the pages and documents that list it';

const PARAMETERS = ['PAYMENT-SIGNATURE', 'X-PAYMENT', 'x402Version'];
const HEADERS = ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE', 'Answer-Receipt', 'Location', 'X-Request-Id'];
const ANSWERS = {
  400: 'InvalidRequest',
  402: 'PaymentRequired',
  502: 'UpstreamFailed',
  503: 'Unavailable',
};

/** Adds the payment's headers and answers to an operation with a price, and a summary and a tag if it has none. */
export function addPaymentParts(draft: Draft, priced: DraftOperation): void {
  const { at, operation } = priced;
  addParameters(draft, priced);
  inlineBody(draft, operation);
  addAnswers(draft, priced);
  const { operationId } = operation;
  if (typeof operationId !== 'string') return;
  fill(draft, operation, at, { tags: ['Operations'], summary: wordsOf(operationId) }, FOR_READERS);
}

/** Adds the errors to a free operation that an API serves, and a summary and a tag if it has none. */
export function addGivenParts(draft: Draft, { at, operation }: DraftOperation): void {
  inlineBody(draft, operation);
  const { responses = {}, operationId } = operation;
  if (!isObject(responses)) return;
  operation.responses = responses;
  const place = [...at, 'responses'];
  const failures = Object.entries(ANSWERS).filter(([status]) => status !== '402');
  for (const [status, name] of failures)
    fill(
      draft,
      responses,
      place,
      { [status]: reference('responses', name) },
      'every call may be answered this way',
    );
  if (soldOf(operation).length === 0) nameSuccess(draft, responses, place);
  if (typeof operationId !== 'string') return;
  fill(draft, operation, at, { tags: ['Operations'], summary: wordsOf(operationId) }, FOR_READERS);
}

/** Discovery crawlers skip the whole document if a requestBody is a reference, so it is resolved. */
function inlineBody({ document }: Draft, operation: Json): void {
  const { requestBody } = operation;
  if (typeof objectOf(requestBody).$ref !== 'string') return;
  const whole = resolved(document, requestBody);
  if (Object.keys(whole).length > 0) operation.requestBody = copied(whole);
}

/** getPet → Get pet, list_all_pets → List all pets */
function wordsOf(operationId: string): string {
  const words = operationId
    .replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .replace(/[-_.\s]+/g, ' ')
    .trim()
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function addParameters(draft: Draft, { at, item, operation }: DraftOperation): void {
  const { document } = draft;
  const { parameters = [] } = operation;
  if (!Array.isArray(parameters)) return;
  const declared = [item.parameters, parameters].flat().map(each => resolved(document, each));
  const flow = objectOf(operation['x-price']).flow;
  const names = [...PARAMETERS, ...(flow === 'upfront' ? ['Prefer'] : [])];
  const list = [...(parameters as unknown[])];
  for (const name of names) {
    const shared = objectOf(sharedParts().components.parameters?.[name]);
    const own = declared.find(each => keyOf(each) === keyOf(shared));
    if (own?.required === true) draft.conflicts.push(requiredConflict([...at, 'parameters'], name));
    if (own) continue;
    draft.added.push({
      path: [...at, 'parameters', String(list.length)],
      why: name === 'Prefer' ? FOR_WAITING : FOR_PAYMENT,
    });
    list.push(reference('parameters', name));
  }
  if (list.length > parameters.length) operation.parameters = list;
}

function requiredConflict(path: string[], name: string): Conflict {
  const message = `${name} must not be required, because a call without a payment is answered with its price: remove required: true, or the parameter, which the build adds`;
  return { path, message };
}

/** Header names are case-insensitive. */
function keyOf({ name, in: where }: Json): string {
  return `${String(where)} ${where === 'header' ? String(name).toLowerCase() : String(name)}`;
}

function addAnswers(draft: Draft, { at, operation }: DraftOperation): void {
  const place = [...at, 'responses'];
  if (operation.responses === undefined) operation.responses = {};
  const { responses } = operation;
  if (!isObject(responses)) return;
  for (const [status, name] of Object.entries(ANSWERS))
    fill(draft, responses, place, { [status]: reference('responses', name) }, FOR_FAILURES);
  if (soldOf(operation).length === 0) nameSuccess(draft, responses, place);
  for (const [status, sold] of soldOf(operation))
    responses[status] = withReceipt(draft, sold, [...place, status]);
}

/** The answers of an operation that are sold, by status. */
export function soldOf({ responses }: Json): [status: string, answer: Json][] {
  return SOLD_STATUSES.flatMap((status): [string, Json][] => {
    const answer = objectOf(responses)[status];
    return isObject(answer) ? [[String(status), answer]] : [];
  });
}

/** A response declared for 2XX or `default` is sold with status 200. */
function nameSuccess(draft: Draft, responses: Json, place: string[]): void {
  const general = ['2XX', 'default'].find(status => isObject(responses[status]));
  if (general === undefined) return;
  fill(
    draft,
    responses,
    place,
    { 200: responses[general] },
    `the response declared for ${general}, as status 200`,
  );
}

/** The sold answer with the receipt headers. A reference to a response that lacks any of them is replaced by a copy of that response. */
function withReceipt(draft: Draft, sold: Json, at: string[]): Json {
  const whole = resolved(draft.document, sold);
  const own = new Set(Object.keys(objectOf(whole.headers)).map(name => name.toLowerCase()));
  const missing = HEADERS.filter(name => !own.has(name.toLowerCase()));
  const leadsNowhere = '$ref' in sold && Object.keys(whole).length === 0;
  if (leadsNowhere || (missing.length === 0 && 'description' in whole)) return sold;
  const headers = copied(objectOf(whole.headers)) as Json;
  const answer = { description: 'The answer.', ...(copied(whole) as Json), headers };
  if (!('description' in whole)) draft.added.push({ path: [...at, 'description'], why: FOR_READERS });
  const more = Object.fromEntries(missing.map(name => [name, reference('headers', name)]));
  fill(draft, headers, [...at, 'headers'], more, FOR_RECEIPTS);
  return answer;
}

/** The declared answers of the pick-up operation, by status. Each has the contents of all answers sold with that status. */
export function fetchedAnswers(draft: Draft, answer: Json): Json {
  const sold = pricedOf(draft).flatMap(({ operation }) => soldOf(operation).map(([status]) => status));
  return Object.fromEntries(
    ['200', ...sold].map(status => {
      const content = soldContent(draft, status);
      const whole = { ...(copied(answer) as Json), ...(Object.keys(content).length > 0 ? { content } : {}) };
      return [status, whole];
    }),
  );
}

function soldContent(draft: Draft, status: string): Json {
  const { document } = draft;
  const sold = pricedOf(draft).flatMap(({ operation }) =>
    Object.entries(objectOf(resolved(document, objectOf(operation.responses)[status]).content)),
  );
  const json = sold.filter(([type]) => kindOf(type) === 'json');
  const objects = json.every(([, media]) => resolved(document, objectOf(media).schema).type === 'object');
  const any = { description: 'The answer of any paid operation.' };
  const schemas = {
    json: objects ? reference('schemas', 'PaidAnswer') : any,
    text: { type: 'string' },
    binary: { type: 'string', format: 'binary' },
    none: {},
  };
  const types = sold.length > 0 || status !== '200' ? sold.map(([type]) => type) : ['application/json'];
  return Object.fromEntries(types.map(type => [type, { schema: schemas[kindOf(type)] }]));
}

function reference(kind: string, name: string): Json {
  return { $ref: `#/components/${kind}/${name}` };
}
