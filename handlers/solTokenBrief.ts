import type { operations } from '../generated/openapi.js';
import type { Handler } from '../src/contract/operation.js';
import type { TokenBriefService } from '../src/upstreams/markets/brief.js';

/** Sells a market snapshot of a token, with a one-line summary. */
export function solTokenBrief(briefs: TokenBriefService): Handler<operations['solTokenBrief']> {
  return async ({ body, signal }) => ({ status: 200, body: await briefs.brief(body.mint, signal) });
}
