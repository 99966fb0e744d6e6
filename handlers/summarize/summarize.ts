import { setting, withSettings, type Handler, type Served, type ValuesOf } from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import { createEmbeddedSummarizer } from './embedded.js';
import type { Summarizer } from './summarizer.js';

type Summarize = operations['summarize'];

const SETTINGS = {
  url: setting.url('SUMMARIZER_URL', 'base of an OpenAI-compatible API that writes the summaries'),
  model: setting.text('SUMMARIZER_MODEL', 'the model to use at `SUMMARIZER_URL`'),
  apiKey: setting.text('SUMMARIZER_API_KEY', 'the key for `SUMMARIZER_URL`', { secret: true }),
};
type Values = ValuesOf<typeof SETTINGS>;

/** Sells a summary of one to three sentences. */
export const summarize = withSettings(SETTINGS, open, ({ url, model }) =>
  (url === undefined) === (model === undefined)
    ? []
    : ['SUMMARIZER_URL and SUMMARIZER_MODEL: set both or neither'],
);

async function open({ settings }: { settings: Values }): Promise<Served<Summarize>> {
  const summarizer = await createSummarizer(settings);
  return {
    call: summarizeBy(summarizer),
    backend: 'summarizer',
    health: async signal => {
      await summarizer.check(signal);
      return { detail: summarizer.name };
    },
    close: () => summarizer.close(),
  };
}

export function summarizeBy(summarizer: Summarizer): Handler<Summarize> {
  return async ({ body, signal, caller }) => {
    const summarized = await summarizer.summarize(body.text, signal, caller);
    return { status: 200, body: summarizer.mock ? { ...summarized, mock: true } : summarized };
  };
}

/** The operator's model if there is one, otherwise the embedded summarizer. The other one is not loaded. */
async function createSummarizer({ url, model, apiKey }: Values): Promise<Summarizer> {
  if (url === undefined || model === undefined) return createEmbeddedSummarizer();
  const { createOpenAiSummarizer } = await import('./openai.js');
  return createOpenAiSummarizer({ url, model, apiKey });
}
