import { LRUCache } from 'lru-cache';
import { setMaxListeners } from 'node:events';
import { orAbort, UpstreamFailure, withDeadline } from 'coinslot';
import { plausibleQuotes, lowerMedian, median, spreadOf, tidy } from './consensus.js';
import { cleanName, cleanSymbol } from '../mints/clean-text.js';
import { briefLine } from './line.js';
import { findingsOf, mostSevereFirst, type Finding } from '../mints/findings.js';
import { MARKET_FINDINGS } from './market-findings.js';
import type { MarketQuote, MarketSource, PricedSource, SourceHealth, Verdict } from './source.js';

/** The answer of `solTokenBrief` (openapi.yaml). Amounts are in US dollars; null if no source knows them. */
type TokenBrief = {
  mint: string;
  symbol?: string;
  name?: string;
  priceUsd: number | null;
  mcapUsd: number | null;
  fdvUsd: number | null;
  liquidityUsd: number | null;
  volume24hUsd: number | null;
  holders: number | null;
  organicScore: number | null;
  /** The price change in percent. */
  change24hPercent: number | null;
  topHoldersPercent: number | null;
  jupiterVerified: boolean | null;
  /** ISO 8601. */
  firstPoolAt: string | null;
  /** One line. */
  brief: string;
  sources: string[];
  /** ISO 8601: when the sources were queried. */
  asOf: string;
  /** Whole seconds from `asOf` to this answer. */
  ageSeconds: number;
  /** The price of each source that has one, whether it was used or not. */
  quotes: PricedSource[];
  /** The highest of these prices divided by the lowest; null if there are fewer than two. */
  spread: number | null;
  /** Risks of the token, and reasons to doubt the figures, most severe first. */
  findings: Finding[];
  /** Their sentences. */
  warnings: string[];
  disclaimer: string;
};

/**
 * A mint's total supply as a decimal string, and the findings about its account.
 * @throws UpstreamFailure `invalid` if the chain has no such mint, or it is not initialised
 */
type MintOf = (mint: string, signal: AbortSignal) => Promise<{ supply: string; findings: Finding[] }>;

export type TokenBriefOptions = {
  /** In order of preference for values that come from a single source, such as the token's name. */
  sources: MarketSource[];
  mintOf: MintOf;
  /** Milliseconds since 1970. */
  now?: () => number;
  /** Marks figures that are not real, for example `sandbox`: appears before every source's name and in the disclaimer. */
  label?: string;
  /** How long a snapshot is cached. Default 15 000 ms. */
  cacheMs?: number;
};

export type TokenBriefService = {
  /**
   * A snapshot of one token, at most `cacheMs` old. Concurrent calls for the same mint share one round of requests, which
   * continues if one of them is cancelled.
   * @throws UpstreamFailure `invalid` (not a mint on the chain), `failed` (no source gave a usable answer) or `unavailable` (no
   *   source could be reached, or too many tokens are requested at once); the signal's reason if it aborts
   */
  brief(mint: string, signal: AbortSignal): Promise<TokenBrief>;
  /** The health of each source, from past requests. */
  health(): Record<string, SourceHealth>;
  close(): Promise<void>;
};

type Named = { source: string; quote: MarketQuote };
type Round = { quotes: Named[]; silent: MarketSource[]; failures: UpstreamFailure[] };
type Figures = Omit<
  TokenBrief,
  'mint' | 'brief' | 'asOf' | 'ageSeconds' | 'findings' | 'warnings' | 'disclaimer'
> & {
  disputed: boolean;
  verdict?: Verdict;
};
/** A cached brief; its age is added when it is returned. */
type Snapshot = Omit<TokenBrief, 'ageSeconds'> & { takenAt: number };

