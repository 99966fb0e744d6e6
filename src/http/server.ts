import { NOT_CHARGED } from '../contract/not-charged.js';
import {
  createServer,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Connections } from './connections.js';
import type { Route, Routes } from '../contract/routes.js';
import { UNOBSERVED, type Observer } from '../observe/observer.js';
import type { Challenges } from '../methods/methods.js';
import type { Offers } from '../offers/offers.js';
import { hasHeader } from '../net/raw-headers.js';
import { sendDocument, type StaticDocument, type StaticDocuments } from './documents.js';
import { asksForLanding, asksForPage } from './landing.js';
import { sendFaultPage, sendPaywall, type People } from './people.js';
import { TOO_MANY_CALLS, type SourceLimits } from './source-limits.js';

/** Requests with more header bytes get 400. Payments are about 1.5 KB. */
const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_DEADLINE_MS = 10_000;
const REQUEST_DEADLINE_MS = 30_000;
const STALL_MS = 20_000;
const KEEP_ALIVE_MS = 65_000;
const MAX_CONNECTIONS = 10_000;
const UNREADABLE = 'This document cannot be read at the moment. Nothing was charged; request it again.';

/**
 * In ms: deadlines for headers and for whole requests, how long a caller may read nothing of its answer, and how often all of this
 * is checked.
 */
export type HttpDeadlines = { headersMs: number; requestMs: number; stallMs: number; checkMs: number };
const DEADLINES: HttpDeadlines = {
  headersMs: HEADERS_DEADLINE_MS,
  requestMs: REQUEST_DEADLINE_MS,
  stallMs: STALL_MS,
  checkMs: 2_000,
};

export type Listener = (request: IncomingMessage, response: ServerResponse) => void;

export type HttpParts = {
  app: Listener;
  offers: Offers;
  /** The router of the contract. */
  routes: Pick<Routes, 'match'>;
  documents: StaticDocuments;
  observer?: Pick<Observer, 'unpaid'>;
  /** The page that browsers get at `/`. */
  landing?: StaticDocument;
  people?: People;
  /** The headers of answers that a page of another origin may read. */
  exposed: string;
  limits?: SourceLimits;
  /** Aborts before the server stops: from then on, each answer ends its connection. */
  leaving?: AbortSignal;
};

/**
 * The HTTP server. In front of the app, it answers unpaid calls of paid operations and the static documents
 * from prebuilt bytes. At this point, an unpaid call can only be refused, never served.
 */
export function createHttpServer(
  {
    app,
    offers,
    routes,
    documents,
    landing,
    people,
    exposed,
    observer = UNOBSERVED,
    limits,
    leaving,
  }: HttpParts,
  deadlines: HttpDeadlines = DEADLINES,
): Server {
  const refusing = { offers, exposed, observer, limits, people };
  const serve = (request: IncomingMessage, response: ServerResponse, asked: Asked): void => {
    const document = landing && asksForLanding(request) ? landing : documentAt(documents, asked);
    if (document)
      return void sendDocument(request, response, document).catch(() => sendFault(response, 503, UNREADABLE));
    const page = people && !offers.methods.areIn(request.rawHeaders) && pageAt(people, request, asked);
    if (page)
      return void sendPaywall(request, response, page).catch(() => sendFault(response, 503, UNREADABLE));
    connections.track(request, response);
    app(request, response);
  };
  const listener: Listener = (request, response) => {
    if (request.httpVersion === '1.1' && !hasHeader(request.rawHeaders, 'host'))
      return sendFault(response, 400, 'An HTTP/1.1 request needs a Host header.');
    if (!admit(connections, request, response)) return;
    const asked = askedOf(request, routes);
    if (!refuseUnpaid(request, response, asked, refusing)) serve(request, response, asked);
  };
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: deadlines.headersMs,
      requestTimeout: deadlines.requestMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: deadlines.checkMs,
      // Node's own 400 has no body.
      requireHostHeader: false,
    },
    listener,
  );
  server.maxConnections = MAX_CONNECTIONS;
  limits?.watch(server);
  const connections = new Connections(server, deadlines.stallMs, deadlines.checkMs);
  leaving?.addEventListener('abort', () => connections.leave());
  // With `Expect: 100-continue`, an unpaid call gets its challenge immediately; only a paid call is asked to send its body.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (!admit(connections, request, response)) return;
    const asked = askedOf(request, routes);
    if (refuseUnpaid(request, response, asked, refusing)) return;
    response.writeContinue();
    serve(request, response, asked);
  });
  // Node would answer other expectations with 417, which the contract does not declare.
  server.on('checkExpectation', listener);
  server.on('clientError', (error, socket) => answerMalformed(error, socket, connections));
  return server;
}

