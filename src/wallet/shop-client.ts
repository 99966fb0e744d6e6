import { messageOf } from '../ledger/fault.js';
import { startCommand } from '../config/command-line.js';
import { isOfEveryCall } from '../contract/header-names.js';
import type { Json } from '../contract/json.js';
import { queryPairs, queryStyleOf, type QueryStyle } from '../contract/query-styles.js';
import { follow, isObject, objectOf } from '../contract/references.js';
import { readBody, type RequestBody } from '../contract/request-body.js';
import { sentBodyOf, writtenBody, type WrittenBody } from '../contract/sent-body.js';
import { isSoldStatus } from '../contract/sold-status.js';
import type { Call, Reply } from './purchase.js';
import { requiredOf, type Challenge } from './offer.js';
import type { PendingPayment } from './purse.js';

/** The purchase is not possible; `message` says why and what to do. */
export class BuyFault extends Error {}

export type ServerAnswer = { status: number; headers: Headers; body: Buffer };

/** The method and URL of an operation (a template if it has path parameters), and the names of its parameters in the URL and headers. */
export type Listing = {
  method: string;
  url: string;
  priced: boolean;
  /** Whether a call is paid before its work begins. */
  upfront: boolean;
  /** Whether a call can have a body. */
  hasBody: boolean;
  /** The declared body; JSON by default. */
  request?: RequestBody;
  parameters: { name: string; in: 'path' | 'query' | 'header'; style?: QueryStyle }[];
  /** A call with the examples of the contract. */
  example?: Json;
  /** Set if the server is a mock (see `coinslot mock`): the URL of its stub of a chain. */
  mock?: { rpcUrl: string };
};

const CALL_DEADLINE_MS = 90_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** The longest URL that is stored with a payment. */
const MAX_LOCATION = 500;

/** Finds an operation in the server's OpenAPI document. @throws BuyFault */
export async function findOperation(serverUrl: string, operationId: string): Promise<Listing> {
  const answer = await send(`${serverUrl}/openapi.json`, { method: 'GET' }).catch((error: unknown) => {
    throw new BuyFault(
      `No server answers at ${serverUrl}: start one with ${startCommand()}, or set --url. (${reasonOf(error)})`,
    );
  });
  if (answer.status !== 200)
    throw new BuyFault(`${serverUrl}/openapi.json answered ${answer.status}: is this a Coinslot server?`);
  const document = parseJson(answer.body) as Document | undefined;
  if (typeof document?.paths !== 'object')
    throw new BuyFault(`${serverUrl}/openapi.json is not an OpenAPI document: is this a Coinslot server?`);
  const known: string[] = [];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, described] of Object.entries(item)) {
      if (Array.isArray(described)) continue;
      const operation = described as Described;
      known.push(operation.operationId);
      if (operation.operationId !== operationId) continue;
      const declared = [...listOf(item.parameters), ...listOf(operation.parameters)].map(each =>
        follow(document, each),
      );
      const parameters = declared.flatMap((each): Listing['parameters'] => {
        const [name, where] = [String(each.name), each.in];
        if (!isPartOfCall(where, name)) return [];
        return [{ name, in: where, ...(where === 'query' ? styleOf(document, each) : {}) }];
      });
      const priced = 'x-price' in operation;
      const upfront = operation['x-price']?.flow === 'upfront';
      const { rpcUrl } = objectOf(objectOf(document.info)['x-mock']);
      const own = typeof rpcUrl === 'string' && rpcUrl.startsWith(`${serverUrl}/`);
      const mock = own ? { mock: { rpcUrl } } : {};
      const hasBody = method === 'post' || operation.requestBody !== undefined;
      const request = readBody(document, operation.requestBody, [], () => {});
      const example = exampleOf(declared, request);
      const facts = {
        priced,
        upfront,
        hasBody,
        parameters,
        example,
        ...(request ? { request } : {}),
        ...mock,
      };
      return { method: method.toUpperCase(), url: serverUrl + path, ...facts };
    }
  }
  throw new BuyFault(`There is no operation ${operationId}. Operations: ${known.join(', ')}.`);
}

type Described = {
  operationId: string;
  parameters?: unknown;
  requestBody?: unknown;
  'x-price'?: { flow?: unknown };
};
type Document = { paths?: Record<string, { parameters?: unknown } & Record<string, unknown>> } & Json;

