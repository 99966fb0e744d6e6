import { expect } from 'chai';
import { UpstreamFailure } from '../../src/net/failure.js';

/** Returns the failure that a backend's call rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<UpstreamFailure> {
  const error: unknown = await promise.then(
    value => expect.fail(`answered ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof UpstreamFailure) return error;
  throw error;
}
