import { createDexScreener } from './dexscreener.js';
import { createGeckoTerminal, type CoinGeckoKey } from './geckoterminal.js';
import type { SourceOptions } from './http-source.js';
import { createJupiter } from './jupiter.js';
import type { MarketSource } from './source.js';

/**
 * All sources, in order of preference: the public aggregators, or a server at `marketUrl` with the same interfaces under
 * `/jupiter`, `/dexscreener` and `/geckoterminal`. Such a server is named in `label`.
 */
export function createMarketSources(
  options: Omit<SourceOptions, 'url'> & {
    marketUrl?: string;
    jupiterApiKey?: string;
    coinGecko?: CoinGeckoKey;
  } = {},
): MarketSource[] {
  const { marketUrl, jupiterApiKey, coinGecko, ...shared } = options;
  const at = (path: string): SourceOptions =>
    marketUrl === undefined ? shared : { ...shared, url: `${marketUrl.replace(/(?<!\/)\/+$/, '')}/${path}` };
  return [
    createJupiter({ ...at('jupiter'), apiKey: jupiterApiKey }),
    createDexScreener(at('dexscreener')),
    // A server that replaces the public ones has the same paths, and is sent no key.
    createGeckoTerminal({
      ...at('geckoterminal'),
      ...(marketUrl === undefined && coinGecko ? { coinGecko } : {}),
    }),
  ];
}
