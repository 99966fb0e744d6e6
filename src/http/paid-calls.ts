import type { IncomingHttpHeaders } from 'node:http';
import type { PricedOperation } from '../contract/contract.js';
import { quoted } from '../contract/quoted.js';
import type { AnyAsked } from '../contract/operation.js';
import type { Charge } from '../sale/charge.js';
import { UNOBSERVED, type Observer, type Spent, type Transport } from '../observe/observer.js';
import type { Asked } from '../price/price.js';
import type { Carrier } from '../methods/method.js';
import type { Payment, PaymentCheck } from '../sale/check-payment.js';
import { fingerprint, requestText, TooDeep } from '../contract/fingerprint.js';
import { failure, mayHaveMoved, moneyIsWith, type Failure, type Outcome } from '../sale/outcome.js';
import type { PaidCall } from '../sale/paid-call.js';
import { BodiesFull, BodyFault } from './body.js';
import type { BudgetOwner } from './byte-budget.js';
import type { FreeCalls } from './free-calls.js';
import type { AskedCheck } from '../contract/routes.js';
import type { PickUps } from './serve-pick-up.js';
import { OVER_LIMIT, TOO_MANY_CALLS, TOO_MANY_TRANSFERS, type SourceLimits } from './source-limits.js';
import { failureAnswer, runHandler, type HandlerParts } from './run-handler.js';
import { told, type PaidCallResult, type Throttled } from './tell-answer.js';

export type PaidCallParts = HandlerParts & {
  charge: Charge;
  observer?: Observer;
  limits: SourceLimits;
  /** Serves free calls; if undefined, no call is free. */
  freeCalls?: FreeCalls | undefined;
  /** Limits how many times one answer is sent. */
  pickUps: Pick<PickUps, 'takeAgain'>;
  /**
   * Aborts when the server shuts down. The server then accepts no new payments, and immediately answers
   * callers that wait for an order.
   */
  closing: AbortSignal;
};

/** A call of a paid operation as it arrived, over HTTP or MCP. */
export type ArrivedCall = {
  operation: PricedOperation;
  /** The part of the request that may carry the payment. */
  carrier: Carrier;
  transport: Transport;
  requestId: string;
  /** The headers of the request that may name a trace. */
  traceHeaders: IncomingHttpHeaders;
  /** The network address of the caller (see `sourceOf`). */
  source: string;
  /**
   * Reads and validates the input of the call. Called only if the payment is readable, or the price depends
   * on it. @throws BodyFault, BodiesFull
   */
  read: (owner: BudgetOwner) => Promise<AskedCheck>;
  /** Aborts when the caller's connection has closed. */
  gone: AbortSignal;
  /** How long the call waits for an order, or for work that another request began, in ms. */
  holdMs: number;
};

/** `spent` is filled in while the call is served. */
type SpentCall = ArrivedCall & { spent: Spent };

const BUSY_RETRY_SECONDS = 1;

/**
 * Serves a call of a paid operation: payment → body → validation → charge around the handler. All transports
 * use it.
 */
export function servePaidCall(parts: PaidCallParts, call: ArrivedCall): Promise<PaidCallResult> {
  const { observer = UNOBSERVED } = parts;
  const { operation: priced, requestId, transport, traceHeaders } = call;
  const operation = priced.id;
  const spent: Spent = {};
  const asked = { operation, transport, requestId, amount: priced.price.atomic, spent };
  return observer.call({ operation, requestId, transport, headers: traceHeaders }, () =>
    told(observer, asked, () => served(parts, call, spent)),
  );
}

async function served(parts: PaidCallParts, arrived: ArrivedCall, spent: Spent): Promise<PaidCallResult> {
  const { charge, limits } = parts;
  const { source, carrier } = arrived;
  const read = await charge.checkPayment(carrier, arrived.operation, source);
  if (read.kind === 'unpaid') {
    const away = throttledIf(limits.takeUnpaid(source));
    return away ?? unpaid(parts, { ...arrived, read: once(arrived.read) });
  }
  if (!('payment' in read)) return unread(limits, arrived, read);
  const { id, payer } = read.payment.checked;
  const owner = { payment: id, payer, source };
  const call = { ...arrived, spent };
  if (!arrived.operation.pricing.needsBody) return decided(parts, call, read, owner);
  const away = await throttled(parts, call, read.payment);
  if (away)
    return { kind: 'charged', payment: read.payment, owner, outcome: away, operation: call.operation };
  const asked = once(call.read);
  const operation = await atItsPrice(parts, { ...call, read: asked }, owner);
  // An invalid body has no price; the refusal names its fault.
  if (!operation) return chargedAt(parts, { ...call, read: asked }, read.payment, owner);
  if ('status' in operation)
    return unpriced(parts, { ...call, read: asked }, read.payment, { owner, answer: operation });
  const check = await charge.checkPayment(carrier, operation, source);
  if (check.kind === 'unpaid') throw new Error('a payment that was read before cannot be read again');
  // The payment names a transfer that the buyer made. The transfer is looked up again, which may fail.
  if (!('payment' in check)) return unread(limits, arrived, check);
  return decided(parts, { ...call, operation, read: asked }, check, owner);
}

