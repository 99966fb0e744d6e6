import Koa, { type Context, type Middleware } from 'koa';
import { MAX_HOLD_SECONDS } from '../config.js';
import type { PricedOperation } from '../contract/contract.js';
import { rawParameters } from '../contract/paths.js';
import { UNOBSERVED } from '../observe/observer.js';
import type { StaticDocuments } from './documents.js';
import { serveHeldProbe } from './held-probe.js';
import { asksForPage } from './landing.js';
import { goneSignal } from './on-close.js';
import { pagesForPeople, type People } from './people.js';
import { readAsked, type ReadParts } from './read-asked.js';
import { CallsInHand } from './calls-in-hand.js';
import { serveGiven } from './serve-given.js';
import { countFailed, servePaidCall, type PaidCallParts } from './paid-calls.js';
import { servePickUp, type PickUpParts } from './serve-pick-up.js';
import { requestIdOf } from './request-id.js';
import { BodyFault } from './json-body.js';
import type { Method } from '../methods/method.js';
import type { Challenges } from '../methods/methods.js';
import { serveSignIn } from './serve-sign-in.js';
import { told, type PaidCallResult, type Throttled } from './tell-answer.js';
import { Halt, NOT_INDEXED, send, sendChallenge, sendError } from './responses.js';
import type { MethodNotAllowed, Routed } from '../contract/routes.js';
import type { Failure } from '../sale/outcome.js';
import { FREE_LEFT } from './free-calls.js';
import { sendOutcome, type SendParts } from './send-outcome.js';
import { sendGift } from './send-sold.js';
import { notAllowed, outsideTheContract, preflight, serveFree, type ServeFreeParts } from './serve-free.js';

const HEAD_SELLS_NOTHING = 'HEAD returns no body, so nothing can be bought with it: use GET';

export type AppParts = ServeFreeParts &
  PaidCallParts &
  PickUpParts &
  SendParts &
  ReadParts & {
    /** How long a call without a `Prefer` header waits for an order, or for work that another request began, in ms. */
    holdMs: number;
    /** The headers of answers that a page of another origin may read. */
    exposed: string;
    documents: StaticDocuments;
    /** The pages of operations, mounted after the routes of the contract. */
    pages: readonly Middleware[];
    people?: People;
  };

/** The Koa app behind the fast path: the operations of the contract, and their pages. */
export function createApp(parts: AppParts): Koa {
  const app = new Koa();
  app.silent = true;
  app.use(pagesForPeople(parts));
  app.use(reportFaults(parts));
  const whole = { ...parts, gifts: new CallsInHand() };
  app.use((ctx, next) => serve(ctx, whole, next));
  app.use(serveHeldProbe(parts.limits));
  if (parts.freeCalls?.signIns) app.use(serveSignIn(parts.freeCalls.signIns, parts.limits));
  for (const page of parts.pages) app.use(page);
  app.use(outsideTheContract(parts.documents, parts.offers.methods));
  app.use(ctx => {
    throw new Halt(404, `${shown(ctx)} does not exist. GET / lists all operations.`);
  });
  return app;
}

function reportFaults({ log, routes, exposed }: AppParts): Middleware {
  return async (ctx, next) => {
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Access-Control-Expose-Headers', exposed);
    try {
      await next();
    } catch (error) {
      if (error instanceof Halt) return sendError(ctx, error.status, error.message, error.headers);
      const route = routes.match(ctx.method, pathOf(ctx));
      // A path may contain an answer key.
      log.error({ error, ...(route.kind === 'operation' ? { operation: route.id } : {}) }, 'request failed');
      const paid = route.kind === 'operation' && route.priced;
      sendError(
        ctx,
        paid ? 502 : 500,
        'Internal server error. Send the same request again, with the same payment.',
      );
    }
  };
}

/** The raw path, neither decoded nor normalised: another spelling of a path must not bypass the payment. */
function pathOf(ctx: Context): string {
  const { url } = ctx.req;
  return (url ?? '').split('?', 1)[0] ?? '';
}

type WholeParts = AppParts & { gifts: CallsInHand };