const MINT = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;
const SUPPLY = /^\d{1,40}(\.\d{1,255})?$/;
const MAX_CACHED = 1_000;
const MAX_ROUNDS = 64;
/** Each source has a shorter deadline of its own. The deadlines here apply if a source fails to enforce its own. */
const SUPPLY_DEADLINE_MS = 6_000;
const SOURCE_DEADLINE_MS = 8_000;

function asFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  return new UpstreamFailure('failed', 'A market-data source failed; try again later', { cause: error });
}

function nobodyAnswered(failures: UpstreamFailure[]): UpstreamFailure {
  const why = failures.map(failure => failure.message.replace(/; try again.*$/, '')).join('; ');
  const cause = new AggregateError(failures, 'every market-data source failed');
  if (failures.some(failure => failure.kind !== 'unavailable')) {
    const message = `No market-data source gave a usable answer: ${why}. Try again later.`;
    return new UpstreamFailure('failed', message, { cause });
  }
  const retryAfterSeconds = Math.min(...failures.map(failure => failure.retryAfterSeconds ?? 5));
  const message = `No market-data source is available: ${why}. Try again in ${retryAfterSeconds} s.`;
  return new UpstreamFailure('unavailable', message, { cause, retryAfterSeconds });
}

async function askAll(sources: MarketSource[], mint: string, signal: AbortSignal): Promise<Round> {
  const round: Round = { quotes: [], silent: [], failures: [] };
  const answers = await Promise.allSettled(
    sources.map(source => withDeadline(SOURCE_DEADLINE_MS, signal, inTime => source.quote(mint, inTime))),
  );
  sources.forEach((source, index) => {
    const answer = answers[index];
    if (answer?.status !== 'fulfilled') round.failures.push(asFailure(answer?.reason));
    else if (answer.value) round.quotes.push({ source: source.name, quote: answer.value });
    else round.silent.push(source);
  });
  // "No market" is accepted only from all sources, or from a source whose empty answer cannot be a temporary failure.
  const sure = round.failures.length === 0 || round.silent.some(source => !source.emptyIsUncertain);
  if (round.quotes.length === 0 && !sure) throw nobodyAnswered(round.failures);
  return round;
}

/** The fully diluted valuation. A supply has up to 20 digits, so the string is converted only once, to limit rounding. */
function valuation(priceUsd: number | null, supply: string): number | null {
  const units = Number(supply);
  // A supply of 0 means wrapped SOL, which its mint does not count, or a token that was burnt. Neither has a valuation.
  return priceUsd === null || units === 0 ? null : tidy(priceUsd * units);
}

/** The first quote that has `field`, and its source. */
function firstKnown<K extends keyof MarketQuote>(
  quotes: Named[],
  field: K,
): { value?: MarketQuote[K]; from?: string } {
  const found = quotes.find(({ quote }) => quote[field] !== undefined);
  return found ? { value: found.quote[field], from: found.source } : {};
}

