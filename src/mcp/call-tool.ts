import type { Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { objectOf } from '../contract/references.js';
import type { Deliveries } from '../http/deliveries.js';
import { servePaidCall, type PaidCallParts } from '../http/paid-calls.js';
import { TOO_MANY_ANSWERS } from '../http/send-outcome.js';
import { liveAnswer, type ServeFreeParts } from '../http/serve-free.js';
import type { Offers } from '../payments/offers.js';
import type { Exchange } from './mcp-exchange.js';
import { paymentHeaders } from './payment-meta.js';
import { requestOf } from './tool-arguments.js';
import {
  answerResult,
  challengeResult,
  contentOf,
  errorResult,
  failureResult,
  type ToolResult,
} from './tool-results.js';

export type CallToolParts = PaidCallParts &
  ServeFreeParts & {
    contract: Contract;
    offers: Offers;
    deliveries: Deliveries;
    /** How long a call waits for an order, or for work that another request began, in ms. */
    holdMs: number;
  };

/** Base64 and its JSON hold this many times the bytes of an answer. */
const GROWTH = 3;

/** Calls the tool that a message names. @returns undefined if there is none of that name */
export async function callTool(parts: CallToolParts, exchange: Exchange): Promise<ToolResult | undefined> {
  const { name, arguments: sent, _meta: meta } = objectOf(exchange.message.params);
  const operation = parts.contract.paid.find(({ id }) => id === name);
  if (operation) return callPaid(parts, exchange, operation, objectOf(sent), objectOf(meta));
  const free = parts.contract.free.find(({ id, mcp }) => mcp && id === name);
  if (!free) return undefined;
  const answer = await liveAnswer(parts, free.id);
  return answer.status === 200
    ? contentOf({ 'Content-Type': 'application/json' }, answer.body)
    : failureResult(answer);
}

async function callPaid(
  parts: CallToolParts,
  exchange: Exchange,
  operation: PricedOperation,
  sent: Json,
  meta: Json,
): Promise<ToolResult> {
  const { routes, offers, holdMs, deliveries } = parts;
  const { gone, source } = exchange;
  const request = requestOf(operation, sent);
  const raw = typeof request === 'string' ? [] : request.raw;
  const route = { kind: 'operation', id: operation.id, priced: operation, raw } as const;
  const result = await servePaidCall(parts, {
    route,
    operation,
    headers: paymentHeaders(meta),
    source,
    read: async () =>
      typeof request === 'string'
        ? { ok: false, error: request }
        : routes.checkAsked(route, request.query, request.body),
    gone,
    holdMs,
  });
  if (result.kind === 'unpaid') return challengeResult(operation, offers.challenge(operation, 2));
  if (result.kind === 'rejected')
    return challengeResult(operation, offers.refusal(operation, 2, result.error, true));
  const { outcome, payment, owner } = result;
  switch (outcome.kind) {
    case 'answer': {
      if (!('sale' in outcome)) return failureResult(outcome.answer, outcome.receipt);
      const { answer, receipt, sale } = outcome;
      if (exchange.carry(deliveries, owner, GROWTH * answer.body.length, sale))
        return answerResult(answer, receipt);
      await sale.lost();
      return errorResult(503, TOO_MANY_ANSWERS, { retryAfterSeconds: 1, receipt });
    }
    case 'refused': {
      const { error, fresh, receipt } = outcome;
      return challengeResult(operation, offers.refusal(operation, 2, error, fresh, payment.checked), receipt);
    }
    case 'invalid':
      return errorResult(400, outcome.error);
    case 'unavailable':
      return errorResult(503, outcome.error, outcome);
  }
}
