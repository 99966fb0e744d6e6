import { NoAnswer } from '../../net/http-client.js';
import { failureKind, UpstreamFailure } from '../../net/failure.js';

/** JSON-RPC codes of temporary errors: rate limit, node behind, slot not reached yet. */
const NOT_NOW = new Set<unknown>([429, -32429, -32005, -32004, -32014, -32016]);

/** JSON-RPC codes of errors about the transaction in the request: it can't be read, or a signature is wrong. */
const OF_TRANSACTION = new Set<unknown>([-32602, -32003]);

/** A JSON-RPC error. `message` does not contain the server's URL. */
export class RpcError extends Error {
  readonly code: unknown;

  constructor(code: unknown, message: string) {
    super(`${String(code)}: ${message}`);
    this.code = code;
  }
}

/** An RPC server gave a well-formed answer that can't be trusted: it serves another chain, or its height can't be true. */
export class UntrustedAnswer extends Error {}

export const badAnswer = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the Solana RPC server gave no usable answer: try again', { cause });
export const timedOut = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the Solana RPC server did not answer in time: try again', { cause });
export const unreachable = (cause: unknown, retryAfterSeconds = 5): UpstreamFailure =>
  new UpstreamFailure('unavailable', 'the Solana chain is not reachable: try again later', {
    cause,
    retryAfterSeconds,
  });

/** Converts any error of a read to an `UpstreamFailure`. */
export function asFailure(cause: unknown): UpstreamFailure {
  if (cause instanceof UpstreamFailure) return cause;
  if (cause instanceof NoAnswer) return transportFailure(cause);
  if (cause instanceof UntrustedAnswer) return unreachable(cause);
  if (cause instanceof RpcError && NOT_NOW.has(cause.code)) return unreachable(cause);
  return badAnswer(cause);
}

function transportFailure({ kind, cause }: NoAnswer): UpstreamFailure {
  if (kind === 'late' || kind === 'aborted') return timedOut(cause);
  return failureKind(kind) === 'unavailable' ? unreachable(cause) : badAnswer(cause);
}

/** The RPC server's objection to the transaction in a request; undefined if the request failed for another reason. */
export function aboutTransaction(error: unknown): string | undefined {
  const cause = error instanceof UpstreamFailure ? error.cause : undefined;
  return cause instanceof RpcError && OF_TRANSACTION.has(cause.code) ? cause.message : undefined;
}
