import Router from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import type { Readable } from 'node:stream';
import { BodiesFull, BodyFault, type BodyReader } from './body.js';
import type { Owner } from './byte-budget.js';
import type { PricedOperation } from './contract.js';
import type { Deliveries } from './deliveries.js';
import type { FreeAnswers } from './free-answers.js';
import { failureAnswer, JSON_TYPE, runHandler, type HandlingParts, type Routed } from './handling.js';
import type { Readiness } from './operation.js';
import { challengeVersion, type Challenge, type ChallengeVersion } from './payments/challenge.js';
import type { Charge } from './payments/charge.js';
import type { Desk } from './payments/desk.js';
import type { SharedFeePayers } from './payments/fee-payers.js';
import type { Payment } from './payments/examine.js';
import { canonicalJson, fingerprint, TooDeep } from './payments/fingerprint.js';
import type { Outcome, Sale, Success } from './payments/outcome.js';
import type { PaidCall } from './payments/paid-call.js';
import { receiptHeader, type Receipt } from './payments/wire.js';
import type { Route } from './routes.js';
import { sourceOf } from './source.js';
import { whenClosed } from './closed.js';
import { EXPOSED_HEADERS } from './server.js';

export type AppParts = HandlingParts & {
  charge: Charge;
  desk: Desk;
  feePayers: SharedFeePayers;
  bodies: BodyReader;
  deliveries: Deliveries;
  /** Whether an order that is paid up front could be worked on. */
  readiness: Readiness;
  free: FreeAnswers;
  /** How long a call that was paid up front waits for its answer unless it prefers otherwise, in ms. */
  holdMs: number;
  /** Mounted behind the contract's routes. */
  panel: Middleware;
  /** Aborts when the server shuts down: nothing new is sold, and whoever waits for an order is sent away. */
  closing: AbortSignal;
};

// The official fetch client sends access-control-expose-headers as a request header.
const ALLOWED_HEADERS =
  'content-type, payment-signature, x-payment, prefer, if-none-match, access-control-expose-headers';
const DAY_SECONDS = 86_400;
const BUSY_RETRY_SECONDS = 1;
const NO_ROOM =
  'The server is sending too many answers at once. You paid, and the answer is kept: send the same payment again.';
/** The longest wait that a caller may prefer. */
const MAX_HOLD_SECONDS = 600;

