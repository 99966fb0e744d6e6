import { pathToFileURL } from 'node:url';
import { METHODS } from '../contract.js';
import { sharedParts } from '../expand/shared-parts.js';
import type { Json } from '../json.js';
import { PICK_UP } from '../reserved-names.js';
import { isObject, objectOf } from '../references.js';
import { risingFrom } from '../../price/price-by.js';
import { Api, infoOf, readSecret, type Asked } from './api-of.js';
import { copyOperation, type Copied, type Found } from './copy-operation.js';
import { cut, SchemaCopies } from './copy-schema.js';
import {
  matches,
  readPattern,
  readPriceRule,
  readRisingRule,
  ruleFor,
  type Named,
  type RisingRule,
} from './price-rules.js';
import { settle, type Candidate } from './what-sells.js';
import { ImportFault, LeftOut, readSource, type Load, type Source } from './source-document.js';

export type ImportOptions = {
  /** The document's address; references and servers may be relative to it. */
  at?: URL;
  /** The address of the API; default: the first server of the document. May begin with `${NAME}`. */
  upstream?: string;
  /** `<pattern>=<USD>`; see price-rules.ts. An operation without a price is not sold. */
  prices: readonly string[];
  /** `<pattern>=<rule>`: rules by which the price rises with a value in the call. */
  pricesBy?: readonly string[];
  flow?: 'authorization' | 'upfront';
  /** Patterns; operations that match none are ignored. */
  only?: readonly string[];
  /** `<header>=<value with ${NAME}>` */
  secrets?: readonly string[];
  /** Reads further files; without it, only the document itself is read. */
  load?: Load;
};

/** An operation of the document, and whether it is for sale. */
export type Row = {
  method: string;
  path: string;
  id: string;
  price?: string;
  /** Why it is not for sale; absent if it is. */
  leftOut?: string;
  notes: string[];
};

export type Imported = {
  contract: Json;
  table: Row[];
  /** The environment variables that the shop needs. */
  asked: Asked[];
  /** Notes about changes, for the seller. */
  notes: string[];
};

const MAX_OPERATIONS = 5_000;
const MAX_ID = 64;
/** A method of OpenAPI 3.2. */
const OTHER_METHODS = ['query'];

type Sold = Candidate & { row: Row; credentials: Copied['credentials'] };

/**
 * Makes a contract from an OpenAPI document. It sells the operations that can be sold; the API serves them.
 * @param text of the document: Swagger 2.0, or OpenAPI 3.0 to 3.2, in JSON or YAML
 * @throws ImportFault if there is nothing to sell. Its message is for the seller.
 */
export async function importContract(text: string, options: ImportOptions): Promise<Imported> {
  const { at = pathToFileURL('/openapi.json'), load = noFiles } = options;
  return contractOf(await readSource(text, at, load), { ...options, at });
}

const noFiles: Load = () => Promise.reject(new Error('only the document itself is read'));

/**
 * Like importContract, for a document that was already read.
 * @param options with `kept`, the document itself has the prices and says how each operation is served
 */
export async function contractOf(
  source: Source,
  options: ImportOptions & { at: URL; kept?: true },
): Promise<Imported> {
  const rules = options.prices.map(readPriceRule);
  const rising = (options.pricesBy ?? []).map(readRisingRule);
  const only = options.only?.map(readPattern);
  const secrets = Object.fromEntries((options.secrets ?? []).map(readSecret));
  const api = new Api(source, { ...options, secrets });
  const schemas = new SchemaCopies(source);
  const ids = new Ids();
  const table: Row[] = [];
  const candidates: Sold[] = [];
  const unused = new Set([...rules, ...rising]);
  const all: Named[] = [];
  for (const found of operationsOf(source)) {
    const named = namedOf(found);
    const row: Row = { method: named.method, path: found.path, id: ids.idOf(found), notes: [] };
    named.ids = [...named.ids, row.id];
    for (const rule of unused) if (matches(rule.pattern, named)) unused.delete(rule);
    all.push(named);
    if (only && !only.some(pattern => matches(pattern, named))) continue;
    table.push(row);
    try {
      const choice = { ...options, price: ruleFor(rules, named)?.amount, by: ruleFor(rising, named)?.by };
      candidates.push(candidateOf({ source, api, schemas }, found, row, choice));
    } catch (error) {
      if (!(error instanceof LeftOut)) throw error;
      row.leftOut = error.message;
    }
  }
  leaveOutRepeated(candidates);
  const open = candidates.filter(({ row }) => row.leftOut === undefined);
  const documentOf = (sold: readonly Sold[]): Json =>
    assembled(source.document, options.at, sold, schemas.schemas);
  for (const [{ row }, why] of await settle(open, documentOf)) row.leftOut = why;
  const sold = open.filter(({ row }) => row.leftOut === undefined);
  table.push(...webhooksOf(source.document));
  return {
    contract: documentOf(sold),
    table,
    asked: askedBy(sold),
    notes: [...schemas.notes, ...notesOf(unused), ...unmatched(only ?? [], all)],
  };
}