/** Answers a call without a payment: with its result if the call is free, otherwise with its price. */
async function unpaid(parts: PaidCallParts, call: ArrivedCall): Promise<PaidCallResult> {
  const free = await parts.freeCalls?.serve(call);
  if (free?.kind === 'given') return free;
  if (free?.kind === 'failed') return { kind: 'unpriced', answer: free.answer };
  const priced = await atItsPrice(parts, call, strangerAt(call.source));
  if (priced && 'status' in priced) return { kind: 'unpriced', answer: priced };
  const why = free?.why === undefined ? {} : { why: free.why };
  return { kind: 'unpaid', ...why, operation: priced ?? call.operation };
}

/**
 * The operation at the price of this call; undefined if it depends on a body that is invalid or cannot be
 * read. A failure if the price cannot be determined.
 */
async function atItsPrice(
  { handlers, log }: PaidCallParts,
  { operation, read }: ArrivedCall,
  owner: BudgetOwner,
): Promise<PricedOperation | Failure | undefined> {
  if (!operation.pricing.needsBody) return operation;
  const checked = await read(owner).catch((error: unknown) => {
    if (error instanceof BodiesFull || error instanceof BodyFault) return undefined;
    throw error;
  });
  if (!checked?.ok) return undefined;
  try {
    const served = handlers[operation.id];
    const own = served?.price && ((asked: Asked) => served.price?.(asked) ?? '');
    return await quoted(operation, checked.asked, own);
  } catch (error) {
    return failureAnswer(error, log);
  }
}

const NO_PRICE = 'The price of this call cannot be determined at the moment';

/**
 * Nothing new is sold while the price cannot be determined. What the payment bought before stays available.
 */
async function unpriced(
  parts: PaidCallParts,
  call: SpentCall,
  payment: Payment,
  { owner, answer }: { owner: BudgetOwner; answer: Failure },
): Promise<PaidCallResult> {
  const unsold = moneyIsWith(payment, { kind: 'failed', answer } as const);
  if (!(await parts.charge.isKnown(payment))) return { kind: 'unpriced', answer: unsold.answer };
  return chargedAt(parts, call, { ...payment, mismatch: NO_PRICE }, owner);
}

/** All callers at one address that only ask for a price share the memory limit of one payer. */
function strangerAt(source: string): BudgetOwner {
  return { payment: `unpaid ${source}`, payer: `unpaid ${source}`, source };
}

function once(read: ArrivedCall['read']): ArrivedCall['read'] {
  let asked: ReturnType<typeof read> | undefined;
  return owner => (asked ??= read(owner));
}

/** Continues once the price of the call is known, and charges the payment or refuses it. */
async function decided(
  parts: PaidCallParts,
  call: SpentCall,
  check: PaymentCheck & { payment: Payment },
  owner: BudgetOwner,
): Promise<PaidCallResult> {
  if (check.kind === 'mismatch') {
    const offered = await parts.charge.atOfferedPrice(call.carrier, call.operation);
    if (offered) return chargedAsOffered(parts, call, offered, owner);
    const { error, payment } = check;
    if (!(await parts.charge.isKnown(payment)))
      return rejected(parts.limits, call, error, mayHaveMoved(payment));
  }
  return chargedAt(parts, call, check.payment, owner);
}

/** Sells at a price that was offered a moment ago. A refusal's challenge has the current price. */
async function chargedAsOffered(
  parts: PaidCallParts,
  call: SpentCall,
  { operation, payment }: { operation: PricedOperation; payment: Payment },
  owner: BudgetOwner,
): Promise<PaidCallResult> {
  const result = await chargedAt(parts, { ...call, operation }, payment, owner);
  const refused = result.kind === 'charged' && result.outcome.kind === 'refused';
  return refused ? { ...result, operation: call.operation } : result;
}