async function serve(ctx: Context, parts: WholeParts, next: () => Promise<unknown>): Promise<unknown> {
  const route = parts.routes.match(ctx.method, pathOf(ctx));
  if (route.kind === 'notFound') return next();
  if (ctx.method === 'OPTIONS') return preflight(ctx, route, parts.offers.methods);
  if (route.kind === 'methodNotAllowed') return refuseMethod(ctx, parts, route);
  if (route.priced || route.given || route.id === parts.pickUps.operation) ctx.set(NOT_INDEXED);
  if (route.priced) return servePaid(ctx, parts, route, route.priced);
  if (route.given) return serveGiven(ctx, parts, route, route.given);
  if (route.id === parts.pickUps.operation) return servePickUp(ctx, parts, keyOf(route));
  return serveFree(ctx, parts, route);
}

/** The answer key, which is the only parameter of the path. */
function keyOf({ operation, path }: Routed): string {
  return Object.values(rawParameters(operation.path, path))[0] ?? '';
}

/**
 * Refuses a method that the path does not support. If the request carries a payment, the refusal is reported to
 * the observer.
 * @throws Halt
 */
async function refuseMethod(ctx: Context, parts: AppParts, route: MethodNotAllowed): Promise<void> {
  const { priced } = route;
  if (!priced || !parts.offers.methods.areIn(ctx.req.rawHeaders)) throw notAllowed(ctx, route);
  const requestId = tellRequestId(ctx);
  const asked = { operation: priced.id, transport: 'http', requestId, amount: priced.price.atomic } as const;
  const result = await told(parts.observer ?? UNOBSERVED, asked, async () => {
    const throttled = countFailed(parts.limits, parts.limits.of(ctx.req));
    if (throttled) return throttled;
    throw notAllowed(ctx, route);
  });
  if (result.kind === 'throttled') sendThrottled(ctx, result);
}

/** Sets the request's id as a header of its answer, and returns it. */
function tellRequestId(ctx: Context): string {
  const requestId = requestIdOf(ctx.req.headers['x-request-id']);
  ctx.set('X-Request-Id', requestId);
  return requestId;
}

function sendThrottled(ctx: Context, { error, retryAfterSeconds }: Throttled): void {
  sendError(ctx, 503, error, { 'Retry-After': String(retryAfterSeconds) });
}

function sendFailure(ctx: Context, { status, body, headers }: Failure): void {
  send(ctx, status, body, { ...headers, 'Cache-Control': 'no-store' });
}

function shown(ctx: Context): string {
  return pathOf(ctx).slice(0, 100);
}

/** Answers a call of a paid operation. */
async function servePaid(
  ctx: Context,
  parts: AppParts,
  route: Routed,
  operation: PricedOperation,
): Promise<void> {
  const { offers, holdMs } = parts;
  const asked = offers.methods.askedBy(ctx.querystring);
  const requestId = tellRequestId(ctx);
  // A person who opens the URL in a browser gets the page, which makes the call itself.
  const { freeCalls, ...selling } = parts;
  const isForPage = parts.people !== undefined && asksForPage(ctx.req);
  const result = await servePaidCall(isForPage ? selling : { ...selling, freeCalls }, {
    operation,
    carrier: { headers: ctx.req.headers },
    transport: 'http',
    requestId,
    traceHeaders: ctx.req.headers,
    source: parts.limits.of(ctx.req),
    read: async owner => {
      if (ctx.method === 'HEAD') throw new BodyFault(HEAD_SELLS_NOTHING);
      return readAsked(ctx, parts, route, operation, owner);
    },
    gone: goneSignal(ctx.req, ctx.res),
    holdMs: preferredWait(ctx.get('Prefer')) ?? holdMs,
  });
  if (result.kind === 'given') return sendGift(ctx, parts, result, { [FREE_LEFT]: String(result.left) });
  if (result.kind === 'unpaid') return sendChallenge(ctx, challengeOf(parts, result, asked));
  if (result.kind === 'throttled') return sendThrottled(ctx, result);
  if (result.kind === 'unpriced') return sendFailure(ctx, result.answer);
  if (result.kind === 'rejected') {
    return sendChallenge(ctx, offers.refusal(result.operation, asked, result.error, true));
  }
  const { payment, owner, outcome } = result;
  await sendOutcome(ctx, parts, { priced: result.operation, payment, asked, owner }, outcome);
}

function challengeOf(
  { offers }: AppParts,
  { operation, why }: Extract<PaidCallResult, { kind: 'unpaid' }>,
  asked: Method,
): Challenges {
  return why === undefined ? offers.challenge(operation, asked) : offers.refusal(operation, asked, why, true);
}

/** `Prefer: wait=N` (RFC 7240) in ms, at most 600 s. */
function preferredWait(header: string): number | undefined {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/i.exec(header)?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), MAX_HOLD_SECONDS) * 1000;
}
