import { cleanName, cleanSymbol } from '../mints/clean-text.js';
import { amount, asObject, change, holders, price, score, share, type JsonObject, time } from './fields.js';
import { createHttpSource, type SourceOptions } from './http-source.js';
import type { MarketQuote, MarketSource, Verdict } from './source.js';

/** `buyVolume` + `sellVolume`. If one of them is absent, there were no such trades; if both are, the volume is unknown. */
function volume24h(stats: JsonObject | undefined): number | undefined {
  const bought = amount(stats?.buyVolume, '24h buy volume');
  const sold = amount(stats?.sellVolume, '24h sell volume');
  return bought === undefined && sold === undefined ? undefined : (bought ?? 0) + (sold ?? 0);
}

const ORGANIC = ['low', 'medium', 'high'] as const;

/** `isSus` is sent only for a token that is flagged. */
function verdictOf({ organicScoreLabel }: JsonObject, audit: JsonObject | undefined): Verdict {
  const migrations = audit?.devMigrations;
  return {
    suspicious: audit?.isSus === true,
    organic: ORGANIC.find(label => label === organicScoreLabel),
    developerPercent: share(audit?.devBalancePercentage),
    developerMigrations: Number.isSafeInteger(migrations) ? (migrations as number) : undefined,
  };
}

function decode(body: unknown, mint: string): MarketQuote | undefined {
  if (!Array.isArray(body)) throw new RangeError('no list');
  // The search also returns tokens that only resemble the query.
  const token = body.map(asObject).find(entry => entry?.id === mint);
  if (!token) return undefined;
  return {
    symbol: cleanSymbol(token.symbol),
    name: cleanName(token.name),
    priceUsd: price(token.usdPrice, 'price'),
    mcapUsd: amount(token.mcap, 'market cap'),
    liquidityUsd: amount(token.liquidity, 'liquidity'),
    volume24hUsd: volume24h(asObject(token.stats24h)),
    holders: holders(token.holderCount, 'holder count'),
    organicScore: score(token.organicScore, 'organic score'),
    change24hPercent: change(asObject(token.stats24h)?.priceChange),
    topHoldersPercent: share(asObject(token.audit)?.topHoldersPercentage),
    verified: typeof token.isVerified === 'boolean' ? token.isVerified : undefined,
    firstPoolAt: time(asObject(token.firstPool)?.createdAt),
    updatedAt: time(token.updatedAt),
    verdict: verdictOf(token, asObject(token.audit)),
  };
}

/**
 * Jupiter Tokens v2: `GET {url}/tokens/v2/search?query=<mint>` returns a list of tokens, empty for an unknown mint.
 * The key is optional; without one the source allows about one request every two seconds.
 */
export function createJupiter(options: SourceOptions & { apiKey?: string } = {}): MarketSource {
  return createHttpSource(
    {
      name: 'jupiter',
      url: 'https://api.jup.ag',
      headers: options.apiKey ? { 'x-api-key': options.apiKey } : {},
      path: mint => `/tokens/v2/search?query=${encodeURIComponent(mint)}`,
      decode,
    },
    options,
  );
}
