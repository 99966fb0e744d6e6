import type { IncomingHttpHeaders } from 'node:http';
import type { PricedOperation } from '../contract/contract.js';
import type { AnyAsked } from '../contract/operation.js';
import type { Charge } from '../payments/charge.js';
import type { Payment } from '../payments/check-payment.js';
import { fingerprint, requestText, TooDeep } from '../payments/fingerprint.js';
import type { Outcome } from '../payments/outcome.js';
import type { PaidCall } from '../payments/paid-call.js';
import { BodiesFull, BodyFault } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import type { AskedCheck, Routed } from './router.js';
import { failureAnswer, runHandler, type HandlerParts } from './run-handler.js';

export type PaidCallParts = HandlerParts & {
  charge: Charge;
  /** Aborts when the server shuts down: it accepts no new payments, and callers that wait for an order are sent away. */
  closing: AbortSignal;
};

/** A call of a paid operation as it arrived, over HTTP or MCP. */
export type ArrivedCall = {
  route: Routed;
  operation: PricedOperation;
  /** May carry the payment. */
  headers: IncomingHttpHeaders;
  /** Where it comes from (see `sourceOf`). */
  source: string;
  /** Reads and validates what is asked for. Called only if the payment is readable. @throws BodyFault, BodiesFull */
  read: (owner: BudgetOwner) => Promise<AskedCheck>;
  /** Aborts when the caller's connection has closed. */
  gone: AbortSignal;
  /** How long it waits for an order, or for work that another request began, in ms. */
  holdMs: number;
};

/** `rejected`: the payment can't be read or is for another offer, and nothing was sold for it: 402. */
export type PaidCallResult =
  | { kind: 'unpaid' }
  | { kind: 'rejected'; error: string }
  | { kind: 'charged'; payment: Payment; owner: BudgetOwner; outcome: Outcome };

const BUSY_RETRY_SECONDS = 1;

/** Serves a call of a paid operation: payment → body → validation → charge around the handler. One way for all transports. */
export async function servePaidCall(parts: PaidCallParts, call: ArrivedCall): Promise<PaidCallResult> {
  const { charge } = parts;
  const check = await charge.checkPayment(call.headers, call.operation);
  if (check.kind === 'unpaid') return check;
  if (check.kind === 'refused') return { kind: 'rejected', error: check.error };
  const { payment } = check;
  if (check.kind === 'mismatch' && !(await charge.isKnown(payment)))
    return { kind: 'rejected', error: check.error };
  const { id, payer } = payment.checked;
  const owner = { payment: id, payer, source: call.source };
  return { kind: 'charged', payment, owner, outcome: await charged(parts, call, payment, owner) };
}

async function charged(
  parts: PaidCallParts,
  { route, operation, read, gone, holdMs, source }: ArrivedCall,
  payment: Payment,
  owner: BudgetOwner,
): Promise<Outcome> {
  const { charge, closing } = parts;
  try {
    const checked = await read(owner);
    if (!checked.ok) throw new BodyFault(checked.error);
    const { asked } = checked;
    return await charge.process({
      operation,
      payment,
      requestHash: fingerprint(operation.id, asked),
      work: signal => runHandler(parts, route, { ...asked, signal, caller: payment.checked.payer }),
      gone,
      closing,
      holdMs,
      source,
      ...(operation.flow === 'upfront' ? { upfront: upfrontOf(parts, operation, asked) } : {}),
    });
  } catch (error) {
    if (error instanceof BodiesFull) {
      const why = 'The server is busy and the body of this request arrived too slowly';
      return charge.turnAway(payment, why, BUSY_RETRY_SECONDS);
    }
    if (!(error instanceof BodyFault || error instanceof TooDeep)) throw error;
    return { kind: 'invalid', error: `${error.message}. ${await charge.moneyNote(payment)}` };
  }
}

function upfrontOf(
  { handlers, log }: PaidCallParts,
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
