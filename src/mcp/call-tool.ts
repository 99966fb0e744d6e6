import type { Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { objectOf } from '../contract/references.js';
import type { AskedCheck } from '../contract/routes.js';
import type { BudgetOwner } from '../http/byte-budget.js';
import type { Deliveries } from '../http/deliveries.js';
import { servePaidCall, type PaidCallParts } from '../http/paid-calls.js';
import { goesWith } from '../http/send-outcome.js';
import { GIFT_NOT_SENT, TOO_MANY_ANSWERS } from '../http/send-sold.js';
import { liveAnswer, type ServeFreeParts } from '../http/serve-free.js';
import type { Fetched, PickUps } from '../http/serve-pick-up.js';
import type { PaidCallResult } from '../http/tell-answer.js';
import { signedFor, type SigningParts } from '../http/sign-receipts.js';
import type { Caller } from '../ledger/store.js';
import type { Payment } from '../sale/check-payment.js';
import { isUnused, type Outcome, type Sale } from '../sale/outcome.js';
import type { AnswerKeys } from '../http/answer-keys.js';
import type { Method } from '../methods/method.js';
import type { Challenges } from '../methods/methods.js';
import type { Offers } from '../offers/offers.js';
import type { Exchange } from './mcp-exchange.js';
import { clientOf, knows, TASKS_EXTENSION } from './mcp-client.js';
import { withProgress, type Notify } from './progress.js';
import { requestOf, type ToolRequest } from './tool-arguments.js';
import {
  answerResult,
  challengeResult,
  contentOf,
  errorResult,
  failureResult,
  isLinked,
  linkResult,
  mimeTypeOf,
  type PriceResult,
  type ToolResult,
} from './tool-results.js';
import { PICK_UP } from '../contract/reserved-names.js';

export type CallToolParts = PaidCallParts &
  SigningParts &
  ServeFreeParts & {
    contract: Contract;
    offers: Offers;
    answerKeys: AnswerKeys;
    pickUps: PickUps;
    deliveries: Deliveries;
    /** How long a call waits for an order, or for work that another request began, in ms. */
    holdMs: number;
    /** The shop. */
    publicUrl: string;
  };

/** A paid order in progress, for a client that supports tasks: the key of its answer. */
export type Begun = { task: string };

/** The memory for an answer as base64 and JSON, as a multiple of its bytes. */
const GROWTH = 3;
const MAX_PATH_SHOWN = 100;
/** Not part of x402: the receipt that binds a call to its answer. */
const ANSWER_RECEIPT_KEY = 'coinslot/answer-receipt';
const FREE_LEFT_KEY = 'coinslot/free-calls-left';
const NO_SALE: Sale = { written() {}, lost: async () => {}, linked: async () => undefined };

/**
 * Calls the tool that a message names.
 * @param notify set if the caller wants progress notifications
 * @returns undefined if there is no such tool
 */
export async function callTool(
  parts: CallToolParts,
  exchange: Exchange,
  notify?: Notify,
): Promise<ToolResult | PriceResult | Begun | undefined> {
  const { name, arguments: sent, _meta: meta } = objectOf(exchange.message.params);
  const operation = parts.contract.paid.find(({ id }) => id === name);
  if (operation)
    return callPaid(parts, exchange, operation, { sent: objectOf(sent), meta: objectOf(meta), notify });
  if (name === PICK_UP) return callPickUp(parts, exchange, objectOf(sent));
  const free = parts.contract.free.find(({ id, mcp }) => mcp && id === name);
  const route = free && parts.routes.routeOf(free.id);
  if (!route) return undefined;
  const answer = await liveAnswer(parts, route);
  return answer.status === 200
    ? contentOf({ 'Content-Type': 'application/json' }, answer.body)
    : failureResult(answer);
}

async function callPaid(
  parts: CallToolParts,
  exchange: Exchange,
  operation: PricedOperation,
  { sent, meta, notify }: { sent: Json; meta: Json; notify: Notify | undefined },
): Promise<ToolResult | PriceResult | Begun> {
  const { offers, holdMs, publicUrl } = parts;
  const { gone, source, requestId, headers } = exchange;
  const client = clientOf(exchange.message);
  const asTask = operation.flow === 'upfront' && knows(client, TASKS_EXTENSION);
  const request = requestOf(operation, sent);
  // The call was counted as a message; from here on it is counted as a call.
  parts.limits.giveBack(source);
  let paymentId: string | undefined;
  const served = servePaidCall(parts, {
    operation,
    // Hosts that can't set metadata can set headers of the HTTP request, which carries this one call.
    carrier: { meta, headers },
    transport: 'mcp',
    requestId,
    traceHeaders: headers,
    source,
    read: async ({ payment }) => {
      paymentId = payment;
      return typeof request === 'string'
        ? { ok: false, error: request }
        : checkRequest(parts, operation, request);
    },
    gone,
    // For a client that supports tasks, an order is a task: the call is answered as soon as the order is paid.
    holdMs: asTask ? 0 : holdMs,
  });
  const result = await withProgress(served, parts.charge, () => paymentId, notify);
  if (result.kind === 'throttled') return errorResult(503, result.error, result);
  if (result.kind === 'unpriced') return failureResult(result.answer);
  if (result.kind === 'given') return giftResult(parts, exchange, result);
  const { operation: priced } = result;
  const challenged = (of: (asked: Method) => Challenges, receipt?: Json): ToolResult | PriceResult => {
    const challenges = of(offers.methods.askedBy(exchange.query));
    return challengeResult(priced, { challenges, client, publicUrl, receipt });
  };
  if (result.kind === 'unpaid') {
    const { why } = result;
    return challenged(asked =>
      why === undefined ? offers.challenge(priced, asked, 'mcp') : offers.refusal(priced, asked, why, true),
    );
  }
  if (result.kind === 'rejected')
    return challenged(asked => offers.refusal(priced, asked, result.error, true));
  const { outcome, payment, owner } = result;
  if (outcome.kind === 'invalid') return errorResult(400, outcome.error);
  const { method } = payment;
  const begun = asTask ? begunBy(parts, outcome) : undefined;
  if (begun) return begun;
  if (outcome.kind !== 'refused')
    return resultOf(parts, exchange, { outcome, payment, method, owner, kept: outcome.kept });
  const { error, receipt } = outcome;
  return challenged(
    asked => offers.refusal(priced, asked, error, isUnused(outcome), payment.checked),
    receipt && method.receiptMeta(receipt, { sold: false }),
  );
}

function begunBy({ answerKeys }: CallToolParts, outcome: Outcome): Begun | undefined {
  if (outcome.kind !== 'unavailable' || !outcome.receipt?.success || !outcome.kept) return undefined;
  return { task: answerKeys.linkOf(outcome.kept).key };
}

/** A free answer, from the same memory budget as sold ones. */
function giftResult(
  { deliveries }: CallToolParts,
  exchange: Exchange,
  { answer, owner, left }: Extract<PaidCallResult, { kind: 'given' }>,
): ToolResult {
  const result = exchange.carry(deliveries, owner, {
    bytes: GROWTH * answer.body.length,
    sale: NO_SALE,
    build: () => answerResult(answer, { [FREE_LEFT_KEY]: left }, undefined),
  });
  return result ?? errorResult(503, GIFT_NOT_SENT, { retryAfterSeconds: 1 });
}

/** The same check as over HTTP: some values in a path would address another operation. */
function checkRequest(
  { routes }: CallToolParts,
  { id, method }: PricedOperation,
  { path, query, body, headers }: ToolRequest,
): AskedCheck {
  const route = routes.match(method, path);
  if (route.kind === 'operation' && route.id === id) return routes.checkAsked(route, query, body, headers);
  return {
    ok: false,
    error: `these arguments lead to ${path.slice(0, MAX_PATH_SHOWN)}, which is not a path of ${id}`,
  };
}

/** The free tool that fetches an answer by its key. */
async function callPickUp(parts: CallToolParts, exchange: Exchange, { key }: Json): Promise<ToolResult> {
  const found = await parts.pickUps.get(typeof key === 'string' ? key : '');
  return found.kind === 'nothing' ? errorResult(404, found.error) : fetched(parts, exchange, found);
}

/** The result for an answer that was found by its key. */
export function fetched(
  parts: CallToolParts,
  exchange: Exchange,
  { kept, payer, method, outcome }: Extract<Fetched, { kind: 'found' }>,
): Promise<ToolResult> {
  const owner = { payment: kept.id, payer, source: exchange.source };
  return resultOf(parts, exchange, { outcome, method, owner, kept });
}

/** The answer that a resource link names; undefined if there is none, or not enough memory for it. */
export async function readAnswer(
  parts: CallToolParts,
  exchange: Exchange,
  uri: string,
): Promise<{ mimeType: string; blob: string } | undefined> {
  const found = await parts.pickUps.get(uri);
  if (found.kind === 'nothing' || found.outcome.kind !== 'sold') return undefined;
  const { kept, payer, outcome } = found;
  const { headers, body } = outcome.answer;
  const owner = { payment: kept.id, payer, source: exchange.source };
  return exchange.carry(parts.deliveries, owner, {
    bytes: GROWTH * body.length,
    sale: outcome.sale,
    build: () => ({ mimeType: mimeTypeOf(headers), blob: body.toString('base64') }),
  });
}

type Kept = {
  outcome: Exclude<Outcome, { kind: 'refused' | 'invalid' }>;
  method: Method;
  /** Undefined if the answer is fetched without its payment. */
  payment?: Payment;
  owner: BudgetOwner;
  kept: Caller | undefined;
};

/** The result for an answer, or for a call whose answer is still to come. */
async function resultOf(
  parts: CallToolParts,
  exchange: Exchange,
  { outcome, method, payment, owner, kept }: Kept,
): Promise<ToolResult> {
  const { deliveries, answerKeys } = parts;
  const goes = goesWith(outcome, payment);
  const unsigned = outcome.receipt && method.receiptMeta(outcome.receipt, goes);
  const link = kept && answerKeys.linkOf(kept);
  if (outcome.kind === 'unavailable')
    return errorResult(503, outcome.error, { ...outcome, receipt: unsigned, link });
  if (outcome.kind === 'failed') return failureResult(outcome.answer, unsigned, link);
  const { answer, sale } = outcome;
  const signed = await signedFor(parts, outcome);
  const receipt = signed
    ? {
        ...method.receiptMeta(outcome.receipt, { ...goes, signed: signed.receipt }),
        [ANSWER_RECEIPT_KEY]: signed.answer,
      }
    : unsigned;
  const meta = objectOf(objectOf(exchange.message.params)._meta);
  if (link?.url !== undefined && isLinked(answer, meta)) {
    const { operation } = outcome.call;
    const keptUntil = await sale.linked();
    return linkResult({
      operation,
      answer,
      receipt,
      link: { ...link, url: link.url },
      keptUntil,
      client: clientOf(exchange.message),
    });
  }
  const result = exchange.carry(deliveries, owner, {
    bytes: GROWTH * answer.body.length,
    sale,
    build: () => answerResult(answer, receipt, link),
  });
  if (result) return result;
  await sale.lost();
  return errorResult(503, TOO_MANY_ANSWERS, { retryAfterSeconds: 1, receipt: unsigned, link });
}