function exampleOf(parameters: Json[], request: RequestBody | undefined): Json {
  const needed = parameters.filter(each => each.required === true && each.example !== undefined);
  const values = needed.map((each): [string, unknown] => [String(each.name), each.example]);
  const body = isObject(request?.example) ? request.example : request ? { body: request.example } : {};
  return { ...Object.fromEntries(values), ...body };
}

function isPartOfCall(where: unknown, name: string): where is Listing['parameters'][number]['in'] {
  return where === 'path' || where === 'query' || (where === 'header' && !isOfEveryCall(name));
}

function styleOf(document: Json, parameter: Json): { style?: QueryStyle } {
  const { style } = queryStyleOf(document, parameter);
  return style ? { style } : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/**
 * Builds the request of a call. Members of the JSON that the operation declares as parameters go into the URL and headers. The rest is the
 * body, if the operation has one; a body that is not an object is in the member `body`. @throws BuyFault if a path parameter is missing, or
 * the body is invalid
 */
export function requestOf(
  listing: Listing,
  json: string,
  headers: Record<string, string> = {},
): { url: string; init: RequestInit } {
  const { method, url, hasBody, request, parameters } = listing;
  const value = parseJson(Buffer.from(json));
  const rest: Json = isObject(value) ? { ...value } : {};
  const placed = parameters.some(({ name }) => name in rest) || url.includes('{');
  // Sent unchanged, so that the shop reports what is wrong with it.
  if (hasBody && !placed && (request?.objectArguments ?? true) && (request?.kind ?? 'json') === 'json')
    return { url, init: { method, headers: { ...JSON_BODY, ...headers }, body: json } };
  const path = url.replace(/\{([^{}/]+)\}/g, (_braces, name: string) => {
    if (rest[name] === undefined) throw new BuyFault(`${name} is missing: it is part of the path ${url}.`);
    return encodeURIComponent(textOf(rest[name]));
  });
  const { query, named } = takenFrom(rest, parameters);
  const whole = query.size > 0 ? `${path}?${query.toString()}` : path;
  if (!hasBody) return { url: whole, init: { method, headers: { ...named, ...headers } } };
  const { type, body } = bodyOf(request, isObject(value) ? rest : value);
  return { url: whole, init: { method, headers: { 'Content-Type': type, ...named, ...headers }, body } };
}

/** @throws BuyFault */
function bodyOf(request: RequestBody | undefined, value: unknown): WrittenBody {
  if (!request) return { type: 'application/json', body: JSON.stringify(value) };
  const isMember = !request.objectArguments && isObject(value) && 'body' in value;
  const sent = sentBodyOf(request, isMember ? value.body : value);
  if ('wrong' in sent) throw new BuyFault(`${sent.wrong}.`);
  return writtenBody(sent);
}

/** Moves the parameters out of the JSON. */
function takenFrom(
  rest: Json,
  parameters: Listing['parameters'],
): { query: URLSearchParams; named: Record<string, string> } {
  const query = new URLSearchParams();
  const named: Record<string, string> = {};
  for (const parameter of parameters) {
    const { name, in: where } = parameter;
    const values = [rest[name]].flat();
    if (where === 'query')
      for (const [key, text] of queryPairs(parameter, rest[name])) query.append(key, text);
    if (where === 'header' && rest[name] !== undefined) named[name] = values.map(textOf).join(', ');
    delete rest[name];
  }
  return { query, named };
}

const JSON_BODY = { 'Content-Type': 'application/json' };

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** One HTTP call, limited in size and time (`withinMs`, at most 90 s). Rejects if the connection fails. */
export async function send(
  url: string,
  init: RequestInit,
  withinMs = CALL_DEADLINE_MS,
): Promise<ServerAnswer> {
  const deadline = Math.max(1, Math.min(withinMs, CALL_DEADLINE_MS));
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(deadline) });
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array;
    size += bytes.length;
    if (size > MAX_ANSWER_BYTES) throw new BuyFault('The answer is larger than 64 MB.');
    chunks.push(bytes);
  }
  return { status: response.status, headers: response.headers, body: Buffer.concat(chunks) };
}

/** A request that can be sent more than once, so its body is text or bytes. */
export type HttpCall = { url: string; init: RequestInit };

