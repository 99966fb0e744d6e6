import type { Json } from '../json.js';
import { kindOf } from '../read-answers.js';
import { isObject, objectOf, resolved } from '../references.js';
import { copied, fill, pricedOf, type Conflict, type Draft, type DraftOperation } from './draft.js';
import { sharedParts } from './shared-parts.js';

const FOR_PAYMENT = 'every paid operation takes its payment there';
const FOR_WAITING = 'a call that is paid up front may say how long it waits';
const FOR_FAILURES = 'every paid call may be answered this way';
const FOR_RECEIPTS = 'every paid answer has it';
const FOR_READERS = 'for the pages and documents that list it';

const PARAMETERS = ['PAYMENT-SIGNATURE', 'X-PAYMENT', 'x402Version'];
const HEADERS = ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE', 'Location', 'X-Request-Id'];
const ANSWERS = {
  400: 'InvalidRequest',
  402: 'PaymentRequired',
  502: 'UpstreamFailed',
  503: 'Unavailable',
};

/** Adds to an operation with a price what it takes and answers for its payment, and a summary and a tag if it has none. */
export function addPaymentParts(draft: Draft, priced: DraftOperation): void {
  const { at, operation } = priced;
  addParameters(draft, priced);
  addAnswers(draft, priced);
  const { operationId } = operation;
  if (typeof operationId !== 'string') return;
  fill(draft, operation, at, { tags: ['Operations'], summary: wordsOf(operationId) }, FOR_READERS);
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

/** Names of headers have no case. */
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
  const sold = responses['200'];
  if (isObject(sold)) responses['200'] = withReceipt(draft, sold, [...place, '200']);
}

/** What is sold, with the headers of its receipt. A reference to a response is replaced by that response, if it lacks any of them. */
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

/** The content of every answer that is sold, as it can be fetched by its key. */
export function soldContent(draft: Draft): Json {
  const { document } = draft;
  const sold = pricedOf(draft).flatMap(({ operation }) =>
    Object.entries(objectOf(resolved(document, objectOf(operation.responses)['200']).content)),
  );
  const json = sold.filter(([type]) => kindOf(type) === 'json');
  const objects = json.every(([, media]) => resolved(document, objectOf(media).schema).type === 'object');
  const any = { description: 'The answer of any paid operation.' };
  const schemas = {
    json: objects ? reference('schemas', 'PaidAnswer') : any,
    text: { type: 'string' },
    binary: { type: 'string', format: 'binary' },
  };
  const types = sold.length > 0 ? sold.map(([type]) => type) : ['application/json'];
  return Object.fromEntries(types.map(type => [type, { schema: schemas[kindOf(type)] }]));
}

function reference(kind: string, name: string): Json {
  return { $ref: `#/components/${kind}/${name}` };
}
