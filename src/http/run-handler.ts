import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Log } from '../net/log.js';
import type { OrderWork } from '../sale/order-worker.js';
import { isSuccess, type Answer, type Failure } from '../sale/outcome.js';
import type { AnyCall, AnyReply, Serving } from '../contract/operation.js';
import { headerFault, headerOf } from '../contract/answer-headers.js';
import { readRequestText } from '../contract/fingerprint.js';
import { isSoldStatus } from '../contract/sold-status.js';
import type { RecentCalls } from './recent-calls.js';
import { formOf } from '../contract/answer-forms.js';
import type { Routed, Routes } from '../contract/routes.js';
import { readRetryAfter, UpstreamFailure } from '../net/failure.js';

export type HandlerParts = {
  handlers: Serving;
  routes: Routes;
  log: Log;
  /** Gets a report of each answer that violates the contract. */
  calls?: Pick<RecentCalls, 'failed'>;
};

export const JSON_TYPE = 'application/json; charset=utf-8';
const UNAVAILABLE_RETRY_SECONDS = 5;
const STATUS_OF = { invalid: 400, failed: 502, unavailable: 503 } as const;

/** Runs the handler and turns its result or error into an answer that conforms to the contract. Never rejects. */
export async function runHandler(
  { handlers, routes, log, calls }: HandlerParts,
  id: string,
  call: AnyCall,
): Promise<Answer> {
  try {
    const route = routes.routeOf(id);
    if (!route) throw new Error(`${id} is no operation`);
    const reply = await routes.handle(id, call);
    const fault = routes.checkReply(route, reply) ?? headerFault(reply.status, reply.headers);
    if (fault) {
      log.error({ operation: id, fault }, 'the answer of a handler violates the contract');
      const backend = handlers[id]?.backend;
      if (backend !== undefined) calls?.failed(backend, 'the answer does not conform to the contract');
      return errorAnswer(
        502,
        `The backend gave an unusable answer.${call.order ? '' : ` ${NOT_CHARGED}; try again.`}`,
      );
    }
    return answerOf(reply, route);
  } catch (error) {
    // The call was cancelled because its caller left or the server is shutting down. That is not an error.
    if (call.signal.aborted)
      return errorAnswer(503, 'The call was cancelled before it was finished.', { 'Retry-After': '1' });
    return failureAnswer(error, log, call.order !== undefined);
  }
}

/**
 * The answer to a call whose handler threw: 400, 502 or 503, depending on the kind of failure; 502 for an unexpected error. `paid` is true
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
  return { ...errorAnswer(STATUS_OF[error.kind], message, headers), fault: error.fault };
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

/** A checked reply as bytes. A handler may name the content type; otherwise it is the first one that the contract declares for its status. */
function answerOf(reply: AnyReply, { priced, given }: Routed): Answer {
  const { status, headers = {}, body } = reply;
  if (!isSoldStatus(status))
    return errorAnswer(status as Failure['status'], (body as { error: string }).error, headers);
  const forms = (priced ?? given)?.answers.filter(each => each.status === status) ?? [];
  const form = formOf(forms, reply);
  if (form?.kind === 'none') return { status, headers, body: Buffer.alloc(0) };
  const named = headerOf(headers, 'content-type') !== undefined;
  const type: Record<string, string> = named
    ? {}
    : { 'Content-Type': withCharset(form?.mimeType ?? JSON_TYPE) };
  return { status, headers: { ...headers, ...type }, body: bytesOf(body, form?.kind) };
}

function bytesOf(body: unknown, kind: string | undefined): Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body);
  return Buffer.from(kind === 'text' && typeof body === 'string' ? body : JSON.stringify(body));
}

/** The server's own encoding is UTF-8. */
function withCharset(mimeType: string): string {
  return /^(text\/[^;]+|application\/json)$/i.test(mimeType) ? `${mimeType}; charset=utf-8` : mimeType;
}

/** Runs the handler for an order, with the request stored in the ledger. */
export function orderWork(handlerParts: HandlerParts): OrderWork {
  const { routes, handlers } = handlerParts;
  return {
    wanted: ({ operation, request }) => handlers[operation]?.wanted?.(readRequestText(request)) ?? 0,
    work: async ({ id, payer, operation, request, deadline, attempt, extend }, signal) => {
      const { priced } = routes.routeOf(operation) ?? {};
      if (!priced) return { kind: 'failed', error: 'This operation is no longer sold.' };
      const extended = async () => {
        const next = await extend();
        return next && { id, ...next };
      };
      const order = { id, deadline, attempt, extend: extended };
      const headers = priced.parameters.some(each => each.in === 'header') ? { headers: {} } : {};
      const call = { ...headers, ...readRequestText(request), signal, caller: payer, order };
      const answer = await runHandler(handlerParts, operation, call);
      if (isSuccess(answer)) return { kind: 'answer', answer };
      const { error } = JSON.parse(answer.body.toString('utf8')) as { error: string };
      const retryAfterSeconds = readRetryAfter(headerOf(answer.headers, 'retry-after')) ?? 0;
      // The request can no longer be corrected, so another attempt would fail the same way.
      return { kind: 'failed', error, final: answer.status === 400, retryAfterSeconds };
    },
  };
}