/** A mistyped pattern would otherwise sell its operations at the price of a more general one. */
function notesOf(unused: Iterable<{ pattern: string }>): string[] {
  return Array.from(unused, ({ pattern }) => `no operation matches the price for '${pattern}'`);
}

function unmatched(only: readonly string[], all: readonly Named[]): string[] {
  return only
    .filter(pattern => !all.some(named => matches(pattern, named)))
    .map(pattern => `no operation matches --only '${pattern}'`);
}

type Choice = {
  price: string | undefined;
  by: RisingRule['by'] | undefined;
  flow?: 'authorization' | 'upfront';
  kept?: true;
};

function candidateOf(
  parts: { source: Source; api: Api; schemas: SchemaCopies },
  found: Found,
  row: Row,
  { price, by, flow = 'authorization', kept }: Choice,
): Sold {
  const { method, item, operation } = found;
  if (OTHER_METHODS.includes(method)) throw new LeftOut(`${row.method} is not a method that can be sold`);
  const { 'x-price': ownPrice } = operation;
  const { amount, mode } = objectOf(ownPrice);
  const least = price ?? [amount, mode].find(each => typeof each === 'string');
  const shown = price !== undefined && by ? `${price} to ${by.max}` : least;
  if (shown !== undefined) row.price = shown;
  if (price === undefined && ownPrice === undefined)
    throw new LeftOut(`has no price: --price '${row.method} ${row.path}=0.01'`);
  const copied = copyOperation(parts, found);
  row.notes = copied.notes;
  const { summary, description, tags, ...called } = copied.operation;
  const own = parts.api.ownUpstreamOf(operation);
  if ('x-upstream' in operation && own === undefined)
    copied.notes.push('without its x-upstream: --upstream says where the API is');
  const upstream = own ?? (kept ? undefined : upstreamOf(parts.api.addressOf(item, operation), copied));
  const words = { summary, description, tags };
  const whole = {
    operationId: row.id,
    ...Object.fromEntries(Object.entries(words).filter(([, each]) => each !== undefined)),
    'x-price': price === undefined ? ownPrice : { ...priced(price, by), currency: 'USD', flow },
    ...(upstream === undefined ? {} : { 'x-upstream': upstream }),
    ...called,
  };
  const { path, notes, credentials } = copied;
  return { path, method, operation: whole, notes, credentials, row };
}

function priced(least: string, by: RisingRule['by'] | undefined): Json {
  return by ? risingFrom(least, by) : { mode: 'fixed', amount: least };
}

function upstreamOf(address: string, { path, credentials: { headers, query } }: Copied): Json {
  const sent = Object.entries(query).map(([name, value]) => `${encodeURIComponent(name)}=${value}`);
  return {
    url: `${address}${path}${sent.length > 0 ? `?${sent.join('&')}` : ''}`,
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
  };
}

/** All operations, in the order of the document. @throws ImportFault if there are none, or too many */
function operationsOf(source: Source): Found[] {
  const { paths } = source.document;
  if (!isObject(paths) || Object.keys(paths).length === 0)
    throw new ImportFault('The document has no paths, so there is nothing to sell.');
  const found = Object.entries(paths).flatMap(([path, value]) => {
    const item = itemOf(source, value);
    const methods = [...METHODS, ...OTHER_METHODS].filter(method => isObject(item[method]));
    return methods.map((method): Found => ({ path, method, item, operation: objectOf(item[method]) }));
  });
  if (found.length > MAX_OPERATIONS)
    throw new ImportFault(
      `The document has ${found.length} operations; at most ${MAX_OPERATIONS} are allowed.`,
    );
  return found;
}

