import type { Json } from '../json.js';
import { unnamed } from '../paths.js';
import { isObject, objectOf } from '../references.js';
import {
  copied,
  fill,
  givenOf,
  operationsOf,
  pricedOf,
  type Conflict,
  type Draft,
  type DraftOperation,
} from './draft.js';
import { addExamples } from './add-examples.js';
import { addGivenParts, addPaymentParts, fetchedAnswers } from './payment-parts.js';
import { sharedParts } from './shared-parts.js';

const SERVER = "the server's own document";
const REFERRED = 'referred to by a part of the contract';
const DEFAULT = 'the default';

/** The members of a document in the order in which they are written. */
const ORDER = [
  ...['openapi', 'info', 'jsonSchemaDialect', 'servers', 'security', 'externalDocs', 'tags', 'paths'],
  ...['webhooks', 'components'],
];

/**
 * Completes a contract: adds the payment headers and answers of every paid operation, the documents that the server itself answers, the
 * components and tags that they refer to, and examples. Whatever the seller wrote stays as it is, so expanding a complete contract
 * changes nothing.
 */
export function expand(own: Json): Draft {
  const draft: Draft = { document: copied(own) as Json, added: [], conflicts: [] };
  // An empty `paths:` means that the shop sells nothing yet.
  if (own.paths === null) draft.document.paths = {};
  if (!isObject(draft.document.paths)) return draft;
  addDefaults(draft);
  // The seller may refer to parts that the build adds.
  addComponents(draft);
  for (const priced of pricedOf(draft)) addPaymentParts(draft, priced);
  for (const given of givenOf(draft)) addGivenParts(draft, given);
  addOwnDocuments(draft);
  addTags(draft);
  addComponents(draft);
  const whole = { ...draft, document: ordered(draft.document) };
  addExamples(whole);
  return whole;
}

function addDefaults(draft: Draft): void {
  const { document } = draft;
  const { openapi, info, servers, security } = sharedParts();
  fill(draft, document, [], { openapi, info: {}, servers, security }, DEFAULT);
  if (isObject(document.info)) fill(draft, document.info, ['info'], info, DEFAULT);
}

function addOwnDocuments(draft: Draft): void {
  const operations = operationsOf(draft);
  for (const [path, { get }] of Object.entries(sharedParts().paths)) {
    const own = operations.filter(each => isDocument(each.operation, get));
    for (const each of own) completeDocument(draft, each, get);
    if (!own.some(({ operation }) => !isSection(operation))) addDocument(draft, path, get);
  }
}

function addDocument(draft: Draft, path: string, get: Json): void {
  const paths = draft.document.paths as Record<string, unknown>;
  const operations = operationsOf(draft);
  const conflict = nameConflict(operations, String(get.operationId));
  if (conflict) return void draft.conflicts.push(conflict);
  // The seller's own operation at this path wins; the shop then does not serve the document.
  if (operations.some(each => each.method === 'get' && unnamed(each.path) === unnamed(path))) return;
  const whole = copied(get) as Json & { responses: { 200: Json } };
  if (whole['x-answers'] === true)
    Object.assign(whole.responses, fetchedAnswers(draft, whole.responses[200]));
  const known = paths[path];
  if (known === undefined) fill(draft, paths, ['paths'], { [path]: { get: whole } }, SERVER);
  else if (isObject(known)) fill(draft, known, ['paths', path], { get: whole }, SERVER);
}

/** Whether the seller's operation has the name of one of the server's documents. */
function nameConflict(operations: DraftOperation[], id: string): Conflict | undefined {
  const named = operations.find(({ operation }) => operation.operationId === id);
  return (
    named && {
      path: [...named.at, 'operationId'],
      message: `${id} is the name of one of the server's own documents: choose another operationId`,
    }
  );
}

/** Completes a document of the server that the seller has moved to another path or described only in part. */
function completeDocument(draft: Draft, { at, operation }: DraftOperation, get: Json): void {
  if ('x-price' in operation)
    return void draft.conflicts.push({
      path: [...at, 'x-price'],
      message: `${String(operation.operationId)} is the name of one of the server's own free documents: remove x-price, or give the operation another operationId`,
    });
  const { responses } = get;
  const members: Json = { ...get, responses: {} };
  delete members.operationId;
  fill(draft, operation, at, members, SERVER);
  if (isObject(operation.responses))
    fill(draft, operation.responses, [...at, 'responses'], responses as Json, SERVER);
}

/** Whether the seller's operation is the server's document, or a document of the same kind for some of the operations. */
function isDocument(operation: Json, get: Json): boolean {
  if (get['x-answers'] === true) return operation['x-answers'] === true;
  return operation.operationId === get.operationId || SECTIONS[String(get.operationId)]?.(operation) === true;
}

/** The documents that list some of the operations, and the one that lists all of them. */
const SECTIONS: Record<string, ((operation: Json) => boolean) | undefined> = {
  getDiscovery: operation => 'x-discovery' in operation,
  getHealth: operation => 'x-health' in operation,
};

function isSection(operation: Json): boolean {
  return 'x-discovery' in operation || 'x-health' in operation;
}

function addTags(draft: Draft): void {
  const { document } = draft;
  const { tags = [] } = document;
  if (!Array.isArray(tags)) return;
  const declared = new Set(tags.map(tag => objectOf(tag).name));
  const used = operationsOf(draft).flatMap(({ operation }) =>
    Array.isArray(operation.tags) ? operation.tags.map(String) : [],
  );
  const missing = [...new Set(used)].filter(name => !declared.has(name));
  if (missing.length === 0) return;
  const shared = sharedParts().tags;
  const added = missing.map(
    name => shared.find(tag => tag.name === name) ?? { name, description: `Operations tagged ${name}.` },
  );
  document.tags = [...(tags as unknown[]), ...added];
  for (const [index] of added.entries())
    draft.added.push({ path: ['tags', String(tags.length + index)], why: 'a tag of an operation' });
}

const REFERENCE = /"#\/components\/([\w-]+)\/([\w.-]+)"/g;

/** Adds the shared components that are referred to, and the components these refer to. */
function addComponents(draft: Draft): void {
  const { document } = draft;
  const { components: shared } = sharedParts();
  let open: unknown = document;
  while (open !== undefined) {
    const before = draft.added.length;
    for (const [, kind = '', name = ''] of JSON.stringify(open).matchAll(REFERENCE)) {
      const part = shared[kind]?.[name];
      if (part === undefined) continue;
      const known = memberOf(memberOf(document, 'components'), kind);
      fill(draft, known, ['components', kind], { [name]: part }, REFERRED);
    }
    const more = draft.added.slice(before).map(({ path: [, kind = '', name = ''] }) => shared[kind]?.[name]);
    open = more.length > 0 ? more : undefined;
  }
}

/** A member that is an object; a missing or unusable one is replaced by an empty object. */
function memberOf(parent: Json, key: string): Json {
  const known = parent[key];
  if (isObject(known)) return known;
  const made = {};
  parent[key] = made;
  return made;
}

function ordered(document: Json): Json {
  const known = ORDER.filter(key => key in document);
  const others = Object.keys(document).filter(key => !ORDER.includes(key));
  return Object.fromEntries([...known, ...others].map(key => [key, document[key]]));
}
