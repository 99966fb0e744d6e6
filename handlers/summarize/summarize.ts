import type { Entry, Handler, HandlerContext } from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import { createEmbeddedSummarizer } from './embedded.js';
import type { Summarizer } from './summarizer.js';

type Summarize = operations['summarize'];

/** Sells a summary of one to three sentences. */
export const summarize: Entry<Summarize> = async context => {
  const summarizer = await createSummarizer(context);
  return {
    call: summarizeBy(summarizer),
    backend: 'summarizer',
    health: async signal => {
      await summarizer.check(signal);
      return { detail: summarizer.name };
    },
    close: () => summarizer.close(),
  };
};

export function summarizeBy(summarizer: Summarizer): Handler<Summarize> {
  return async ({ body, signal, caller }) => {
    const summary = await summarizer.summarize(body.text, signal, caller);
    const { method, mock } = summarizer;
    return { status: 200, body: mock ? { summary, method, mock } : { summary, method } };
  };
}

/** The operator's model if there is one, otherwise the embedded summarizer. What is not used is not loaded. */
async function createSummarizer({ setting }: HandlerContext): Promise<Summarizer> {
  const [url, model] = [setting('SUMMARIZER_URL'), setting('SUMMARIZER_MODEL')];
  if (url === undefined || model === undefined) return createEmbeddedSummarizer();
  const { createOpenAiSummarizer } = await import('./openai.js');
  return createOpenAiSummarizer({ url, model, apiKey: setting('SUMMARIZER_API_KEY') });
}