function combine({ quotes, silent }: Round, supply: string): Figures {
  const priced = quotes.flatMap(({ source, quote }) =>
    quote.priceUsd === undefined ? [] : [{ source, quote, priceUsd: quote.priceUsd }],
  );
  const { kept, disputed } = plausibleQuotes(priced);
  const trusted = priced.length > 0 ? kept : quotes;
  const amountOf = (field: 'mcapUsd' | 'liquidityUsd' | 'volume24hUsd'): number | null =>
    lowerMedian(trusted.map(({ quote }) => quote[field]).filter(value => value !== undefined)) ?? null;
  // Names and holder counts don't depend on the price, so a source whose price was rejected may still supply them.
  const ranked = [...trusted, ...quotes];
  const symbol = firstKnown(ranked, 'symbol');
  const name = firstKnown(ranked, 'name');
  const holders = firstKnown(ranked, 'holders');
  const organicScore = firstKnown(ranked, 'organicScore');
  const topHolders = firstKnown(ranked, 'topHoldersPercent');
  const verified = firstKnown(ranked, 'verified');
  const firstPool = firstKnown(ranked, 'firstPoolAt');
  // The change reported by a source with a rejected price would not belong to the price used.
  const change24h = firstKnown(trusted, 'change24hPercent');
  const single = [symbol, name, holders, organicScore, topHolders, verified, firstPool, change24h];
  const used = new Set([...trusted.map(({ source }) => source), ...single.map(({ from }) => from)]);
  const priceUsd = kept.length > 0 ? tidy(median(kept.map(item => item.priceUsd))) : null;
  return {
    symbol: cleanSymbol(symbol.value),
    name: cleanName(name.value),
    priceUsd,
    mcapUsd: amountOf('mcapUsd'),
    fdvUsd: valuation(priceUsd, supply),
    liquidityUsd: amountOf('liquidityUsd'),
    volume24hUsd: amountOf('volume24hUsd'),
    holders: holders.value ?? null,
    organicScore: organicScore.value ?? null,
    change24hPercent: change24h.value ?? null,
    topHoldersPercent: topHolders.value ?? null,
    jupiterVerified: verified.value ?? null,
    firstPoolAt: firstPool.value ?? null,
    // Without a market, the sources are those that reported that there is none.
    sources: quotes.length > 0 ? quotes.map(q => q.source).filter(s => used.has(s)) : silent.map(s => s.name),
    quotes: priced.map(item => ({
      source: item.source,
      priceUsd: item.priceUsd,
      used: kept.includes(item),
      ...(item.quote.updatedAt === undefined ? {} : { updatedAt: item.quote.updatedAt }),
    })),
    spread: spreadOf(priced.map(item => item.priceUsd)),
    disputed,
    verdict: firstKnown(ranked, 'verdict').value,
  };
}

type Taken = { figures: Figures; ofMint: Finding[]; untraded: boolean; asOf: number };

function render(
  mint: string,
  { figures, ofMint, untraded, asOf }: Taken,
  label: string | undefined,
): Snapshot {
  const { symbol, name, disputed, verdict, ...rest } = figures;
  const ofMarket = findingsOf(MARKET_FINDINGS, { ...rest, disputed, verdict, untraded, asOf });
  const findings = mostSevereFirst([...ofMarket, ...ofMint]);
  const standIn = label ? ` The figures are ${label} data, not those of a real market.` : '';
  return {
    mint,
    ...(symbol === undefined ? {} : { symbol }),
    ...(name === undefined ? {} : { name }),
    ...rest,
    brief: briefLine({ mint, ...figures, untraded, disputed, findings }),
    findings,
    warnings: findings.map(({ sentence }) => sentence),
    asOf: new Date(asOf).toISOString(),
    takenAt: asOf,
    disclaimer: `Aggregated from public market data without warranty; not financial advice.${standIn}`,
  };
}

function labelled(source: MarketSource, label: string | undefined): MarketSource {
  if (!label || source.name.startsWith(`${label}:`)) return source;
  return {
    name: `${label}:${source.name}`,
    ...(source.emptyIsUncertain ? { emptyIsUncertain: true } : {}),
    quote: (mint, signal) => source.quote(mint, signal),
    health: () => source.health(),
    close: () => source.close(),
  };
}

/** Reads the chain, then all sources in parallel, and combines the answers into one snapshot. */
async function takeSnapshot(
  mint: string,
  options: TokenBriefOptions,
  signal: AbortSignal,
): Promise<Snapshot> {
  // The chain comes first, because calls with an address that is not a mint are free, and must not use up the rate limits of the sources.
  const { supply, findings: ofMint } = await withDeadline(SUPPLY_DEADLINE_MS, signal, inTime =>
    options.mintOf(mint, inTime),
  ).catch((error: unknown) => {
    if (error instanceof UpstreamFailure) throw error;
    const message = "The token's supply could not be read from the chain; try again later";
    throw new UpstreamFailure('failed', message, { cause: error });
  });
  if (!SUPPLY.test(supply))
    throw new UpstreamFailure('failed', 'The supply on the chain is unreadable; try again later');
  const asOf = (options.now ?? Date.now)();
  const round = await askAll(options.sources, mint, signal);
  const untraded = round.quotes.length === 0;
  return render(mint, { figures: combine(round, supply), ofMint, untraded, asOf }, options.label);
}

