import type { Config } from './config.js';
import type { Probe } from './health.js';
import { createTokenBrief, type TokenBriefService } from './upstreams/markets/brief.js';
import { createMarketSources } from './upstreams/markets/sources.js';
import { readMint } from './upstreams/solana/mint.js';
import type { SolanaChain } from './upstreams/solana/rpc.js';
import { createEmbeddedSummarizer } from './upstreams/summarizers/embedded.js';
import { createOpenAiSummarizer } from './upstreams/summarizers/openai.js';
import type { Summarizer } from './upstreams/summarizers/summarizer.js';
import { createFliteSpeaker } from './upstreams/voices/flite.js';
import { createPiperSpeaker } from './upstreams/voices/piper.js';
import type { Speaker } from './upstreams/voices/voices.js';

/** The backends that the handlers ask. */
export type Backends = {
  summarizer: Summarizer;
  briefs: TokenBriefService;
  chain: SolanaChain;
  /** CAIP-2 name of the chain. */
  network: string;
  speaker: Speaker;
};

export type BuiltBackends = Backends & { probes: Record<string, Probe>; close(): Promise<void> };

/** Chooses the adapter of every backend: the operator's service where one is configured, else the embedded one. */
export function createBackends(
  config: Config,
  chain: SolanaChain,
  marketUrl: string | undefined,
): BuiltBackends {
  const summarizer = config.summarizer
    ? createOpenAiSummarizer(config.summarizer)
    : createEmbeddedSummarizer();
  const speaker = config.piperUrl ? createPiperSpeaker({ url: config.piperUrl }) : createFliteSpeaker();
  const label = marketUrl === undefined ? undefined : 'sandbox';
  const briefs = createTokenBrief({
    sources: createMarketSources({ marketUrl, label, jupiterApiKey: config.jupiterApiKey }),
    supplyOf: (mint, signal) => readMint(chain, mint, signal),
    label,
  });
  return {
    summarizer,
    speaker,
    briefs,
    chain,
    network: config.network.caip2,
    probes: {
      solana: async signal => {
        const { answering, servers } = await chain.health(signal);
        if (answering === 0) throw new Error('no RPC server answers');
        return answering < servers ? { detail: `${answering} of ${servers} RPC servers answer` } : {};
      },
      markets: async () => {
        const sources = Object.values(briefs.health());
        const well = sources.filter(source => source.status === 'ok').length;
        if (well === 0) throw new Error('no market source answers');
        return { detail: `${well} of ${sources.length} market sources` };
      },
      summarizer: async () => ({ detail: summarizer.name }),
      speech: async () => {
        const { status, detail } = await speaker.health();
        if (status !== 'ok') throw new Error(detail ?? status);
        return { detail: speaker.name };
      },
    },
    close: async () => {
      await Promise.allSettled([summarizer.close(), speaker.close(), briefs.close(), chain.close()]);
    },
  };
}
