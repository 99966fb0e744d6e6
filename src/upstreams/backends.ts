import type { Probe } from './probe.js';
import type { Config } from '../config.js';
import { createTokenBrief, type TokenBriefService } from './markets/brief.js';
import { readMint } from './mints/mint.js';
import { createMarketSources } from './markets/sources.js';
import { createPanelPeople } from './people/panel-people.js';
import type { PartialRule, People, ReplyStore } from './people/people.js';
import type { Respondents } from './people/respondents.js';
import { createSandboxPeople } from './people/sandbox-people.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { createEmbeddedSummarizer } from './summarizers/embedded.js';
import type { Summarizer } from './summarizers/summarizer.js';
import { createFliteSpeaker } from './voices/flite.js';
import type { Speaker } from './voices/voices.js';

/** The backends that the handlers use. */
export type Backends = {
  summarizer: Summarizer;
  briefs: TokenBriefService;
  chain: SolanaChain;
  /** CAIP-2 id of the chain. */
  network: string;
  speaker: Speaker;
  people: People;
  replyStore: ReplyStore;
  partial: PartialRule;
};

/** Slightly less than the 20 s that work may take, so that waiting too long in a queue gives 503 and not 502. */
const SPEECH_DEADLINE_MS = 19_000;

/** Shared by the panel page and the backend that asks people. */
export type Panel = { replyStore: ReplyStore; presence: Respondents };

export type BuiltBackends = Backends & {
  /** Whether a handler has taken this backend. */
  uses(name: keyof Backends): boolean;
  /** The probes of the chain and of every backend that a handler has taken, by their names in /health. */
  probes(): Record<string, Probe>;
  close(): Promise<void>;
};

/**
 * Chooses the adapter of every backend: the operator's service if one is configured, otherwise the embedded one. Adapters that
 * are not chosen are not loaded.
 */
export async function createBackends(
  config: Config,
  chain: SolanaChain,
  { replyStore, presence }: Panel,
  marketUrl: string | undefined,
): Promise<BuiltBackends> {
  const label = marketUrl === undefined ? undefined : 'sandbox';
  const briefs = createTokenBrief({
    sources: createMarketSources({ marketUrl, label, jupiterApiKey: config.jupiterApiKey }),
    supplyOf: (mint, signal) => readMint(chain, mint, signal),
    label,
  });
  const backends: Backends = {
    summarizer: await createSummarizer(config),
    speaker: await createSpeaker(config),
    people: await createPeople(config, { replyStore, presence }),
    replyStore,
    partial: config.partial,
    briefs,
    chain,
    network: config.network.caip2,
  };
  const { summarizer, speaker, people } = backends;
  const used = new Set<keyof Backends>(['chain']);
  return Object.assign(recorded(backends, used), {
    uses: (name: keyof Backends) => used.has(name),
    probes: () => probesOf(backends, used),
    close: async () => {
      await Promise.allSettled([
        people.close(),
        summarizer.close(),
        speaker.close(),
        briefs.close(),
        chain.close(),
      ]);
    },
  });
}

/** The backends, in a form that records which of them are taken. */
function recorded(backends: Backends, used: Set<keyof Backends>): Backends {
  const record = (name: keyof Backends): PropertyDescriptor => ({
    enumerable: true,
    get: () => {
      used.add(name);
      return backends[name];
    },
  });
  const names = Object.keys(backends) as (keyof Backends)[];
  return Object.defineProperties({}, Object.fromEntries(names.map(name => [name, record(name)]))) as Backends;
}

function probesOf(backends: Backends, used: ReadonlySet<keyof Backends>): Record<string, Probe> {
  const { chain, briefs, summarizer, people, speaker } = backends;
  const all: [keyof Backends, string, Probe][] = [
    [
      'chain',
      'solana',
      async signal => {
        const { answering, servers } = await chain.health(signal);
        if (answering === 0) throw new Error('no RPC server answers');
        return answering < servers ? { detail: `${answering} of ${servers} RPC servers answer` } : {};
      },
    ],
    [
      'briefs',
      'markets',
      async () => {
        const sources = Object.values(briefs.health());
        const well = sources.filter(source => source.status === 'ok').length;
        if (well === 0) throw new Error('no market source answers');
        return { detail: `${well} of ${sources.length} market sources` };
      },
    ],
    [
      'summarizer',
      'summarizer',
      async signal => {
        await summarizer.check(signal);
        return { detail: summarizer.name };
      },
    ],
    [
      'people',
      'people',
      async () => {
        const { status, detail } = await people.health();
        return status === 'ok' ? { detail: people.name } : { status, detail: `${people.name}: ${detail}` };
      },
    ],
    [
      'speaker',
      'speech',
      async () => {
        const { status, detail } = await speaker.health();
        if (status !== 'ok') throw new Error(detail ?? status);
        return { detail: speaker.name };
      },
    ],
  ];
  return Object.fromEntries(
    all.filter(([backend]) => used.has(backend)).map(([, name, probe]) => [name, probe]),
  );
}

async function createSummarizer({ summarizer }: Config): Promise<Summarizer> {
  if (!summarizer) return createEmbeddedSummarizer();
  const { createOpenAiSummarizer } = await import('./summarizers/openai.js');
  return createOpenAiSummarizer(summarizer);
}

async function createPeople({ people, rapidata }: Config, { replyStore, presence }: Panel): Promise<People> {
  if (people === 'rapidata' && rapidata) {
    const { createRapidataPeople } = await import('./people/rapidata.js');
    return createRapidataPeople({ ...rapidata, replyStore });
  }
  return people === 'sandbox'
    ? createSandboxPeople({ replyStore, presence })
    : createPanelPeople({ replyStore, presence });
}

async function createSpeaker({ piperUrl }: Config): Promise<Speaker> {
  if (!piperUrl) return createFliteSpeaker({ deadlineMs: SPEECH_DEADLINE_MS });
  const { createPiperSpeaker } = await import('./voices/piper.js');
  return createPiperSpeaker({ url: piperUrl });
}