async function chargedAt(
  parts: PaidCallParts,
  call: SpentCall,
  payment: Payment,
  owner: BudgetOwner,
): Promise<PaidCallResult> {
  const outcome = (await throttled(parts, call, payment)) ?? (await charged(parts, call, payment, owner));
  if (isFaultOfCaller(outcome)) parts.limits.failed(call.source);
  return { kind: 'charged', payment, owner, outcome, operation: call.operation };
}

type Unread = Extract<PaymentCheck, { kind: 'refused' | 'unavailable' }>;

/**
 * The result for a payment that cannot be read, or whose buyer names a transfer that the chain does not show
 * (yet).
 */
function unread(limits: SourceLimits, call: ArrivedCall, check: Unread): PaidCallResult {
  if (check.kind === 'refused') return rejected(limits, call, check.error, check.made);
  const away = countFailed(limits, call.source, check.made);
  if (away) return away;
  const { headers, ...answer } = failure(503, `${check.error}.`);
  const own = { 'Retry-After': String(check.retryAfterSeconds) };
  return { kind: 'unpriced', answer: { ...answer, headers: { ...headers, ...own } } };
}

function rejected(
  limits: SourceLimits,
  { source, operation }: ArrivedCall,
  error: string,
  made = false,
): PaidCallResult {
  return countFailed(limits, source, made) ?? { kind: 'rejected', error, operation };
}

/**
 * Counts a call that is refused anyway, so that a source that keeps calling stays over its limit.
 * @param made whether the payment is a transfer that the buyer has sent or may have sent
 * @returns the refusal, if the source is over its limit
 */
export function countFailed(limits: SourceLimits, source: string, made = false): Throttled | undefined {
  const throttled = throttledIf(limits.turnAway(source), made ? TOO_MANY_TRANSFERS : TOO_MANY_CALLS);
  limits.failed(source);
  return throttled;
}

function throttledIf(seconds: number, error = TOO_MANY_CALLS): Throttled | undefined {
  return seconds === 0 ? undefined : { kind: 'throttled', error, retryAfterSeconds: seconds };
}

/**
 * Whether the payment, the body or the input was wrong. Failures of the server, a backend or a facilitator do
 * not count against the caller.
 */
function isFaultOfCaller(outcome: Outcome): boolean {
  if (outcome.kind === 'refused') return outcome.because === 'unfit' || outcome.because === 'used';
  return outcome.kind === 'invalid' || (outcome.kind === 'failed' && outcome.answer.status === 400);
}

/** Turns away a new payment if its source is over its limit. Writes nothing to the ledger. */
async function throttled(
  { charge, limits }: PaidCallParts,
  { source }: ArrivedCall,
  payment: Payment,
): Promise<Outcome | undefined> {
  if (limits.wait(source) === 0 || (await charge.isKnown(payment))) return undefined;
  const outcome = await charge.turnAway(payment, OVER_LIMIT, Math.max(1, limits.turnAway(source)));
  return outcome.kind === 'unavailable' && !outcome.receipt ? { ...outcome, reportedBy: 'limit' } : outcome;
}

async function charged(
  parts: PaidCallParts,
  { operation, transport, read, gone, holdMs, source, requestId, spent }: SpentCall,
  payment: Payment,
  owner: BudgetOwner,
): Promise<Outcome> {
  const { charge, closing, handlers, limits, pickUps } = parts;
  const { host, backend } = handlers[operation.id] ?? {};
  try {
    const checked = await read(owner);
    if (!checked.ok) throw new BodyFault(checked.error);
    const { asked } = checked;
    return await charge.process({
      operation,
      transport,
      payment,
      requestHash: fingerprint(operation.id, asked),
      work: signal => runHandler(parts, operation.id, { ...asked, signal, caller: payment.checked.payer }),
      gone,
      closing,
      holdMs,
      source,
      limitedSource: limits.isExempt(source) ? undefined : source,
      backend: host ?? backend ?? operation.id,
      requestId,
      spent,
      again: (id, bytes) => pickUps.takeAgain(id, bytes),
      ...(operation.flow === 'upfront' ? { upfront: upfrontOf(parts, operation, asked, payment) } : {}),
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
  payment: Payment,
): NonNullable<PaidCall['upfront']> {
  return {
    request: requestText(asked),
    ready: async () => {
      try {
        await handlers[id]?.ready?.({ ...asked, caller: payment.checked.payer });
        return undefined;
      } catch (error) {
        return failureAnswer(error, log);
      }
    },
  };
}