/** An answer that ends the handling of a request. */
class Halt extends Error {
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** Everything behind the fast path: gate → body → validation → charge around the handler → answer. */
export function createApp(parts: AppParts): Koa {
  const app = new Koa();
  app.silent = true;
  app.use(reportFaults(parts));
  app.use((ctx, next) => serve(ctx, parts, next));
  app.use(parts.panel);
  app.use(outsideTheContract());
  app.use(ctx => {
    throw new Halt(404, `There is nothing at ${shown(ctx)}. GET / lists what there is.`);
  });
  return app;
}

function reportFaults({ log, routes }: AppParts): Middleware {
  return async (ctx, next) => {
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
    try {
      await next();
    } catch (error) {
      if (error instanceof Halt) return sendError(ctx, error.status, error.message, error.headers);
      log.error({ error, path: ctx.path }, 'a request broke off');
      const route = routes.match(ctx.method, pathOf(ctx));
      const paid = route.kind === 'operation' && route.priced;
      sendError(
        ctx,
        paid ? 502 : 500,
        'The server made a mistake. Send the same request again, with the same payment.',
      );
    }
  };
}

/** What a browser or crawler asks for and the contract does not sell. */
function outsideTheContract(): Middleware {
  const router = new Router({ strict: true, sensitive: true });
  router.get('/favicon.ico', ctx => {
    ctx.type = 'image/svg+xml';
    ctx.set('Cache-Control', `public, max-age=${DAY_SECONDS}`);
    ctx.body =
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#e0a92e"/>' +
      '<rect x="7" y="4" width="2" height="8" fill="#5a3d00"/></svg>';
  });
  return router.routes() as Middleware;
}

/** The raw path: neither decoded nor normalised, so that no spelling of it slips past the gate. */
function pathOf(ctx: Context): string {
  const { url } = ctx.req;
  return (url ?? '').split('?', 1)[0] ?? '';
}

async function serve(ctx: Context, parts: AppParts, next: () => Promise<unknown>): Promise<unknown> {
  const route = parts.routes.match(ctx.method, pathOf(ctx));
  if (route.kind === 'notFound') return next();
  if (ctx.method === 'OPTIONS') return preflight(ctx, route);
  if (route.kind === 'methodNotAllowed') {
    throw new Halt(405, `${ctx.method} is not allowed here, only ${route.allow}.`, { Allow: route.allow });
  }
  if (route.priced) return servePaid(ctx, parts, route, route.priced);
  return serveFree(ctx, parts, route);
}

function shown(ctx: Context): string {
  return pathOf(ctx).slice(0, 100);
}

function preflight(ctx: Context, route: Route): void {
  const methods = route.kind === 'methodNotAllowed' ? route.allow : 'POST, GET, HEAD, OPTIONS';
  ctx.status = 204;
  ctx.set({
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': ALLOWED_HEADERS,
    'Access-Control-Max-Age': String(DAY_SECONDS),
    'Cache-Control': `public, max-age=${DAY_SECONDS}`,
  });
}

async function serveFree(ctx: Context, parts: AppParts, { id, operation }: Routed): Promise<void> {
  const document = parts.free.documents[id];
  if (document) {
    ctx.set({ ETag: document.etag, 'Cache-Control': 'public, max-age=60', 'Content-Type': JSON_TYPE });
    ctx.body = document.body;
    ctx.status = isCurrent(ctx.get('If-None-Match'), document.etag) ? 304 : 200;
    return;
  }
  const live = parts.free.live[id];
  if (!live) throw new Error(`nothing answers the free operation ${id}`);
  const body = await live().catch((error: unknown) => {
    const answer = failureAnswer(error, parts.log);
    const { error: message } = JSON.parse(answer.body.toString('utf8')) as { error: string };
    throw new Halt(503, message, { 'Retry-After': answer.headers['Retry-After'] ?? '5' });
  });
  const fault = parts.routes.checkReply(operation, { status: 200, body });
  if (fault) throw new Error(`the answer of ${id} breaks the contract: ${fault}`);
  send(ctx, 200, Buffer.from(JSON.stringify(body)), {
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

/** Unlike Koa's `fresh`, also for clients whose fetch adds `Cache-Control: no-cache` to every conditional request. */
function isCurrent(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some(tag => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}

async function servePaid(
  ctx: Context,
  parts: AppParts,
  route: Routed,
  priced: PricedOperation,
): Promise<void> {
  const { charge, desk } = parts;
  const asked = challengeVersion(ctx.querystring);
  const examined = charge.examine(ctx.req.headers, priced);
  if (examined.kind === 'unpaid') return sendChallenge(ctx, desk.challenge(priced, asked));
  if (examined.kind === 'refused') {
    return sendChallenge(ctx, desk.refusal(priced, asked, examined.error, true));
  }
  const { payment } = examined;
  if (examined.kind === 'mismatch' && !(await charge.knows(payment))) {
    return sendChallenge(ctx, desk.refusal(priced, asked, examined.error, true));
  }
  const owner = ownerOf(ctx, payment);
  const outcome = await redeem(ctx, parts, route, priced, payment, owner);
  if (parts.closing.aborted) ctx.set('Connection', 'close');
  await sendOutcome(ctx, parts, { priced, payment, asked, owner }, outcome);
}

async function redeem(
  ctx: Context,
  parts: AppParts,
  route: Routed,
  operation: PricedOperation,
  payment: Payment,
  owner: Owner,
): Promise<Outcome> {
  const { bodies, charge, closing, desk, holdMs } = parts;
  try {
    const body = await bodies.readJsonObject(ctx.req, operation.maxBodyBytes, owner);
    const checked = parts.routes.checkBody(route.operation, body);
    if (!checked.ok) throw new BodyFault(checked.error);
    desk.use(payment.checked, false);
    await parts.feePayers.lookUp(payment.checked.feePayer);
    return await charge.redeem({
      operation,
      payment,
      requestHash: fingerprint(operation.id, body),
      work: signal => runHandler(parts, route, { body, signal, caller: payment.checked.payer }),
      gone: goneSignal(ctx),
      closing,
      holdMs: preferredWait(ctx.get('Prefer')) ?? holdMs,
      source: owner.source,
      ...(operation.flow === 'upfront' ? { upfront: upfrontOf(parts, operation, body) } : {}),
    });
  } catch (error) {
    if (error instanceof BodiesFull) {
      ctx.set('Connection', 'close');
      const why = 'The server is busy and the body of this request arrived too slowly';
      return charge.turnAway(payment, why, BUSY_RETRY_SECONDS);
    }
    if (!(error instanceof BodyFault || error instanceof TooDeep)) throw error;
    throw new Halt(400, `${error.message}. ${await charge.moneyNote(payment)}`);
  }
}

function upfrontOf(
  { readiness, log }: AppParts,
  priced: PricedOperation,
  body: object,
): NonNullable<PaidCall['upfront']> {
  const check = readiness[priced.id] as ((body: object) => Promise<void>) | undefined;
  return {
    request: canonicalJson(body),
    ready: async () => {
      try {
        await check?.(body);
        return undefined;
      } catch (error) {
        return failureAnswer(error, log);
      }
    },
  };
}

/** `Prefer: wait=N` (RFC 7240) in ms, at most 600 s. */
function preferredWait(header: string): number | undefined {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/i.exec(header)?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), MAX_HOLD_SECONDS) * 1000;
}

function ownerOf({ req }: Context, { checked }: Payment): Owner {
  return { payment: checked.id, payer: checked.payer, source: sourceOf(req.socket.remoteAddress) };
}

function goneSignal(ctx: Context): AbortSignal {
  const gone = new AbortController();
  whenClosed(ctx.req, ctx.res, () => {
    if (!ctx.res.writableFinished) gone.abort();
  });
  return gone.signal;
}

type Asked = { priced: PricedOperation; payment: Payment; asked: ChallengeVersion; owner: Owner };

async function sendOutcome(ctx: Context, parts: AppParts, call: Asked, outcome: Outcome): Promise<void> {
  const { desk } = parts;
  const { priced, payment, asked } = call;
  const receipt = 'receipt' in outcome ? outcome.receipt : undefined;
  const receipts = receiptHeaders(payment, receipt);
  if (receipt) desk.use(payment.checked, true);
  switch (outcome.kind) {
    case 'answer': {
      const { status, headers, body } = outcome.answer;
      const all = { ...headers, ...receipts, 'Cache-Control': 'no-store' };
      if (!('sale' in outcome)) return send(ctx, status, body, all);
      return deliver(
        ctx,
        parts,
        { ...call, sale: outcome.sale, receipts },
        { ...outcome.answer, headers: all },
      );
    }
    case 'refused':
      return sendChallenge(
        ctx,
        desk.refusal(priced, asked, outcome.error, outcome.fresh, payment.checked),
        receipts,
      );
    case 'conflict':
      return sendError(ctx, 400, outcome.error, receipts);
    case 'unavailable':
      return sendError(ctx, 503, outcome.error, {
        ...receipts,
        'Retry-After': String(outcome.retryAfterSeconds),
      });
  }
}

/** Sends an answer that was sold. It counts as lost where there is no room for it now, or its caller does not take it. */
async function deliver(
  ctx: Context,
  { deliveries }: AppParts,
  { sale, owner, receipts }: Asked & { sale: Sale; receipts: Record<string, string> },
  { status, headers, body }: Success,
): Promise<void> {
  const delivery = deliveries.open(owner, body, () => ctx.req.socket.destroy());
  if (!delivery) {
    await sale.lost();
    return sendError(ctx, 503, NO_ROOM, { ...receipts, 'Retry-After': '1' });
  }
  const { req, res } = ctx;
  let out = false;
  // A response whose socket is destroyed with bytes still to write is finished all the same, so that alone says nothing.
  res.once('finish', () => (out = !req.socket.destroyed));
  whenClosed(req, res, () => {
    delivery.close();
    void (out ? sale.written() : sale.lost());
  });
  send(ctx, status, delivery.body, headers);
  if (delivery.body !== body) ctx.length = body.length;
}

function receiptHeaders(payment: Payment, receipt: Receipt | undefined): Record<string, string> {
  return receipt ? receiptHeader(payment.version, receipt) : {};
}

function sendChallenge(
  ctx: Context,
  { body, header }: Challenge,
  headers: Record<string, string> = {},
): void {
  send(ctx, 402, body, {
    ...headers,
    'PAYMENT-REQUIRED': header,
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

function sendError(ctx: Context, status: number, error: string, headers: Record<string, string> = {}): void {
  send(ctx, status, Buffer.from(JSON.stringify({ error })), {
    ...headers,
    'Content-Type': JSON_TYPE,
    'Cache-Control': 'no-store',
  });
}

function send(ctx: Context, status: number, body: Buffer | Readable, headers: Record<string, string>): void {
  ctx.status = status;
  ctx.set(headers);
  ctx.body = body;
}
