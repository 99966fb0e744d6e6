import Koa, { type Context, type Middleware } from 'koa';
import { MAX_HOLD_SECONDS } from '../config.js';
import type { PricedOperation } from '../contract/contract.js';
import type { Readiness } from '../contract/operation.js';
import { challengeVersion } from '../payments/challenge.js';
import type { Charge } from '../payments/charge.js';
import type { Payment } from '../payments/check-payment.js';
import { canonicalJson, fingerprint, TooDeep } from '../payments/fingerprint.js';
import type { Outcome } from '../payments/outcome.js';
import type { PaidCall } from '../payments/paid-call.js';
import { BodiesFull, BodyFault, type BodyReader } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import { onClose } from './on-close.js';
import { sourceOf } from './request-source.js';
import { Halt, sendChallenge, sendError } from './responses.js';
import { failureAnswer, runHandler, type HandlerParts, type Routed } from './run-handler.js';
import { sendOutcome, type SendParts } from './send-outcome.js';
import { outsideTheContract, preflight, serveFree, type ServeFreeParts } from './serve-free.js';
import { EXPOSED_HEADERS } from './exposed-headers.js';

export type AppParts = ServeFreeParts &
  HandlerParts &
  SendParts & {
    charge: Charge;
    bodies: BodyReader;
    /** Checks that run before an order is paid up front. */
    readiness: Readiness;
    /** How long a call without a `Prefer` header waits for an order, or for work that another request began, in ms. */
    holdMs: number;
    /** Aborts when the server shuts down: it accepts no new payments, and callers that wait for an order are sent away. */
    closing: AbortSignal;
    /** Mounted after the routes of the contract. */
    panel: Middleware;
  };

const BUSY_RETRY_SECONDS = 1;

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

function reportFaults({ log, routes }: AppParts): Middleware {
  return async (ctx, next) => {
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Access-Control-Expose-Headers', EXPOSED_HEADERS);
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
  const checkedPayment = charge.checkPayment(ctx.req.headers, priced);
  if (checkedPayment.kind === 'unpaid') return sendChallenge(ctx, offers.challenge(priced, asked));
  if (checkedPayment.kind === 'refused') {
    return sendChallenge(ctx, offers.refusal(priced, asked, checkedPayment.error, true));
  }
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
    const body = await bodies.readJsonObject(ctx.req, operation.maxBodyBytes, owner);
    const checked = parts.routes.checkBody(route.operation, body);
    if (!checked.ok) throw new BodyFault(checked.error);
    return await charge.process({
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
