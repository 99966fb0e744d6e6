import type { NoAnswerKind } from './http-client.js';

/**
 * Why an upstream could not serve a call:
 * - `invalid`: no upstream could serve the caller's input (answered as 400);
 * - `failed`: the upstream gave a wrong answer, or none in time (502);
 * - `unavailable`: it can't be reached, is overloaded, or our queue for it is full (503).
 */
export type FailureKind = 'invalid' | 'failed' | 'unavailable';

/** Who is responsible for unsold work. `none`: no work was done. */
export type Fault = 'caller' | 'backend' | 'none';

/**
 * The only error that an upstream throws. `message` is sent to the caller unchanged: it says what to do next and contains no URL, key
 * or internal detail. Internal detail belongs in `cause`, which is logged and never sent.
 */
export class UpstreamFailure extends Error {
  readonly kind: FailureKind;
  /** When to retry, in whole seconds, if the upstream or the queue gave a hint. */
  readonly retryAfterSeconds?: number;
  /** By default the caller if the kind is `invalid`, otherwise the backend. */
  readonly fault: Fault;

  constructor(
    kind: FailureKind,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number; fault?: Fault } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'UpstreamFailure';
    this.kind = kind;
    this.fault = options.fault ?? (kind === 'invalid' ? 'caller' : 'backend');
    if (options.retryAfterSeconds !== undefined) this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/**
 * The rule for all upstreams: one that can't be reached or reports overload (429, 503) is `unavailable`; every other fault is `failed`,
 * such as another error status, or no complete answer in time.
 * @param what the status of the answer, or why there is none
 */
export function failureKind(what: number | NoAnswerKind): 'failed' | 'unavailable' {
  return what === 429 || what === 503 || what === 'unreachable' ? 'unavailable' : 'failed';
}

const MAX_RETRY_AFTER_SECONDS = 3_600;

/** Reads a `Retry-After` header (RFC 9110: seconds or an HTTP date) as whole seconds from 1 to 3 600; undefined if it has no valid value. */
export function readRetryAfter(header: string | string[] | undefined, now = Date.now()): number | undefined {
  const value = (Array.isArray(header) ? header[0] : header)?.trim();
  if (!value) return undefined;
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now) / 1_000);
  if (!Number.isFinite(seconds)) return undefined;
  return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
}

const MAX_BACKOFF_SECONDS = 120;

/**
 * How many seconds to wait after a refusal, from 1 to 120: from `Retry-After`, or else from `x-ratelimit-reset`, which servers send
 * as seconds from now, Unix seconds or Unix milliseconds.
 */
export function backoffSeconds(
  headers: { 'retry-after'?: string | undefined; 'x-ratelimit-reset'?: string | undefined },
  now = Date.now(),
): number | undefined {
  const retryAfter = readRetryAfter(headers['retry-after'], now);
  if (retryAfter !== undefined) return Math.min(retryAfter, MAX_BACKOFF_SECONDS);
  const reset = Number(headers['x-ratelimit-reset'] ?? Number.NaN);
  if (!Number.isFinite(reset) || reset < 0) return undefined;
  const ahead = reset > 1e11 ? (reset - now) / 1_000 : reset > 1e8 ? reset - now / 1_000 : reset;
  return Math.min(Math.max(Math.ceil(ahead), 1), MAX_BACKOFF_SECONDS);
}