function admit(connections: Connections, request: IncomingMessage, response: ServerResponse): boolean {
  const admitted = connections.admit(request, response);
  if (admitted === 'refuse') {
    sendFault(
      response,
      503,
      `Too many unanswered requests on this connection. ${NOT_CHARGED} for this one; read the answers, then send it again.`,
      { 'Retry-After': '1', Connection: 'close' },
    );
  }
  return admitted === 'yes';
}

/** The method and target of a request. `query` has no question mark; undefined if there is none. */
type Asked = { method: string; path: string; query: string | undefined; route: Route };

function askedOf({ method = '', url = '' }: IncomingMessage, routes: HttpParts['routes']): Asked {
  const queryAt = url.indexOf('?');
  const path = queryAt < 0 ? url : url.slice(0, queryAt);
  const query = queryAt < 0 ? undefined : url.slice(queryAt + 1);
  return { method, path, query, route: routes.match(method, path) };
}

/** The document that a GET or HEAD requests: the document of a free operation, or a file outside the contract. */
function documentAt(documents: StaticDocuments, { method, path, route }: Asked): StaticDocument | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  if (route.kind === 'operation') return documents.get(route.id);
  return route.kind === 'notFound' ? documents.get(path) : undefined;
}

/** The page of a paid operation whose path has no GET. */
function pageAt(people: People, request: IncomingMessage, { route }: Asked): StaticDocument | undefined {
  if (route.kind !== 'methodNotAllowed' || !route.priced || !asksForPage(request)) return undefined;
  return people.paywall(route.priced);
}

function refuseUnpaid(
  request: IncomingMessage,
  response: ServerResponse,
  { query, route }: Asked,
  {
    offers,
    exposed,
    observer,
    limits,
    people,
  }: Pick<HttpParts, 'offers' | 'exposed' | 'people'> & {
    observer: Pick<Observer, 'unpaid'>;
    limits: SourceLimits | undefined;
  },
): boolean {
  if (route.kind !== 'operation' || !route.priced || offers.methods.areIn(request.rawHeaders)) return false;
  const operation = route.priced;
  // For these operations, the app reads the body first.
  if (operation.pricing.needsBody || operation.free) return false;
  const wait = limits?.takeUnpaid(limits.of(request)) ?? 0;
  if (wait > 0) {
    const headers = { 'Retry-After': String(wait), 'Cache-Control': 'no-store' };
    const fault = { status: 503, error: TOO_MANY_CALLS, headers };
    if (!sendFaultPage(people, request, response, fault)) sendFault(response, 503, TOO_MANY_CALLS, headers);
    return true;
  }
  observer.unpaid(operation.id);
  const challenge = offers.challenge(operation, offers.methods.askedBy(query));
  if (people && asksForPage(request)) {
    void sendPaywall(request, response, people.paywall(operation), challenge).catch(() =>
      sendFault(response, 503, UNREADABLE),
    );
    return true;
  }
  response.writeHead(402, headersOf(challenge, exposed));
  response.end(challenge.body);
  return true;
}

/** The headers of challenges that many callers get. */
const HEADERS = new WeakMap<Challenges, string[]>();

function headersOf(challenge: Challenges, exposed: string): string[] {
  const known = HEADERS.get(challenge);
  if (known) return known;
  const headers = [
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(challenge.body.length),
    ...Object.entries(challenge.headers).flat(),
    'Cache-Control',
    'no-store',
    'X-Robots-Tag',
    'noindex',
    'Access-Control-Allow-Origin',
    '*',
    'Access-Control-Expose-Headers',
    exposed,
  ];
  HEADERS.set(challenge, headers);
  return headers;
}

/** The contract's error object. */
function sendFault(
  response: ServerResponse,
  status: number,
  error: string,
  headers: Record<string, string> = {},
): void {
  const body = JSON.stringify({ error });
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'Access-Control-Allow-Origin': '*',
    ...headers,
  });
  response.end(body);
}

const FAULTS: Record<string, string> = {
  HPE_HEADER_OVERFLOW: `The request headers are larger than ${MAX_HEADER_BYTES} bytes.`,
  ERR_HTTP_REQUEST_TIMEOUT: `The request was not complete within ${REQUEST_DEADLINE_MS / 1000} seconds.`,
};

/** Answers malformed HTTP with 400 and the error object of the contract. Node's own answers (400, 408, 431) have no body. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Duplex, connections: Connections): void {
  // After a complete request, an error answer to malformed bytes would be taken for the answer to that request.
  if (connections.isAnswering(socket) || error.code === 'ECONNRESET' || !socket.writable)
    return void socket.destroy();
  // Browsers connect ahead of time: an unsolicited answer would be taken for the answer to their next
  // request.
  if ((socket as Socket).bytesRead === 0) return void socket.destroy();
  const body = JSON.stringify({ error: FAULTS[error.code ?? ''] ?? 'The request is not valid HTTP/1.1.' });
  socket.end(
    `HTTP/1.1 400 ${STATUS_CODES[400]}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Access-Control-Allow-Origin: *\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
