import { cleanName, cleanSymbol } from '../mints/clean-text.js';
import { asObject, decimalAmount, decimalPrice } from './fields.js';
import { createHttpSource, type SourceOptions } from './http-source.js';
import type { MarketQuote, MarketSource } from './source.js';

function decode(body: unknown, mint: string): MarketQuote | undefined {
  const token = asObject(asObject(asObject(body)?.data)?.attributes);
  if (!token) throw new RangeError('no token');
  if (token.address !== mint) throw new RangeError('another token');
  return {
    symbol: cleanSymbol(token.symbol),
    name: cleanName(token.name),
    priceUsd: decimalPrice(token.price_usd, 'price'),
    mcapUsd: decimalAmount(token.market_cap_usd, 'market cap'),
    liquidityUsd: decimalAmount(token.total_reserve_in_usd, 'liquidity'),
    volume24hUsd: decimalAmount(asObject(token.volume_usd)?.h24, 'volume'),
  };
}

/** A key for CoinGecko's API, which serves the same data with higher limits. Each plan has its own host and header. */
export type CoinGeckoKey = { key: string; plan: 'demo' | 'pro' };

const COINGECKO = {
  demo: { url: 'https://api.coingecko.com', header: 'x-cg-demo-api-key' },
  pro: { url: 'https://pro-api.coingecko.com', header: 'x-cg-pro-api-key' },
};

/**
 * GeckoTerminal: `GET {url}/api/v2/networks/solana/tokens/{mint}`; JSON:API with decimal strings, 404 for an unknown mint. With a
 * CoinGecko key, the same data comes from `/api/v3/onchain/networks/…` on CoinGecko's hosts. Its rate limit is the tightest of all
 * sources, so holders, which need a second request (`/info`), are left to other sources.
 */
export function createGeckoTerminal({
  coinGecko,
  ...options
}: SourceOptions & { coinGecko?: CoinGeckoKey } = {}): MarketSource {
  const place = coinGecko && COINGECKO[coinGecko.plan];
  const path = place ? '/api/v3/onchain/networks/solana/tokens/' : '/api/v2/networks/solana/tokens/';
  return createHttpSource(
    {
      name: 'geckoterminal',
      url: place?.url ?? 'https://api.geckoterminal.com',
      headers: place ? { [place.header]: coinGecko.key } : { accept: 'application/json;version=20230203' },
      unknownIs404: true,
      path: mint => path + encodeURIComponent(mint),
      decode,
    },
    options,
  );
}