/** How a call is sent over HTTP, with a payment or without, and how its answer is fetched from the `Location` that the shop gave. */
export function overHttp({ url, init }: HttpCall): Required<Pick<Call<ServerAnswer>, 'send' | 'pickUp'>> {
  return {
    send(payment, withinMs) {
      const headers = new Headers(init.headers);
      for (const [name, value] of Object.entries(payment ? headersOf(payment) : {})) headers.set(name, value);
      return sendOnce(url, { ...init, headers }, withinMs);
    },
    pickUp: (location, withinMs) => sendOnce(location, { method: 'GET' }, withinMs),
  };
}

/** Rejects only if the answer is too large. */
async function sendOnce(url: string, init: RequestInit, withinMs: number): Promise<Reply<ServerAnswer>> {
  try {
    return replyOf(await send(url, init, withinMs), url);
  } catch (error) {
    if (error instanceof BuyFault) throw error;
    const timedOut = error instanceof Error && error.name === 'TimeoutError';
    return {
      kind: 'later',
      error: timedOut ? 'no answer yet.' : `connection lost (${reasonOf(error)}).`,
    };
  }
}

/** A 502 or 504 may come from a gateway, which knows nothing about the payment. */
function replyOf(answer: ServerAnswer, url: string): Reply<ServerAnswer> {
  const { status, headers } = answer;
  const pickUp = locationOf(answer, url);
  const receipt = receiptOf(answer);
  const landed = receipt?.success ? receipt.transaction : undefined;
  if (isSoldStatus(status)) return { kind: 'answer', answer, landed };
  const challenge = receipt?.success ? undefined : challengeOf(answer);
  if (challenge) return { kind: 'price', challenge };
  const error = errorOf(answer);
  if (receipt?.errorReason === 'refunded') return { kind: 'refunded', error, answer };
  if (status !== 503)
    return { kind: 'failed', error, owed: receipt?.success === true, answer, landed, pickUp };
  return { kind: 'later', error, answer, landed, pickUp, ...retryAfter(headers) };
}

/** The URL of the stored answer. Only at the shop's own origin, so that a shop can't make this machine fetch other URLs. */
function locationOf({ headers }: ServerAnswer, url: string): string | undefined {
  const location = headers.get('location');
  if (location === null || location.length > MAX_LOCATION || !URL.canParse(location, url)) return undefined;
  const { href, origin } = new URL(location, url);
  return origin === new URL(url).origin ? href : undefined;
}

function retryAfter(headers: Headers): { afterMs?: number } {
  const seconds = Number(headers.get('retry-after') ?? NaN);
  return seconds > 0 && Number.isFinite(seconds) ? { afterMs: seconds * 1000 } : {};
}

/** The challenge of an unpaid or refused call, from a header or the body (x402 v1); undefined if the answer is not an x402 challenge. */
export function challengeOf({
  status,
  headers,
  body,
}: Pick<ServerAnswer, 'status' | 'body'> & { headers: Pick<Headers, 'get'> }): Challenge | undefined {
  const header = headers.get('payment-required');
  const value = parseJson(header === null ? body : Buffer.from(header, 'base64'));
  const required = status === 402 ? requiredOf(value) : undefined;
  return required && { required, base64: false };
}

/** The header in which each version of x402 carries a payment. */
export function headersOf({ payment }: Pick<PendingPayment, 'payment'>): Record<string, string> {
  const v1 = objectOf(payment).x402Version === 1;
  const header = Buffer.from(JSON.stringify(payment)).toString('base64');
  return { [v1 ? 'X-PAYMENT' : 'PAYMENT-SIGNATURE']: header };
}

/** The message of an error answer, or the start of its body. */
export function errorOf(answer: ServerAnswer): string {
  const value = parseJson(answer.body) as { error?: unknown } | undefined;
  return typeof value?.error === 'string' ? value.error : answer.body.toString('utf8').slice(0, 200);
}

/** The receipt of a paid answer, decoded. */
export function receiptOf(
  answer: ServerAnswer,
): { success: boolean; transaction: string; errorReason?: string } | undefined {
  const header = answer.headers.get('payment-response') ?? answer.headers.get('x-payment-response');
  return header === null
    ? undefined
    : (parseJson(Buffer.from(header, 'base64')) as ReturnType<typeof receiptOf>);
}

/** The innermost cause of an error; fetch puts it in `cause`. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message ? cause.message : messageOf(error);
}

/** The JSON value; undefined if the bytes are not JSON. */
export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
