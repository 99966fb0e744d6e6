import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Middleware } from 'koa';
import type { PricedOperation } from '../contract/contract.js';
import type { Routes } from '../contract/routes.js';
import type { Challenge } from '../methods/method.js';
import type { Offers } from '../offers/offers.js';
import { asksForPage } from './landing.js';
import { sendDocument, type StaticDocument } from './documents.js';
import { NOT_INDEXED } from './responses.js';

/** The pages that browsers get where programs get JSON. */
export type People = {
  /** The page of a paid operation. */
  paywall: (operation: PricedOperation) => StaticDocument;
  /** The page of an error. */
  fault: (status: number, error: string) => string;
  /** Headers of all these pages. */
  headers: Readonly<Record<string, string>>;
};

const HTML = 'text/html; charset=utf-8';

/**
 * Turns the errors of the app into pages for browsers, and its challenges into the page of the operation. A
 * request with a payment comes from a program and gets JSON.
 */
export function pagesForPeople({
  people,
  routes,
  offers,
}: {
  people?: People;
  routes: Pick<Routes, 'match'>;
  offers: Pick<Offers, 'methods'>;
}): Middleware {
  return async (ctx, next) => {
    await next();
    const { status, req } = ctx;
    const body: unknown = ctx.body;
    if (!people || status < 400 || !Buffer.isBuffer(body) || ctx.type !== 'application/json') return;
    if (!asksForPage(req) || offers.methods.areIn(req.rawHeaders)) return;
    const route = routes.match(ctx.method, (req.url ?? '').split('?', 1)[0] ?? '');
    const operation = route.kind === 'operation' ? route.priced : undefined;
    if (status === 402 && !operation) return;
    const page =
      status === 402 && operation
        ? (await people.paywall(operation).encoded('plain')).body
        : people.fault(status, errorIn(body));
    ctx.set({ ...people.headers, 'Content-Type': HTML });
    ctx.vary('Accept');
    ctx.body = page;
  };
}

function errorIn(body: Buffer): string {
  const { error } = JSON.parse(body.toString('utf8')) as { error?: unknown };
  return typeof error === 'string' ? error : '';
}

/** Sends the error page to a browser, before the app runs. @returns whether the caller is a browser */
export function sendFaultPage(
  people: People | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  { status, error, headers }: { status: number; error: string; headers: Record<string, string> },
): boolean {
  if (!people || !asksForPage(request)) return false;
  const body = Buffer.from(people.fault(status, error));
  response.writeHead(status, {
    ...{ 'Content-Type': HTML, 'Content-Length': body.length, 'Cache-Control': 'no-store', Vary: 'Accept' },
    ...people.headers,
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
  return true;
}

/**
 * Sends the page of an operation. If a GET buys the operation, the page has the challenge's status and
 * headers; otherwise it is sent as a document.
 */
export async function sendPaywall(
  request: IncomingMessage,
  response: ServerResponse,
  page: StaticDocument,
  challenge?: Challenge,
): Promise<void> {
  if (!challenge) return sendDocument(request, response, page);
  const { body, headers } = await page.encoded('plain');
  response.writeHead(402, [
    ...without(headers, ['cache-control', 'etag']),
    ...Object.entries({ ...challenge.headers, ...NOT_INDEXED, 'Cache-Control': 'no-store' }).flat(),
  ]);
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** The raw headers except those with the given names, which are in lower case. */
function without(headers: readonly string[], names: readonly string[]): string[] {
  return headers.filter((_, index) => !names.includes((headers[index - (index % 2)] ?? '').toLowerCase()));
}
