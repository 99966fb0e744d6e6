import {
  setting,
  withSettings,
  type Handler,
  type HandlerContext,
  type Served,
  type ValuesOf,
} from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import { readMintFindings } from '../mints/report.js';
import { createTokenBrief, type TokenBriefService } from './brief.js';
import { createMarketSources } from './sources.js';

type SolTokenBrief = operations['solTokenBrief'];

const SETTINGS = {
  jupiterApiKey: setting.text('JUPITER_API_KEY', 'raises the limits of Jupiter', { secret: true }),
};

/** Sells a market snapshot of a token, with a one-line summary. */
export const solTokenBrief = withSettings(SETTINGS, open);

function open({
  chain,
  sandboxServices,
  settings,
}: HandlerContext<ValuesOf<typeof SETTINGS>>): Served<SolTokenBrief> {
  const label = sandboxServices === undefined ? undefined : 'sandbox';
  const { jupiterApiKey } = settings;
  const briefs = createTokenBrief({
    sources: createMarketSources({ marketUrl: sandboxServices, label, jupiterApiKey }),
    supplyOf: async (mint, signal) => (await readMintFindings(chain, mint, signal)).facts,
    label,
  });
  return {
    call: solTokenBriefBy(briefs),
    backend: 'markets',
    health: async () => marketsHealth(briefs),
    close: () => briefs.close(),
  };
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
