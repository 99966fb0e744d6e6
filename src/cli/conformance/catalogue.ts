import { FORM_TYPE, formFields, formText } from '../../contract/form-body.js';
import type { Json } from '../../contract/json.js';
import { readBody } from '../../contract/request-body.js';
import { writtenExample, type WrittenBody } from '../../contract/sent-body.js';
import { call, isObject, jsonOf, textOf, withoutSlash, type Reply } from './http-call.js';
import { exampleOf, follow } from './sample.js';

/** An operation that a shop sells, as its documents describe it. Without documents, only method and URL are known. */
export type Sold = {
  method: string;
  /** The path template in the description or, if there is none, the path of the URL. */
  path: string;
  /** With examples for path parameters and required query parameters. */
  url: string;
  /** The price in USD, as a decimal string. */
  amount?: string;
  /** Examples of required headers. */
  headers?: Record<string, string>;
  /** Example of a body: JSON, or text or bytes of the type in `headers`. */
  body?: unknown;
  /** Schema of a JSON body, with its references resolved one level deep. */
  schema?: Json;
  /** Whether the description offers x402 v1 challenges with the query parameter `x402Version`. */
  v1: boolean;
  /** The operation object of the description. */
  described?: Json;
};

/** A free GET that the description declares and that needs no parameters. */
export type FreeDocument = { path: string; url: string; operation: Json };

/** A shop's description of itself. */
export type Catalogue = {
  /** Without trailing slash. */
  base: string;
  sold: Sold[];
  free: FreeDocument[];
  /** /openapi.json. */
  document?: Json;
  /** /.well-known/x402. */
  discovery?: Json;
  /** The JSON object at /. */
  index?: Json;
};

const NEVER = new AbortController().signal;
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
/** The methods to try, in order, at an address without a description. */
const TRIED = ['POST', 'GET'];

/**
 * Finds what is sold at an address: through /openapi.json and /.well-known/x402 under it, or, if it answers 402 itself, as one operation.
 * Rejects if nothing answers there, and when the signal aborts. A signal is needed because a shop may list any number of addresses.
 */
export async function readCatalogue(url: string, signal: AbortSignal = NEVER): Promise<Catalogue> {
  const base = withoutSlash(url);
  const [openapi, discovery, index] = await Promise.all(
    ['/openapi.json', '/.well-known/x402', '/'].map(path => documentAt(base + path, signal)),
  );
  const document = isObject(openapi?.['paths']) ? openapi : undefined;
  const served = document ? servedAt(document, base) : base;
  const catalogue: Catalogue = {
    base,
    sold: document ? soldIn(document, served) : [],
    free: document ? freeIn(document, served) : [],
  };
  if (document) catalogue.document = document;
  if (discovery && Array.isArray(discovery['resources'])) catalogue.discovery = discovery;
  if (index && isObject(index['endpoints'])) catalogue.index = index;
  await addUndescribed(catalogue, url, signal);
  return catalogue;
}

/** Operations that are listed but not described, or the address itself if nothing is listed. */
async function addUndescribed(
  { base, sold, document, discovery }: Catalogue,
  url: string,
  signal: AbortSignal,
): Promise<void> {
  for (const resource of resourcesOf(discovery)) {
    if (!sold.some(operation => isResourceOf(operation, base, resource)))
      sold.push(await soldAt(resource, signal));
  }
  if (sold.length || document) return;
  const itself = await soldAt(url, signal);
  if (itself.method) sold.push(itself);
}

/** The base URL of the described paths: the first server of the description, if it is on this host. */
function servedAt(document: Json, base: string): string {
  const url = serverOf(document, base);
  return url !== undefined && new URL(url).origin === new URL(base).origin ? withoutSlash(url) : base;
}

/** The first server that the description names, as an absolute URL. */
export function serverOf({ servers }: Json, base: string): string | undefined {
  const [first] = listOf(servers);
  const url = isObject(first) && typeof first['url'] === 'string' ? first['url'] : undefined;
  return url !== undefined && URL.canParse(url, `${base}/openapi.json`)
    ? new URL(url, `${base}/openapi.json`).href
    : undefined;
}

async function documentAt(url: string, signal: AbortSignal): Promise<Json | undefined> {
  const reply = await call(url, { headers: { accept: 'application/json' }, signal });
  if (reply.status !== 200) return undefined;
  try {
    return jsonOf(reply);
  } catch {
    return undefined;
  }
}

/** The URLs that a discovery document lists; some shops list objects. */
export function resourcesOf(discovery: Json | undefined): string[] {
  const resources = Array.isArray(discovery?.['resources']) ? (discovery['resources'] as unknown[]) : [];
  return resources
    .map(entry => (isObject(entry) ? (entry['url'] ?? entry['resource']) : entry))
    .filter(entry => typeof entry === 'string')
    .map(entry => entry.replace(/^[A-Z]+ /, ''))
    .filter(entry => URL.canParse(entry));
}

/** Whether a listed URL is this operation, even if its path parameters are filled in. */
export function isResourceOf({ path, url }: Sold, base: string, resource: string): boolean {
  const [plain = ''] = resource.split('?');
  if (plain === url.split('?')[0] || plain === base + path) return true;
  if (!path.includes('{') || !plain.startsWith(`${base}/`)) return false;
  const parts = plain.slice(base.length).split('/');
  const template = path.split('/');
  return (
    parts.length === template.length && template.every((part, at) => part.includes('{') || part === parts[at])
  );
}

