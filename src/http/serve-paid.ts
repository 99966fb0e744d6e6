import type { Context } from 'koa';
import { BodiesFull, BodyFault, type BodyReader } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import { onClose } from './on-close.js';
import type { PricedOperation } from '../contract/contract.js';
import type { Deliveries } from './deliveries.js';
import { failureAnswer, runHandler, type HandlerParts, type Routed } from './run-handler.js';
import type { Readiness } from '../contract/operation.js';
import { challengeVersion, type ChallengeVersion } from '../payments/challenge.js';
import type { Charge } from '../payments/charge.js';
import type { Offers } from '../payments/offers.js';
import type { Payment } from '../payments/check-payment.js';
import { canonicalJson, fingerprint, TooDeep } from '../payments/fingerprint.js';
import type { Outcome, Sale, Success } from '../payments/outcome.js';
import type { PaidCall } from '../payments/paid-call.js';
import { receiptHeader, type Receipt } from '../payments/wire.js';
import { Halt, send, sendChallenge, sendError } from './responses.js';
import { sourceOf } from './request-source.js';

export type ServePaidParts = HandlerParts & {
  charge: Charge;
  offers: Offers;
  bodies: BodyReader;
  deliveries: Deliveries;
  /** Whether an order that is paid up front could be worked on. */
  readiness: Readiness;
  /** How long a call that was paid up front waits for its answer unless it prefers otherwise, in ms. */
  holdMs: number;
  /** Aborts when the server shuts down: nothing new is sold, and whoever waits for an order is sent away. */
  closing: AbortSignal;
};

const BUSY_RETRY_SECONDS = 1;
const NO_ROOM =
  'The server is sending too many answers at once. You paid, and the answer is kept: send the same payment again.';
/** The longest wait that a caller may prefer. */
const MAX_HOLD_SECONDS = 600;

/** Answers a call of an operation that costs money: payment → body → validation → charge around the handler → answer. */
export async function servePaid(
  ctx: Context,
  parts: ServePaidParts,
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
  const outcome = await redeem(ctx, parts, route, priced, payment, owner);
  if (parts.closing.aborted) ctx.set('Connection', 'close');
  await sendOutcome(ctx, parts, { priced, payment, asked, owner }, outcome);
}

async function redeem(
  ctx: Context,
  parts: ServePaidParts,
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
  { readiness, log }: ServePaidParts,
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

type Asked = { priced: PricedOperation; payment: Payment; asked: ChallengeVersion; owner: BudgetOwner };

async function sendOutcome(
  ctx: Context,
  parts: ServePaidParts,
  call: Asked,
  outcome: Outcome,
): Promise<void> {
  const { offers } = parts;
  const { priced, payment, asked } = call;
  const receipt = 'receipt' in outcome ? outcome.receipt : undefined;
  const receipts = receiptHeaders(payment, receipt);
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
        offers.refusal(priced, asked, outcome.error, outcome.fresh, payment.checked),
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
  { deliveries }: ServePaidParts,
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
  onClose(req, res, () => {
    delivery.close();
    void (out ? sale.written() : sale.lost());
  });
  send(ctx, status, delivery.body, headers);
  if (delivery.body !== body) ctx.length = body.length;
}

function receiptHeaders(payment: Payment, receipt: Receipt | undefined): Record<string, string> {
  return receipt ? receiptHeader(payment.version, receipt) : {};
}
