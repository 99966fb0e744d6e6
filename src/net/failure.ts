/**
 * Why an upstream could not serve a call:
 * - `invalid`: no upstream could serve the caller's input (answered as 400);
 * - `failed`: the upstream answered wrongly or not in time (502);
 * - `unavailable`: it can't be reached, is overloaded, or our queue for it is full (503).
 */
export type FailureKind = 'invalid' | 'failed' | 'unavailable';

/**
 * The only error that an upstream throws. `message` is sent to the caller unchanged: it says what to do next and contains no URL, key
 * or internal detail. Internal detail belongs in `cause`, which is logged and never sent.
 */
export class UpstreamFailure extends Error {
  readonly kind: FailureKind;
  /** When to retry, in whole seconds, if the upstream or the queue gave a hint. */
  readonly retryAfterSeconds?: number;

  constructor(
    kind: FailureKind,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'UpstreamFailure';
    this.kind = kind;
    if (options.retryAfterSeconds !== undefined) this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

const MAX_RETRY_AFTER_SECONDS = 3_600;

/** Reads a `Retry-After` header (RFC 9110: seconds or an HTTP date) as whole seconds from 1 to 3 600, else undefined. */
export function readRetryAfter(header: string | string[] | undefined, now = Date.now()): number | undefined {
  const value = (Array.isArray(header) ? header[0] : header)?.trim();
  if (!value) return undefined;
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : Math.ceil((Date.parse(value) - now) / 1_000);
  if (!Number.isFinite(seconds)) return undefined;
  return Math.min(Math.max(seconds, 1), MAX_RETRY_AFTER_SECONDS);
}
