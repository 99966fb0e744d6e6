import type { Context } from 'koa';
import type { PricedOperation } from '../contract/contract.js';
import type { ChallengeVersion } from '../payments/challenge.js';
import type { Payment } from '../payments/check-payment.js';
import type { AnswerKeys, AnswerLink } from '../payments/answer-keys.js';
import type { Offers } from '../payments/offers.js';
import type { Outcome, Sale, Success } from '../payments/outcome.js';
import { receiptHeader, type Receipt } from '../payments/wire.js';
import type { BudgetOwner } from './byte-budget.js';
import type { Deliveries } from './deliveries.js';
import { onSent } from './on-close.js';
import { send, sendChallenge, sendError } from './responses.js';

export type SendParts = { offers: Offers; deliveries: Deliveries; answerKeys: AnswerKeys };

export const TOO_MANY_ANSWERS =
  'The server is sending too many answers at once. You paid, and your answer is stored: send the same payment again.';

/** The call that an outcome belongs to. */
export type ChargedCall = {
  priced: PricedOperation;
  payment: Payment;
  asked: ChallengeVersion;
  owner: BudgetOwner;
};

/** Sends the outcome of a paid call. */
export async function sendOutcome(
  ctx: Context,
  parts: SendParts,
  call: ChargedCall,
  outcome: Outcome,
): Promise<void> {
  const { offers } = parts;
  const { priced, payment, asked } = call;
  const receipt = 'receipt' in outcome ? outcome.receipt : undefined;
  const link = isKept(outcome) ? parts.answerKeys.linkOf(payment.checked.id) : undefined;
  const receipts = {
    ...receiptHeaders(payment, receipt),
    ...(link?.url === undefined ? {} : { Location: link.url }),
  };
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
    case 'invalid':
      return sendError(ctx, 400, outcome.error, receipts);
    case 'unavailable':
      return sendError(ctx, 503, withLink(outcome.error, link), {
        ...receipts,
        'Retry-After': String(outcome.retryAfterSeconds),
      });
  }
}

/** Whether the ledger has something for the payment that can be fetched without it, and this caller has proved to be its buyer. */
export function isKept(outcome: Outcome): boolean {
  if (outcome.kind === 'unavailable')
    return !outcome.unread && (outcome.receipt !== undefined || outcome.claimed === true);
  return outcome.kind === 'answer' && outcome.receipt !== undefined;
}

function withLink(error: string, link: AnswerLink | undefined): string {
  return link?.url === undefined
    ? error
    : `${error} Or fetch the answer, free and without the payment: GET ${link.url}`;
}

/** Sends a paid answer. It counts as lost if there is no memory for it now, or if its caller does not read it. */
async function deliver(
  ctx: Context,
  { deliveries }: SendParts,
  { sale, owner, receipts }: ChargedCall & { sale: Sale; receipts: Record<string, string> },
  { status, headers, body }: Success,
): Promise<void> {
  const { req, res } = ctx;
  const delivery = deliveries.open(owner, body, () => req.socket.destroy());
  if (!delivery) {
    await sale.lost();
    return sendError(ctx, 503, TOO_MANY_ANSWERS, { ...receipts, 'Retry-After': '1' });
  }
  onSent(req, res, out => {
    delivery.close();
    void (out ? sale.written() : sale.lost());
  });
  send(ctx, status, delivery.body, headers);
  if (delivery.body !== body) ctx.length = body.length;
}

function receiptHeaders(payment: Payment, receipt: Receipt | undefined): Record<string, string> {
  return receipt ? receiptHeader(payment.version, receipt) : {};
}
