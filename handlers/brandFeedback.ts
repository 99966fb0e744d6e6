import type { Handler } from '../src/operation.js';
import { UpstreamFailure } from '../src/upstreams/failure.js';

/** Sells the opinions of real people. Nobody is there to be asked yet, so every call is turned away before it is charged. */
export function brandFeedback(): Handler<'brandFeedback'> {
  return async () => {
    throw new UpstreamFailure(
      'unavailable',
      'Nobody can be asked at the moment. You were not charged; try again later.',
      {
        retryAfterSeconds: 3600,
      },
    );
  };
}