async function soldAt(url: string, signal: AbortSignal): Promise<Sold> {
  const path = new URL(url).pathname;
  for (const method of TRIED) {
    signal.throwIfAborted();
    const reply = await call(url, { ...unpaid(method), signal }).catch((): Reply | undefined => undefined);
    if (reply?.status === 402) return { method, path, url, v1: false };
  }
  return { method: '', path, url, v1: false };
}

/**
 * A call that asks for the price. If the operation has free calls (`x-free`), a complete call might get an answer, so it is sent without
 * a body.
 */
export function askingPrice({ method, body, headers, described }: Sold): RequestInit {
  const free = described?.['x-free'];
  return unpaid(method, isObject(free) && free['by'] !== 'wallet' ? undefined : body, headers);
}

/** A call without payment. */
export function unpaid(method: string, body?: unknown, headers: Record<string, string> = {}): RequestInit {
  if (method === 'GET' || (method === 'DELETE' && body === undefined)) return { method, headers };
  return {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: isWritten(body) ? body : JSON.stringify(body) }),
  };
}

function isWritten(body: unknown): body is string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body);
}

function* operationsOf(
  document: Json,
): Generator<{ method: string; path: string; operation: Json; shared: unknown[] }> {
  for (const [path, described] of Object.entries(document['paths'] as Json)) {
    const item = follow(document, described);
    for (const method of METHODS) {
      const operation = item[method];
      if (isObject(operation))
        yield { method: method.toUpperCase(), path, operation, shared: listOf(item['parameters']) };
    }
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

/** An operation is paid if the description has a price or a 402 response for it. */
function isSold(operation: Json): boolean {
  const responses = isObject(operation['responses']) ? operation['responses'] : {};
  return 'x-payment-info' in operation || 'x-price' in operation || '402' in responses;
}

function soldIn(document: Json, base: string): Sold[] {
  return [...operationsOf(document)]
    .filter(({ operation }) => isSold(operation))
    .map(({ method, path, operation, shared }) => {
      const parameters = [...shared, ...listOf(operation['parameters'])].map(each => follow(document, each));
      const media = bodyOfType(document, operation, 'application/json');
      const form = media ? undefined : bodyOfType(document, operation, FORM_TYPE);
      const other = media || form ? undefined : otherBody(document, operation);
      const amount = priceOf(operation);
      return {
        method,
        path,
        described: operation,
        url: base + filled(document, path, parameters),
        headers: {
          ...neededHeaders(document, parameters),
          ...(form ? { 'content-type': FORM_TYPE } : {}),
          ...(other ? { 'content-type': other.type } : {}),
        },
        v1: parameters.some(({ name, in: place }) => name === 'x402Version' && place === 'query'),
        ...(amount === undefined ? {} : { amount }),
        ...(media ? { body: exampleOf(document, media), schema: follow(document, media['schema']) } : {}),
        ...(form ? { body: formExample(document, form) } : {}),
        ...(other ? { body: other.body } : {}),
      };
    });
}

function formExample(document: Json, form: Json): string {
  const example = exampleOf(document, form);
  return formText(formFields(document, form).fields, isObject(example) ? example : {});
}

/** An example body that is neither JSON nor a form. */
function otherBody(document: Json, operation: Json): WrittenBody | undefined {
  const request = readBody(document, follow(document, operation['requestBody']), [], () => {});
  return request && writtenExample(request);
}

function bodyOfType(document: Json, operation: Json, type: string): Json | undefined {
  const { content } = follow(document, operation['requestBody']);
  const media = isObject(content) ? content[type] : undefined;
  return isObject(media) ? media : undefined;
}

/** The price, if it is fixed and in dollars. Shops write it as `x-payment-info`, in one of two forms, or as `x-price`. */
function priceOf(operation: Json): string | undefined {
  for (const key of ['x-payment-info', 'x-price']) {
    const info = operation[key];
    if (!isObject(info)) continue;
    const price = isObject(info['price']) ? info['price'] : info;
    const { mode = 'fixed', amount, price: plain, currency = 'USD' } = price;
    const stated = amount ?? plain;
    if (mode === 'fixed' && currency === 'USD' && /^\$?\d+(\.\d+)?$/.test(String(stated)))
      return String(stated).replace('$', '');
  }
  return undefined;
}

/** A path with the examples of its parameters. */
function filled(document: Json, path: string, parameters: Json[]): string {
  const valueOf = (parameter: Json | undefined): string =>
    encodeURIComponent(textOf(parameter && (exampleOf(document, parameter) ?? 'example')));
  const whole = path.replace(/\{([^{}]+)\}/g, (_, name: string) =>
    valueOf(parameters.find(each => each['in'] === 'path' && each['name'] === name)),
  );
  const query = parameters
    .filter(each => each['in'] === 'query' && each['required'] === true)
    .map(each => `${encodeURIComponent(String(each['name']))}=${valueOf(each)}`);
  return query.length ? `${whole}?${query.join('&')}` : whole;
}

/** Required headers, except those of the payment. */
function neededHeaders(document: Json, parameters: Json[]): Record<string, string> {
  const needed = parameters.filter(each => each['in'] === 'header' && each['required'] === true);
  return Object.fromEntries(
    needed.map(each => [String(each['name']), textOf(exampleOf(document, each) ?? 'example')]),
  );
}

function freeIn(document: Json, base: string): FreeDocument[] {
  const needs = (parameters: unknown[]): boolean =>
    parameters.some(each => follow(document, each)['required'] === true);
  return [...operationsOf(document)]
    .filter(({ method, operation }) => method === 'GET' && !isSold(operation))
    .filter(({ operation, shared }) => !needs([...shared, ...listOf(operation['parameters'])]))
    .map(({ path, operation }) => ({ path, url: base + path, operation }));
}
