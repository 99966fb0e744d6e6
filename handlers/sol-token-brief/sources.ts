import { createDexScreener } from './dexscreener.js';
import { createGeckoTerminal } from './geckoterminal.js';
import type { SourceOptions } from './http-source.js';
import { createJupiter } from './jupiter.js';
import type { MarketSource } from './source.js';

/**
 * All sources, in order of preference: the public aggregators, or a server at `marketUrl` with the same interfaces under
 * `/jupiter`, `/dexscreener` and `/geckoterminal`. Such a server is named in `label`.
 */
export function createMarketSources(
  options: Omit<SourceOptions, 'url'> & { marketUrl?: string; jupiterApiKey?: string } = {},
): MarketSource[] {
  const { marketUrl, jupiterApiKey, ...shared } = options;
  const at = (path: string): SourceOptions =>
    marketUrl === undefined ? shared : { ...shared, url: `${marketUrl.replace(/(?<!\/)\/+$/, '')}/${path}` };
  return [
    createJupiter({ ...at('jupiter'), apiKey: jupiterApiKey }),
    createDexScreener(at('dexscreener')),
    createGeckoTerminal(at('geckoterminal')),
  ];
}
