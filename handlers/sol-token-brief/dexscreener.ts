import { plausibleQuotes, lowerMedian, median, nearMedian, tidy } from './consensus.js';
import { cleanName, cleanSymbol } from '../mints/clean-text.js';
import { amount, asObject, change, decimalPrice, type JsonObject } from './fields.js';
import { createHttpSource, type SourceOptions } from './http-source.js';
import type { MarketQuote, MarketSource } from './source.js';

/** The aggregator sends at most 30 pools; the rest of a longer list is ignored. */
const MAX_POOLS = 100;

type PricedPool = {
  symbol?: string;
  name?: string;
  priceUsd: number;
  mcapUsd?: number;
  liquidityUsd: number;
  volume24hUsd?: number;
  change24hPercent?: number;
};

const addressOf = (token: unknown): unknown => asObject(token)?.address;

/** The market cap of a pool's token. If the source does not know the circulating supply, it repeats the fdv, which is ignored. */
function marketCap(pool: JsonObject): number | undefined {
  const mcap = amount(pool.marketCap, 'market cap');
  return mcap === pool.fdv ? undefined : mcap;
}

/** A usable pool; undefined if it has no price or implausible figures. */
function readPool(pool: JsonObject): PricedPool | undefined {
  try {
    const priceUsd = decimalPrice(pool.priceUsd, 'price');
    if (priceUsd === undefined) return undefined;
    const token = asObject(pool.baseToken);
    return {
      symbol: cleanSymbol(token?.symbol),
      name: cleanName(token?.name),
      priceUsd,
      mcapUsd: marketCap(pool),
      liquidityUsd: amount(asObject(pool.liquidity)?.usd, 'liquidity') ?? 0,
      volume24hUsd: amount(asObject(pool.volume)?.h24, 'volume'),
      change24hPercent: change(asObject(pool.priceChange)?.h24),
    };
  } catch {
    return undefined;
  }
}

const known = (values: (number | undefined)[]): number[] => values.filter(value => value !== undefined);

/**
 * Selects pools by price, whatever their depth: fewer than three are all kept, otherwise those near the unweighted median. If two
 * pools contradict each other, the lower price is used, as with two sources.
 */
function summarize(pools: PricedPool[]): MarketQuote {
  const kept = pools.length < 3 ? pools : nearMedian(pools);
  // If the pools form two groups, it is possible that none is near the median. There is no price then.
  if (kept.length === 0) throw new RangeError('pools that contradict each other');
  const volumes = known(kept.map(pool => pool.volume24hUsd));
  return {
    symbol: kept.find(pool => pool.symbol)?.symbol,
    name: kept.find(pool => pool.name)?.name,
    priceUsd: tidy(median((kept.length < 3 ? plausibleQuotes(kept).kept : kept).map(pool => pool.priceUsd))),
    mcapUsd: lowerMedian(known(kept.map(pool => pool.mcapUsd))),
    liquidityUsd: tidy(kept.reduce((sum, pool) => sum + pool.liquidityUsd, 0)),
    change24hPercent: lowerMedian(known(kept.map(pool => pool.change24hPercent))),
    volume24hUsd: volumes.length > 0 ? tidy(volumes.reduce((sum, volume) => sum + volume, 0)) : undefined,
  };
}

function decode(body: unknown, mint: string): MarketQuote | undefined {
  if (!Array.isArray(body)) throw new RangeError('no list');
  if (body.length === 0) return undefined;
  const pools = body.slice(0, MAX_POOLS).map(asObject);
  const ofToken = pools.filter(pool => pool?.chainId === 'solana' && addressOf(pool.baseToken) === mint);
  if (ofToken.length === 0) {
    // Pools in which this token is the quote give the price of another token.
    if (pools.some(pool => addressOf(pool?.quoteToken) === mint)) return undefined;
    throw new RangeError('pools of another token');
  }
  const priced = ofToken.map(pool => readPool(pool ?? {})).filter(pool => pool !== undefined);
  if (priced.length === 0) throw new RangeError('no pool with a plausible price');
  return summarize(priced);
}

/**
 * DexScreener: `GET {url}/token-pairs/v1/solana/{mint}` returns at most 30 pools; none for an unknown mint and, occasionally,
 * for a known one. Pools whose price is more than 1.5× from the median are dropped; liquidity and volume are sums over the rest.
 */
export function createDexScreener(options: SourceOptions = {}): MarketSource {
  return createHttpSource(
    {
      name: 'dexscreener',
      url: 'https://api.dexscreener.com',
      emptyIsUncertain: true,
      path: mint => `/token-pairs/v1/solana/${encodeURIComponent(mint)}`,
      decode,
    },
    options,
  );
}
