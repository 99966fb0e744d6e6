import type { Config } from './config.js';
import type { Probe } from './health.js';
import { createTokenBrief, type TokenBriefService } from './upstreams/markets/brief.js';
import { createMarketSources } from './upstreams/markets/sources.js';
import { createPanelPeople } from './upstreams/people/panel.js';
import type { People, ReplyBook } from './upstreams/people/people.js';
import { createRapidataPeople } from './upstreams/people/rapidata.js';
import { createSandboxPeople } from './upstreams/people/sandbox.js';
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
  people: People;
  book: ReplyBook;
};

/** A little less than the 20 s that work may take, so that a full queue answers 503: try again, and not 502. */
const SPEECH_DEADLINE_MS = 19_000;

export type BuiltBackends = Backends & { probes: Record<string, Probe>; close(): Promise<void> };

/** Chooses the adapter of every backend: the operator's service where one is configured, else the embedded one. */
export function createBackends(
  config: Config,
  chain: SolanaChain,
  book: ReplyBook,
  marketUrl: string | undefined,
): BuiltBackends {
  const summarizer = config.summarizer
    ? createOpenAiSummarizer(config.summarizer)
    : createEmbeddedSummarizer();
  const speaker = createSpeaker(config);
  const people = createPeople(config, book);
  const label = marketUrl === undefined ? undefined : 'sandbox';
  const briefs = createTokenBrief({
    sources: createMarketSources({ marketUrl, label, jupiterApiKey: config.jupiterApiKey }),
    supplyOf: async (mint, signal) => {
      // It takes @solana/spl-token along, which is slow to load.
      const { readMint } = await import('./upstreams/solana/mint.js');
      return readMint(chain, mint, signal);
    },
    label,
  });
  return {
    summarizer,
    speaker,
    people,
    book,
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
      people: async () => {
        const { status, detail } = await people.health();
        if (status !== 'ok') throw new Error(detail ?? status);
        return { detail: people.name };
      },
      speech: async () => {
        const { status, detail } = await speaker.health();
        if (status !== 'ok') throw new Error(detail ?? status);
        return { detail: speaker.name };
      },
    },
    close: async () => {
      await Promise.allSettled([
        people.close(),
        summarizer.close(),
        speaker.close(),
        briefs.close(),
        chain.close(),
      ]);
    },
  };
}

function createPeople({ people, rapidata }: Config, book: ReplyBook): People {
  if (people === 'rapidata' && rapidata) return createRapidataPeople({ ...rapidata, book });
  return people === 'sandbox' ? createSandboxPeople({ book }) : createPanelPeople({ book });
}

function createSpeaker({ piperUrl }: Config): Speaker {
  return piperUrl
    ? createPiperSpeaker({ url: piperUrl })
    : createFliteSpeaker({ deadlineMs: SPEECH_DEADLINE_MS });
}
