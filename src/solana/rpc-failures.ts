import { NoAnswer } from '../net/http-client.js';
import { UpstreamFailure } from '../net/failure.js';

/** JSON-RPC codes that mean "not now": rate limit, node behind, slot not reached yet. */
const NOT_NOW = new Set<unknown>([429, -32429, -32005, -32004, -32014, -32016]);

/** A JSON-RPC error. `message` holds nothing of the server's URL. */
export class RpcError extends Error {
  readonly code: unknown;

  constructor(code: unknown, message: string) {
    super(`${String(code)}: ${message}`);
    this.code = code;
  }
}

/** An RPC server answers as it should, and what it says can't be believed: it serves another chain, or its height can't be true. */
export class NotBelieved extends Error {}

export const wrong = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the Solana RPC server gave no usable answer: try again', { cause });
export const late = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the Solana RPC server did not answer in time: try again', { cause });
export const down = (cause: unknown, retryAfterSeconds = 5): UpstreamFailure =>
  new UpstreamFailure('unavailable', 'the Solana chain is not reachable: try again later', {
    cause,
    retryAfterSeconds,
  });

/** Any error of a read, as the failure it means. */
export function asFailure(cause: unknown): UpstreamFailure {
  if (cause instanceof UpstreamFailure) return cause;
  if (cause instanceof NoAnswer) return transportFailure(cause);
  if (cause instanceof NotBelieved) return down(cause);
  if (cause instanceof RpcError && NOT_NOW.has(cause.code)) return down(cause);
  return wrong(cause);
}

function transportFailure({ kind, cause }: NoAnswer): UpstreamFailure {
  if (kind === 'late' || kind === 'aborted') return late(cause);
  return kind === 'broken' || kind === 'too large' ? wrong(cause) : down(cause);
}
