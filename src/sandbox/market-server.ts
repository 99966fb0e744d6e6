import type { SampleMints } from '../config/sandbox-file.js';
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NETWORKS } from '../rails/solana/networks.js';

type SourceName = 'jupiter' | 'dexscreener' | 'geckoterminal';

export type MarketOptions = {
  host: string;
  /** 0 takes any free port. */
  port: number;
  mints: SampleMints;
  /** Total supply by sample name or mint address, as a decimal string. A mint without an entry has 1 000 000 tokens. */
  supplies?: Record<string, string>;
  /** Factors by which the prices of a source are off, so that the sources disagree. */
  offBy?: Partial<Record<SourceName, number>>;
  /** A different seed gives different prices. */
  seed?: string;
  /** Milliseconds since 1970. */
  now?: () => number;
};

/** A token on this market. The tokens are chosen so that every rule of the aggregation applies to one of them. */
type Token = {
  mint: string;
  symbol: string;
  name: string;
  supply: number;
  /** The share of the supply that is in circulation. */
  circulating: number;
  basePriceUsd: number;
  baseLiquidityUsd: number;
  /** A pool far deeper than all others together, with a price that is off by this factor. */
  mispricedBy?: number;
  onGeckoTerminal: boolean;
  pools: number;
  /** Jupiter's verdict on the token, in addition to the figures. By default, the token is verified and organic. */
  doubts?: (now: number) => Record<string, unknown>;
};

/** `at`: when the figures last changed, in milliseconds since 1970. */
type Quote = { priceUsd: number; liquidityUsd: number; volumeUsd: number; holders: number; at: number };

const USDC = NETWORKS.sandbox.usdcMint;
const HOUR_MS = 3_600_000;

/** A number in [0, 1) that depends only on the arguments. */
function chance(...words: string[]): number {
  return createHash('sha256').update(words.join('\n')).digest().readUInt32BE(0) / 2 ** 32;
}

function listTokens({ mints, supplies = {}, seed = '' }: MarketOptions): Map<string, Token> {
  const token = (sample: keyof SampleMints, symbol: string, name: string, rest: Partial<Token>): Token => ({
    mint: mints[sample],
    symbol,
    name,
    supply: Number(supplies[sample] ?? supplies[mints[sample]] ?? '1000000'),
    circulating: 0.62,
    basePriceUsd: 0.2 + chance(seed, mints[sample], 'price'),
    baseLiquidityUsd: 250_000 + 500_000 * chance(seed, mints[sample], 'liquidity'),
    onGeckoTerminal: true,
    pools: 4,
    ...rest,
  });
  const listed = [
    token('example', 'JUP', 'Jupiter', {}),
    token('classic', 'COIN', 'Sandbox Coin', { mispricedBy: 4_950, pools: 6 }),
    token('noAuthorities', 'FIXED', 'Sandbox Fixed Supply', { circulating: 1, pools: 2 }),
    token('token2022', 'NEXT', 'Sandbox Token-2022', { onGeckoTerminal: false, pools: 3 }),
    token('doubtful', 'SURE', 'Sure Profit', { baseLiquidityUsd: 900, pools: 1, doubts: doubtful }),
  ];
  return new Map(listed.map(entry => [entry.mint, entry]));
}

/** Drifts by a few per cent an hour, in steps of ten seconds; the same time and mint give the same numbers on every machine. */
function quoteAt(token: Token, now: number, seed: string): Quote {
  const time = Math.floor(now / 10_000) * 10_000;
  const wave = (periodMs: number, name: string): number =>
    Math.sin(2 * Math.PI * (time / periodMs + chance(seed, token.mint, name)));
  const priceUsd =
    token.basePriceUsd * (1 + 0.03 * wave(HOUR_MS, 'hour') + 0.008 * wave(HOUR_MS / 13, 'minutes'));
  const liquidityUsd = token.baseLiquidityUsd * (1 + 0.05 * wave(6 * HOUR_MS, 'liquidity'));
  const volumeUsd = liquidityUsd * (0.4 + 0.15 * wave(24 * HOUR_MS, 'volume'));
  const holders = Math.round(
    1_000 + 9_000 * chance(seed, token.mint, 'holders') + (time % (24 * HOUR_MS)) / 600_000,
  );
  return { priceUsd, liquidityUsd, volumeUsd, holders, at: time };
}