/**
 * The token brief, aggregated over several market-data sources:
 * - price: the unweighted median of the prices that are within 1.5× of the median of all. If exactly two prices differ by more
 *   than 1.5×, or none is near the median, the lowest is used and the brief says that the sources disagree.
 * - fdv: that price × the supply on the chain; null for a supply of 0.
 * - market cap, liquidity, 24 h volume: the lower median (the middle of three figures, the smaller of two) over the sources whose
 *   price was accepted, because each source counts different pools. The market cap is never derived from the fdv.
 * - holders, organic score, top holders, verified, first pool, symbol, name: from the first source that knows them; sources whose price
 *   was accepted come first. Change in 24 h: only from a source whose price was accepted.
 * - `quotes`, `spread`: the price of every source that has one, and how far apart they are.
 * - `findings`: those of the market (market-findings.ts) and of the mint (mints/mint-findings.ts).
 * - `sources`: those that contributed to the answer; for a token without a market, those that reported that there is none.
 *
 * A source that fails is left out. If all fail, the failure is `unavailable` if all were unreachable, rate-limited or had an open
 * circuit, otherwise `failed`. Failures are not cached.
 */
export function createTokenBrief(given: TokenBriefOptions): TokenBriefService {
  if (given.sources.length === 0) throw new Error('createTokenBrief needs at least one market-data source');
  const options = { ...given, sources: given.sources.map(source => labelled(source, given.label)) };
  const now = options.now ?? Date.now;
  const snapshots = new LRUCache<string, { brief: Snapshot; until: number }>({ max: MAX_CACHED });
  const rounds = new Map<string, Promise<Snapshot>>();
  const closing = new AbortController();
  // Many waits listen to this signal; Node.js would print a warning from the eleventh listener on.
  setMaxListeners(MAX_ROUNDS * (options.sources.length + 1), closing.signal);

  async function run(mint: string): Promise<Snapshot> {
    try {
      const brief = await takeSnapshot(mint, options, closing.signal);
      snapshots.set(mint, { brief, until: now() + (options.cacheMs ?? 15_000) });
      return brief;
    } catch (error) {
      if (!closing.signal.aborted) throw error;
      throw new UpstreamFailure('unavailable', 'The server is shutting down; try again shortly', {
        retryAfterSeconds: 5,
      });
    } finally {
      rounds.delete(mint);
    }
  }

  function join(mint: string): Promise<Snapshot> {
    const running = rounds.get(mint);
    if (running) return running;
    if (rounds.size >= MAX_ROUNDS || closing.signal.aborted) {
      const message = 'Too many tokens are being looked up; try again shortly';
      throw new UpstreamFailure('unavailable', message, { retryAfterSeconds: 2 });
    }
    const started = run(mint);
    rounds.set(mint, started);
    return started;
  }

  return {
    async brief(mint, signal) {
      signal.throwIfAborted();
      if (!MINT.test(mint)) throw new UpstreamFailure('invalid', 'mint must be a base58 Solana mint address');
      const kept = snapshots.get(mint);
      const snapshot = kept && kept.until > now() ? kept.brief : await orAbort(join(mint), signal);
      const { takenAt, ...brief } = structuredClone(snapshot);
      return { ...brief, ageSeconds: Math.max(0, Math.round((now() - takenAt) / 1_000)) };
    },
    health: () => Object.fromEntries(options.sources.map(source => [source.name, source.health()])),
    async close() {
      closing.abort(new Error('closing'));
      await Promise.all(options.sources.map(source => source.close()));
    },
  };
}
