import { readFileSync } from 'node:fs';
import process from 'node:process';
import { HTTPFacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { ExactSvmScheme } from '@x402/svm/exact/server';

/** What every peer sells: the same operations, prices, receiver, facilitator and handlers, configured as the peer's documentation shows. */

const { env } = process;

/** @param {string} price @param {string} description @param {string} mimeType */
function offer(price, description, mimeType = 'application/json') {
  return {
    accepts: { scheme: 'exact', price, network: env.NETWORK_ID, payTo: env.PAY_TO },
    description,
    mimeType,
  };
}

export const routes = {
  'POST /v1/summarize': offer('$0.01', 'Summarizes a block of text into 1-3 concise sentences'),
  'POST /v1/sol-token-brief': offer('$0.01', 'Market snapshot and a one-line brief for a Solana SPL token'),
  'POST /v1/sol-mint-info': offer('$0.01', 'On-chain facts for a Solana SPL token mint'),
  'POST /v1/tts': offer('$0.025', 'Turns up to 2500 characters of English text into a WAV file', 'audio/wav'),
};

export function resourceServer() {
  const facilitator = new HTTPFacilitatorClient({ url: env.FACILITATOR_URL });
  return new x402ResourceServer(facilitator).register(env.NETWORK_ID, new ExactSvmScheme());
}

/** Our own handlers, so that the servers differ only in what surrounds them. Loaded only if a benchmark needs them. */
const WORK = {
  async instant() {
    const brief = JSON.parse(readFileSync(env.ANSWER_FILE, 'utf8'));
    return { path: '/v1/sol-token-brief', handle: async () => ({ status: 200, body: brief }) };
  },
  async mint() {
    const { createChain } = await import('../../dist/src/rails/solana/rpc.js');
    const { solMintInfo } = await import('../../dist/handlers/sol-mint-info/sol-mint-info.js');
    const chain = createChain({ urls: [env.SOLANA_RPC_URL] });
    const { call: handle } = await solMintInfo({ chain, network: { caip2: env.NETWORK_ID } });
    return { path: '/v1/sol-mint-info', handle };
  },
  async summarize() {
    const { summarizeBy } = await import('../../dist/handlers/summarize/summarize.js');
    const { createEmbeddedSummarizer } = await import('../../dist/handlers/summarize/embedded.js');
    return { path: '/v1/summarize', handle: summarizeBy(createEmbeddedSummarizer()) };
  },
  async model() {
    const { summarizeBy } = await import('../../dist/handlers/summarize/summarize.js');
    const { createOpenAiSummarizer } = await import('../../dist/handlers/summarize/openai.js');
    const model = createOpenAiSummarizer({ url: env.SUMMARIZER_URL, model: 'stub' });
    return { path: '/v1/summarize', handle: summarizeBy(model) };
  },
  async speech() {
    const { textToSpeechBy } = await import('../../dist/handlers/text-to-speech/text-to-speech.js');
    const { createFliteSpeaker } = await import('../../dist/handlers/text-to-speech/flite.js');
    return { path: '/v1/tts', handle: textToSpeechBy(createFliteSpeaker()) };
  },
};

/** @returns {Promise<{ path: string, handle: (call: { body: object, signal: AbortSignal }) => Promise<object> }>} */
export const work = () => WORK[env.WORK ?? 'instant']();

export const port = Number(env.PORT);
/** A signal that is never aborted, because no caller of a benchmark gives up. */
export const { signal } = new AbortController();