/** A token with every warning sign that Jupiter reports. */
const doubtful = (now: number): Record<string, unknown> => ({
  audit: { isSus: true, topHoldersPercentage: 70, devBalancePercentage: 48, devMigrations: 12 },
  stats24h: { priceChange: -72.5, buyVolume: 900, sellVolume: 9_100 },
  firstPool: { id: 'doubtful', createdAt: new Date(now - 5 * HOUR_MS).toISOString() },
  organicScore: 3.2,
  organicScoreLabel: 'low',
  isVerified: false,
  updatedAt: new Date(now - 2 * HOUR_MS).toISOString(),
  tags: [],
});

const cents = (usd: number): number => Math.round(usd * 100) / 100;
const digits = (value: number): number => Number(value.toPrecision(10));

function jupiterToken(token: Token, quote: Quote, now: number): Record<string, unknown> {
  const usdPrice = digits(quote.priceUsd * 1.001);
  return {
    id: token.mint,
    name: token.name,
    symbol: token.symbol,
    icon: null,
    circSupply: token.supply * token.circulating,
    totalSupply: token.supply,
    holderCount: quote.holders,
    fdv: cents(usdPrice * token.supply),
    mcap: cents(usdPrice * token.supply * token.circulating),
    usdPrice,
    liquidity: cents(quote.liquidityUsd),
    stats24h: {
      priceChange: cents(8 * chance(token.mint, 'change') - 4),
      buyVolume: cents(quote.volumeUsd * 0.53),
      sellVolume: cents(quote.volumeUsd * 0.47),
    },
    audit: { topHoldersPercentage: cents(10 + 30 * chance(token.mint, 'top holders')) },
    firstPool: { id: token.mint.slice(1) + 'A', createdAt: '2024-01-29T17:33:29Z' },
    organicScore: Math.round(4_000 + 5_500 * chance(token.mint, 'organic')) / 100,
    organicScoreLabel: 'high',
    isVerified: true,
    updatedAt: new Date(quote.at).toISOString(),
    tags: ['verified'],
    ...token.doubts?.(now),
  };
}

/** Each pool has half the liquidity of the one before. Prices differ by at most one per cent, except the price of the mispriced pool. */
function dexScreenerPools(token: Token, quote: Quote): Record<string, unknown>[] {
  return Array.from({ length: token.pools }, (_, index) => {
    const mispriced = index === 0 ? token.mispricedBy : undefined;
    const share = mispriced ? 200 : 0.5 ** index;
    const priceUsd = quote.priceUsd * (mispriced ?? 1 + 0.01 * (chance(token.mint, `pool ${index}`) - 0.5));
    const fdv = cents(priceUsd * token.supply);
    return {
      chainId: 'solana',
      dexId: ['orca', 'raydium', 'meteora'][index % 3],
      pairAddress: token.mint.slice(1) + 'ABCDEFGH'[index % 8],
      baseToken: { address: token.mint, name: token.name, symbol: token.symbol },
      quoteToken: { address: USDC, name: 'USD Coin', symbol: 'USDC' },
      priceNative: String(digits(priceUsd)),
      priceUsd: String(digits(priceUsd)),
      txns: { h24: { buys: 210 - index, sells: 190 - index } },
      volume: { h24: mispriced ? 12.5 : cents(quote.volumeUsd * share * 0.5) },
      liquidity: { usd: cents(quote.liquidityUsd * share), base: 1, quote: 1 },
      fdv,
      // If the circulating supply is not known, the market cap repeats the fully diluted valuation, as the real source does.
      marketCap: token.circulating === 1 ? fdv : cents(fdv * token.circulating),
      pairCreatedAt: 1_700_000_000_000 + index,
    };
  });
}