function itemOf(source: Source, value: unknown): Json {
  try {
    return source.follow(value);
  } catch (error) {
    if (error instanceof LeftOut) return {};
    throw error;
  }
}

function namedOf({ method, path, operation }: Found): Named & { ids: string[] } {
  const { tags, operationId } = operation;
  return {
    method: method.toUpperCase(),
    path,
    tags: Array.isArray(tags) ? tags.map(String) : [],
    ids: typeof operationId === 'string' ? [operationId] : [],
  };
}

/** Unique names of operations, none of which the server uses itself. */
class Ids {
  readonly #taken = new Set([
    PICK_UP,
    ...Object.values(sharedParts().paths).map(({ get }) => get.operationId),
  ]);

  idOf({ method, path, operation }: Found): string {
    const { operationId } = operation;
    const own = typeof operationId === 'string' ? operationId.replace(/[^\w-]+/g, '_').slice(0, MAX_ID) : '';
    const name = /\w/.test(own) ? own : `${method}${wordsOf(path)}`.slice(0, MAX_ID);
    let free = name;
    for (let number = 2; this.#taken.has(free); number++) free = `${name}${number}`;
    this.#taken.add(free);
    return free;
  }
}

/** /pets/{petId} → PetsPetId */
function wordsOf(path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter(Boolean);
  return words.map(word => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

/** Leaves out paths that differ only in the names of their parameters, because one call would match both. */
function leaveOutRepeated(candidates: readonly Sold[]): void {
  const seen = new Map<string, Sold>();
  for (const each of candidates) {
    const key = `${each.method} ${each.path.replace(/\{[^{}/]+\}/g, '{}')}`;
    const other = seen.get(key);
    if (other) each.row.leftOut = `is the same path as ${other.row.path}`;
    else seen.set(key, each);
  }
}

function webhooksOf({ webhooks }: Json): Row[] {
  return Object.keys(objectOf(webhooks)).map(name => ({
    method: 'WEBHOOK',
    path: name,
    id: name,
    leftOut: 'is a call that the API makes itself, so no buyer pays for it',
    notes: [],
  }));
}

/** Lists each variable once, even if many operations need it. */
function askedBy(sold: readonly Sold[]): Asked[] {
  const all = sold.flatMap(({ credentials }) => credentials.asked);
  return [...new Map(all.map(each => [each.variable, each])).values()];
}

const REFERENCE = /"#\/components\/schemas\/([\w.-]+)"/g;

/** The contract that sells these operations, with the schemas they refer to. */
function assembled(document: Json, at: URL, sold: readonly Sold[], all: Record<string, unknown>): Json {
  const paths: Record<string, Json> = {};
  for (const { path, method, operation } of sold) paths[path] = { ...paths[path], [method]: operation };
  const used = new Set<string>();
  const open: unknown[] = [paths];
  while (open.length > 0)
    for (const [, name = ''] of JSON.stringify(open.pop()).matchAll(REFERENCE))
      if (!used.has(name) && Object.hasOwn(all, name)) {
        used.add(name);
        open.push(all[name]);
      }
  const schemas = Object.fromEntries(Object.entries(all).filter(([name]) => used.has(name)));
  const tags = tagsOf(document, sold);
  return {
    openapi: '3.1.0',
    info: infoOf(document, at),
    ...(tags.length > 0 ? { tags } : {}),
    paths,
    ...(used.size > 0 ? { components: { schemas } } : {}),
  };
}

/** The document's descriptions of the tags of sold operations. */
function tagsOf({ tags }: Json, sold: readonly Sold[]): Json[] {
  const used = new Set(sold.flatMap(({ operation }) => (operation.tags as string[] | undefined) ?? []));
  const all = Array.isArray(tags) ? tags.map(objectOf) : [];
  return all.flatMap(({ name, description }) => {
    if (typeof name !== 'string' || !used.delete(name)) return [];
    return [{ name, ...(typeof description === 'string' ? { description: cut(description) } : {}) }];
  });
}
