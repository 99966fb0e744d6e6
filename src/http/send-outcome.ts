import type { Context } from 'koa';
import type { PricedOperation } from '../contract/contract.js';
import type { Method, Receipted } from '../methods/method.js';
import type { Payment } from '../sale/check-payment.js';
import type { AnswerKeys, AnswerLink } from './answer-keys.js';
import type { Offers } from '../offers/offers.js';
import { isUnused, type Outcome } from '../sale/outcome.js';
import type { BudgetOwner } from './byte-budget.js';
import { send, sendChallenge, sendError } from './responses.js';
import { sendSold, type SellingParts } from './send-sold.js';
import { signedHeadersOf, type SigningParts } from './sign-receipts.js';

export type SendParts = SellingParts & SigningParts & { offers: Offers; answerKeys: AnswerKeys };

/** The call that an outcome belongs to. */
export type ChargedCall = {
  priced: PricedOperation;
  payment: Payment;
  /** The payment method whose challenge a refusal carries. */
  asked: Method;
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
  const { priced, payment, asked, owner } = call;
  const link = outcome.kept && parts.answerKeys.linkOf(outcome.kept);
  const own = {
    ...(outcome.receipt ? payment.method.receiptHeaders(outcome.receipt, goesWith(outcome, payment)) : {}),
    ...(link?.url === undefined ? {} : { Location: link.url }),
  };
  switch (outcome.kind) {
    case 'sold': {
      const how = { goesWith: goesWith(outcome, payment), others: own };
      const signed = await signedHeadersOf(parts, payment.method, outcome, how);
      return sendSold(ctx, parts, { ...outcome, owner, own, signed });
    }
    case 'failed': {
      const { status, headers, body } = outcome.answer;
      return send(ctx, status, body, { ...headers, ...own, 'Cache-Control': 'no-store' });
    }
    case 'refused':
      return sendChallenge(
        ctx,
        offers.refusal(priced, asked, outcome.error, isUnused(outcome), payment.checked, own),
        own,
      );
    case 'invalid':
      return sendError(ctx, 400, outcome.error, own);
    case 'unavailable':
      return sendError(ctx, 503, withLink(outcome.error, link), {
        ...own,
        'Retry-After': String(outcome.retryAfterSeconds),
      });
  }
}

/** Describes the answer that is sent together with the receipt of an outcome. */
export function goesWith({ kind }: Pick<Outcome, 'kind'>, payment?: Pick<Payment, 'challenge'>): Receipted {
  return { sold: kind === 'sold', challenge: payment?.challenge };
}

function withLink(error: string, link: AnswerLink | undefined): string {
  return link?.url === undefined
    ? error
    : `${error} Or fetch the answer, free and without the payment: GET ${link.url}`;
}