function geckoTerminalToken(token: Token, quote: Quote): Record<string, unknown> {
  const priceUsd = digits(quote.priceUsd * 0.998);
  // Counts the mispriced pool as liquidity, as the real source did.
  const reserve = quote.liquidityUsd * (token.mispricedBy ? 201 : 1.05);
  return {
    data: {
      id: `solana_${token.mint}`,
      type: 'token',
      attributes: {
        address: token.mint,
        name: token.name,
        symbol: token.symbol,
        price_usd: String(priceUsd),
        fdv_usd: String(cents(priceUsd * token.supply)),
        normalized_total_supply: String(token.supply),
        total_reserve_in_usd: String(cents(reserve)),
        volume_usd: { h24: String(cents(quote.volumeUsd * 0.97)) },
        market_cap_usd:
          token.circulating === 1 ? null : String(cents(priceUsd * token.supply * token.circulating)),
      },
    },
  };
}

type Answer = { status: number; body: unknown };
const notFound: Answer = { status: 404, body: { errors: [{ status: '404', title: 'Not Found' }] } };

function answer(
  url: URL,
  tokens: Map<string, Token>,
  quote: (token: Token, by: SourceName) => Quote,
  now: number,
): Answer {
  if (url.pathname === '/jupiter/tokens/v2/search') {
    const wanted = (url.searchParams.get('query') ?? '').split(',').slice(0, 100);
    const found = wanted.map(mint => tokens.get(mint)).filter(token => token !== undefined);
    return { status: 200, body: found.map(token => jupiterToken(token, quote(token, 'jupiter'), now)) };
  }
  const [, source, mint] =
    /^\/(dexscreener\/token-pairs\/v1|geckoterminal\/api\/v2\/networks)\/solana\/(?:tokens\/)?(\w+)$/.exec(
      url.pathname,
    ) ?? [undefined, undefined, ''];
  const token = tokens.get(mint ?? '');
  if (source?.startsWith('dexscreener'))
    return { status: 200, body: token ? dexScreenerPools(token, quote(token, 'dexscreener')) : [] };
  if (!token?.onGeckoTerminal || !source) return notFound;
  return { status: 200, body: geckoTerminalToken(token, quote(token, 'geckoterminal')) };
}

function send(response: ServerResponse, { status, body }: Answer): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length })
    .end(bytes);
}

function respond(request: IncomingMessage, response: ServerResponse, answerTo: (url: URL) => Answer): void {
  request.resume();
  const url = URL.canParse(request.url ?? '', 'http://market')
    ? new URL(request.url ?? '', 'http://market')
    : undefined;
  if (request.method !== 'GET') send(response, { status: 405, body: { error: 'Only GET is allowed.' } });
  else if (!url) send(response, notFound);
  else send(response, answerTo(url));
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/**
 * A market for the sample mints that speaks the wire formats of three aggregators, each under its own prefix followed by
 * the aggregator's real path: `/jupiter`, `/dexscreener`, `/geckoterminal`. `classic` has a deep mispriced pool; `token2022` is unknown
 * to GeckoTerminal; `untraded`, `uninitialised` and all other mints have no market.
 */
export async function startMarket(options: MarketOptions): Promise<{ url: string; close(): Promise<void> }> {
  const tokens = listTokens(options);
  const now = options.now ?? Date.now;
  const quote = (token: Token, by: SourceName): Quote => {
    const figures = quoteAt(token, now(), options.seed ?? '');
    return { ...figures, priceUsd: figures.priceUsd * (options.offBy?.[by] ?? 1) };
  };
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 10_000 }, (request, response) =>
    respond(request, response, url => answer(url, tokens, quote, now())),
  );
  await listen(server, options.port, options.host);
  const { port } = server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close(error => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}
