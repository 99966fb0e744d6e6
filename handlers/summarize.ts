import type { operations } from '../generated/openapi.js';
import type { Handler } from '../src/contract/operation.js';
import type { Summarizer } from '../src/upstreams/summarizers/summarizer.js';

/** Sells a summary of one to three sentences. */
export function summarize(summarizer: Summarizer): Handler<operations['summarize']> {
  return async ({ body, signal, caller }) => {
    const summary = await summarizer.summarize(body.text, signal, caller);
    const { method, mock } = summarizer;
    return { status: 200, body: mock ? { summary, method, mock } : { summary, method } };
  };
}
