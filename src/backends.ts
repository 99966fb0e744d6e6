import type { Config } from './config.js';
import type { Probe } from './health.js';
import { createTokenBrief, type TokenBriefService } from './upstreams/markets/brief.js';
import { createMarketSources } from './upstreams/markets/sources.js';
import { createPanelPeople } from './upstreams/people/panel.js';
import type { People, ReplyBook } from './upstreams/people/people.js';
import type { Presence } from './upstreams/people/presence.js';
import { createSandboxPeople } from './upstreams/people/sandbox.js';
import type { SolanaChain } from './solana/rpc.js';
import { createEmbeddedSummarizer } from './upstreams/summarizers/embedded.js';
import type { Summarizer } from './upstreams/summarizers/summarizer.js';
import { createFliteSpeaker } from './upstreams/voices/flite.js';
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

/** What the panel page and the people who are asked have in common. */
export type Panel = { book: ReplyBook; presence: Presence };

export type BuiltBackends = Backends & { probes: Record<string, Probe>; close(): Promise<void> };

/**
 * Chooses the adapter of every backend: the operator's service where one is configured, else the embedded one. What is not chosen is
 * not loaded.
 */
export async function createBackends(
  config: Config,
  chain: SolanaChain,
  { book, presence }: Panel,
  marketUrl: string | undefined,
): Promise<BuiltBackends> {
  const label = marketUrl === undefined ? undefined : 'sandbox';
  const briefs = createTokenBrief({
    sources: createMarketSources({ marketUrl, label, jupiterApiKey: config.jupiterApiKey }),
    supplyOf: async (mint, signal) => {
      // It takes @solana/spl-token along, which is slow to load.
      const { readMint } = await import('./upstreams/mints/mint.js');
      return readMint(chain, mint, signal);
    },
    label,
  });
  const backends: Backends = {
    summarizer: await createSummarizer(config),
    speaker: await createSpeaker(config),
    people: await createPeople(config, { book, presence }),
    book,
    briefs,
    chain,
    network: config.network.caip2,
  };
  const { summarizer, speaker, people } = backends;
  return {
    ...backends,
    probes: probesOf(backends),
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

function probesOf({ chain, briefs, summarizer, people, speaker }: Backends): Record<string, Probe> {
  return {
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
    summarizer: async signal => {
      await summarizer.check(signal);
      return { detail: summarizer.name };
    },
    people: async () => {
      const { status, detail } = await people.health();
      return status === 'ok' ? { detail: people.name } : { status, detail: `${people.name}: ${detail}` };
    },
    speech: async () => {
      const { status, detail } = await speaker.health();
      if (status !== 'ok') throw new Error(detail ?? status);
      return { detail: speaker.name };
    },
  };
}

async function createSummarizer({ summarizer }: Config): Promise<Summarizer> {
  if (!summarizer) return createEmbeddedSummarizer();
  const { createOpenAiSummarizer } = await import('./upstreams/summarizers/openai.js');
  return createOpenAiSummarizer(summarizer);
}

async function createPeople({ people, rapidata }: Config, { book, presence }: Panel): Promise<People> {
  if (people === 'rapidata' && rapidata) {
    const { createRapidataPeople } = await import('./upstreams/people/rapidata.js');
    return createRapidataPeople({ ...rapidata, book });
  }
  return people === 'sandbox' ? createSandboxPeople({ book }) : createPanelPeople({ book, presence });
}

async function createSpeaker({ piperUrl }: Config): Promise<Speaker> {
  if (!piperUrl) return createFliteSpeaker({ deadlineMs: SPEECH_DEADLINE_MS });
  const { createPiperSpeaker } = await import('./upstreams/voices/piper.js');
  return createPiperSpeaker({ url: piperUrl });
}
