import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Log } from '../net/log.js';
import { validateHeaderValue } from 'node:http';
import { ContractFault, type Contract } from '../contract/contract.js';
import type { OrderWork } from '../payments/order-worker.js';
import { type Answer, type Failure } from '../payments/outcome.js';
import type {
  Call,
  Handler,
  Handlers,
  OperationId,
  OrderRef,
  OrderSizes,
  PaidOperationId,
} from '../contract/operation.js';
import type { Route, Routes } from './router.js';
import { UpstreamFailure } from '../net/failure.js';

export type Routed = Extract<Route, { kind: 'operation' }>;
export type HandlerParts = { handlers: Handlers; routes: Routes; log: Log };

export const JSON_TYPE = 'application/json; charset=utf-8';
const UNAVAILABLE_RETRY_SECONDS = 5;
const STATUS_OF = { invalid: 400, failed: 502, unavailable: 503 } as const;

/** Runs the handler and turns its result or error into an answer that conforms to the contract. Never rejects. */
export async function runHandler(
  { handlers, routes, log }: HandlerParts,
  route: Routed,
  call: { body: object; signal: AbortSignal; caller: string; order?: OrderRef },
): Promise<Answer> {
  const id = route.id as PaidOperationId;
  try {
    const handler = handlers[id] as unknown as Handler<'summarize'>;
    const reply = await handler(call as unknown as Call<'summarize'>);
    const fault = routes.checkReply(route.operation, reply) ?? unsendable(reply.headers);
    if (fault) {
      log.error({ operation: id, fault }, 'the answer of a handler violates the contract');
      return errorAnswer(
        502,
        `The backend gave an unusable answer.${call.order ? '' : ` ${NOT_CHARGED}; try again.`}`,
      );
    }
    return reply.status === 200
      ? answerOf(reply.body, reply.headers, mimeOf(route))
      : errorAnswer(reply.status, reply.body.error, reply.headers);
  } catch (error) {
    // The call was cancelled because its caller left or the server is shutting down. That is no error.
    if (call.signal.aborted)
      return errorAnswer(503, 'The call was cancelled before it was finished.', { 'Retry-After': '1' });
    return failureAnswer(error, log, call.order !== undefined);
  }
}

/** Finds headers that Node would refuse to send, before the payment is settled. */
function unsendable(headers: Record<string, string> = {}): string | undefined {
  try {
    for (const [name, value] of Object.entries(headers)) validateHeaderValue(name, value);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * The answer to a call whose handler threw: 400, 502 or 503 by the kind of failure; 502 for an unexpected error. `paid` is true
 * if the call was paid before its work.
 */
export function failureAnswer(error: unknown, log: Log, paid = false): Failure {
  if (!(error instanceof UpstreamFailure)) {
    log.error({ error }, 'handler failed');
    return errorAnswer(502, `The backend failed.${paid ? '' : ` ${NOT_CHARGED}; try again.`}`);
  }
  if (error.kind !== 'invalid') log.warn({ error, cause: error.cause }, 'upstream failed');
  const seconds = error.retryAfterSeconds ?? UNAVAILABLE_RETRY_SECONDS;
  const headers: Record<string, string> =
    error.kind === 'unavailable' ? { 'Retry-After': String(seconds) } : {};
  const told = paid || error.message.includes(NOT_CHARGED);
  const message = told ? error.message : `${error.message.replace(/\.$/, '')}. ${NOT_CHARGED}.`;
  return errorAnswer(STATUS_OF[error.kind], message, headers);
}

function errorAnswer(
  status: Failure['status'],
  error: string,
  headers: Record<string, string> = {},
): Failure {
  return {
    status,
    headers: { ...headers, 'Content-Type': JSON_TYPE },
    body: Buffer.from(JSON.stringify({ error })),
  };
}

function mimeOf({ priced }: Routed): string {
  return priced?.mimeType === 'application/json' ? JSON_TYPE : (priced?.mimeType ?? JSON_TYPE);
}

function answerOf(body: unknown, headers: Record<string, string> | undefined, mime: string): Answer {
  const bytes = body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
  return { status: 200, headers: { ...headers, 'Content-Type': mime }, body: bytes };
}

/** The route of an operation by its id, for work without a request. */
function routeOf(routes: Routes, path: string, id: OperationId): Routed {
  const route = routes.match('POST', path);
  if (route.kind !== 'operation' || route.id !== id) throw new Error(`no route for ${id}`);
  return route;
}

/** Runs the handler for an order, with the request stored in the ledger. */
export function orderWork(handlerParts: HandlerParts, contract: Contract, sizes: OrderSizes): OrderWork {
  const upfront = contract.paid.filter(operation => operation.flow === 'upfront');
  const [operation] = upfront;
  if (!operation || upfront.length > 1)
    throw new ContractFault('Exactly one operation must have the flow upfront');
  const route = routeOf(handlerParts.routes, operation.path, operation.id);
  const sizeOf = sizes[operation.id];
  return {
    wanted: request => sizeOf?.(JSON.parse(request) as never) ?? 1,
    work: async ({ id, request, deadline, attempt }, signal) => {
      const body = JSON.parse(request) as object;
      const order = { id, deadline, attempt };
      const answer = await runHandler(handlerParts, route, { body, signal, caller: id, order });
      if (answer.status === 200) return { kind: 'answer', answer };
      const { error } = JSON.parse(answer.body.toString('utf8')) as { error: string };
      return { kind: 'failed', error };
    },
  };
}
