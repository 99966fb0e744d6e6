import {
  type ChainReads,
  setting,
  UpstreamFailure,
  withSettings,
  type Handler,
  type HandlerContext,
  type Served,
  type ValuesOf,
} from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import type { Finding } from '../mints/findings.js';
import { readMintFindings } from '../mints/report.js';
import { createTokenBrief, type TokenBriefService } from './brief.js';
import { createMarketSources } from './sources.js';

type SolTokenBrief = operations['solTokenBrief'];

const SETTINGS = {
  jupiterApiKey: setting.text('JUPITER_API_KEY', 'raises the rate limits of Jupiter', { secret: true }),
  coinGeckoApiKey: setting.text('COINGECKO_API_KEY', 'raises the rate limits of GeckoTerminal', {
    secret: true,
  }),
  coinGeckoPlan: setting.oneOf('COINGECKO_PLAN', 'the plan of the CoinGecko key', {
    values: ['demo', 'pro'],
    default: 'demo',
  }),
};

/** Sells a market snapshot of a token, with a one-line summary. */
export const solTokenBrief = withSettings(SETTINGS, open);

function open({
  chain,
  sandboxServices,
  settings,
}: HandlerContext<ValuesOf<typeof SETTINGS>>): Served<SolTokenBrief> {
  const label = sandboxServices === undefined ? undefined : 'sandbox';
  const { jupiterApiKey, coinGeckoApiKey: key, coinGeckoPlan: plan } = settings;
  const briefs = createTokenBrief({
    sources: createMarketSources({
      marketUrl: sandboxServices,
      label,
      jupiterApiKey,
      ...(key === undefined ? {} : { coinGecko: { key, plan } }),
    }),
    mintOf: (mint, signal) => readTradable(chain, mint, signal),
    label,
  });
  return {
    call: solTokenBriefBy(briefs),
    backend: 'markets',
    health: async () => marketsHealth(briefs),
    close: () => briefs.close(),
  };
}

/** The supply and the findings of a mint. An uninitialised mint is not a token yet, so it has no market. */
async function readTradable(
  chain: ChainReads,
  mint: string,
  signal: AbortSignal,
): Promise<{ supply: string; findings: Finding[] }> {
  const { facts, findings } = await readMintFindings(chain, mint, signal);
  if (facts.initialized) return { supply: facts.supply, findings };
  throw new UpstreamFailure(
    'invalid',
    'mint is an account that has not been initialised, so it is not a token yet: send the address of a mint that exists',
  );
}

function solTokenBriefBy(briefs: TokenBriefService): Handler<SolTokenBrief> {
  return async ({ body, signal }) => ({ status: 200, body: await briefs.brief(body.mint, signal) });
}

function marketsHealth(briefs: TokenBriefService): { detail: string } {
  const sources = Object.values(briefs.health());
  const well = sources.filter(source => source.status === 'ok').length;
  if (well === 0) throw new Error('no market source answers');
  return { detail: `${well} of ${sources.length} market sources` };
}
