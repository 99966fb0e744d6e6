import type { IncomingMessage } from 'node:http';
import Koa, { type Context, type Middleware } from 'koa';
import { MAX_HOLD_SECONDS } from '../config.js';
import type { PricedOperation } from '../contract/contract.js';
import type { AnyAsked } from '../contract/operation.js';
import { challengeVersion } from '../payments/challenge.js';
import type { Charge } from '../payments/charge.js';
import type { Payment } from '../payments/check-payment.js';
import { fingerprint, requestText, TooDeep } from '../payments/fingerprint.js';
import type { Outcome } from '../payments/outcome.js';
import type { PaidCall } from '../payments/paid-call.js';
import { BodiesFull, BodyFault, type BodyReader } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import { onClose } from './on-close.js';
import { sourceOf } from './request-source.js';
import { Halt, sendChallenge, sendError } from './responses.js';
import type { Routed } from './router.js';
import { failureAnswer, runHandler, type HandlerParts } from './run-handler.js';
import { sendOutcome, type SendParts } from './send-outcome.js';
import { outsideTheContract, preflight, serveFree, type ServeFreeParts } from './serve-free.js';

export type AppParts = ServeFreeParts &
  HandlerParts &
  SendParts & {
    charge: Charge;
    bodies: BodyReader;
    /** How long a call without a `Prefer` header waits for an order, or for work that another request began, in ms. */
    holdMs: number;
    /** Aborts when the server shuts down: it accepts no new payments, and callers that wait for an order are sent away. */
    closing: AbortSignal;
    /** The headers of answers that a page of another origin may read. */
    exposed: string;
    /** Mounted after the routes of the contract. */
    panel: Middleware;
  };

const BUSY_RETRY_SECONDS = 1;
const HEAD_SELLS_NOTHING =
  'HEAD has no body, so it sells nothing, and this request did not use the payment. Send it with GET.';

/** The Koa app behind the fast path: the operations of the contract, the panel, and files that browsers request. */
export function createApp(parts: AppParts): Koa {
  const app = new Koa();
  app.silent = true;
  app.use(reportFaults(parts));
  app.use((ctx, next) => serve(ctx, parts, next));
  app.use(parts.panel);
  app.use(outsideTheContract());
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
      log.error({ error, path: ctx.path }, 'request failed');
      const route = routes.match(ctx.method, pathOf(ctx));
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

/** Answers a call of a paid operation: payment → body → validation → charge around the handler → answer. */
async function servePaid(
  ctx: Context,
  parts: AppParts,
  route: Routed,
  priced: PricedOperation,
): Promise<void> {
  const { charge, offers } = parts;
  const asked = challengeVersion(ctx.querystring);
  const checkedPayment = await charge.checkPayment(ctx.req.headers, priced);
  if (checkedPayment.kind === 'unpaid') return sendChallenge(ctx, offers.challenge(priced, asked));
  if (checkedPayment.kind === 'refused') {
    return sendChallenge(ctx, offers.refusal(priced, asked, checkedPayment.error, true));
  }
  if (ctx.method === 'HEAD') throw new Halt(400, HEAD_SELLS_NOTHING);
  const { payment } = checkedPayment;
  if (checkedPayment.kind === 'mismatch' && !(await charge.isKnown(payment))) {
    return sendChallenge(ctx, offers.refusal(priced, asked, checkedPayment.error, true));
  }
  const owner = ownerOf(ctx, payment);
  const outcome = await charged(ctx, parts, route, priced, payment, owner);
  if (parts.closing.aborted) ctx.set('Connection', 'close');
  await sendOutcome(ctx, parts, { priced, payment, asked, owner }, outcome);
}

async function charged(
  ctx: Context,
  parts: AppParts,
  route: Routed,
  operation: PricedOperation,
  payment: Payment,
  owner: BudgetOwner,
): Promise<Outcome> {
  const { bodies, charge, closing, holdMs } = parts;
  try {
    const body = await bodyOf(ctx.req, bodies, operation, owner);
    const checked = parts.routes.checkAsked(route, ctx.querystring, body);
    if (!checked.ok) throw new BodyFault(checked.error);
    const { asked } = checked;
    return await charge.process({
      operation,
      payment,
      requestHash: fingerprint(operation.id, asked),
      work: signal => runHandler(parts, route, { ...asked, signal, caller: payment.checked.payer }),
      gone: goneSignal(ctx),
      closing,
      holdMs: preferredWait(ctx.get('Prefer')) ?? holdMs,
      source: owner.source,
      ...(operation.flow === 'upfront' ? { upfront: upfrontOf(parts, operation, asked) } : {}),
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
  { handlers, log }: AppParts,
  { id }: PricedOperation,
  asked: AnyAsked,
): NonNullable<PaidCall['upfront']> {
  return {
    request: requestText(asked),
    ready: async () => {
      try {
        await handlers[id]?.ready?.(asked);
        return undefined;
      } catch (error) {
        return failureAnswer(error, log);
      }
    },
  };
}

/** The body of a call; undefined if the operation takes none, or an optional one was not sent. */
async function bodyOf(
  request: IncomingMessage,
  bodies: BodyReader,
  { request: declared }: PricedOperation,
  owner: BudgetOwner,
): Promise<object | undefined> {
  if (!declared || (!declared.required && !hasBody(request))) return undefined;
  return bodies.readJsonObject(request, declared.maxBytes, owner);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** `Prefer: wait=N` (RFC 7240) in ms, at most 600 s. */
function preferredWait(header: string): number | undefined {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/i.exec(header)?.[1];
  return seconds === undefined ? undefined : Math.min(Number(seconds), MAX_HOLD_SECONDS) * 1000;
}

function ownerOf({ req }: Context, { checked }: Payment): BudgetOwner {
  return { payment: checked.id, payer: checked.payer, source: sourceOf(req.socket.remoteAddress) };
}

function goneSignal(ctx: Context): AbortSignal {
  const gone = new AbortController();
  onClose(ctx.req, ctx.res, () => {
    if (!ctx.res.writableFinished) gone.abort();
  });
  return gone.signal;
}
