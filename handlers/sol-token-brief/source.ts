/**
 * What one market-data aggregator reports about a token. Every number is finite, not negative and, unless its name says otherwise,
 * in US dollars. A field that the source does not know is absent. Texts are cleaned (see `cleanText`).
 */
export type MarketQuote = {
  symbol?: string;
  name?: string;
  /** More than 0. */
  priceUsd?: number;
  /** Price × circulating supply, as the source reports it, but never its fully diluted valuation. */
  mcapUsd?: number;
  liquidityUsd?: number;
  volume24hUsd?: number;
  holders?: number;
  /** 0 to 100, Jupiter's measure of genuine activity. */
  organicScore?: number;
  /** The price change in percent; at least -100. */
  change24hPercent?: number;
  /** The largest holders' share of the supply, as the source counts them. */
  topHoldersPercent?: number;
  /** Whether the source lists the token as verified. */
  verified?: boolean;
  /** ISO 8601: when the first pool that the source knows was created. */
  firstPoolAt?: string;
  /** ISO 8601: when the source last changed these figures, if it reports that. */
  updatedAt?: string;
  verdict?: Verdict;
};

/** The verdict of a source that examines tokens. Fields that it does not report are absent. */
export type Verdict = {
  suspicious: boolean;
  /** How organic the trading is, in the source's own word. */
  organic?: 'low' | 'medium' | 'high';
  /** The share of the supply in the developer's wallet. */
  developerPercent?: number;
  /** How many tokens by the same developer have moved from a launchpad to a market. */
  developerMigrations?: number;
};

/** `updatedAt`: ISO 8601, when the source last changed its figures, if it reports that. */
export type PricedSource = { source: string; priceUsd: number; used: boolean; updatedAt?: string };

/** `degraded`: the last request failed or the circuit is open. `latencyMs` is that of the last answer. */
export type SourceHealth = { status: 'ok' | 'degraded'; latencyMs?: number; detail?: string };

/** The port: one market-data aggregator. */
export type MarketSource = {
  /** As it appears in `sources`, for example `jupiter` or `sandbox:jupiter`. */
  name: string;
  /** True if "no market" and a temporary failure look alike, so that this answer alone does not prove that there is no market. */
  emptyIsUncertain?: boolean;
  /**
   * The source's figures for one token; undefined if it knows no market for it. Settles within the source's own deadline.
   * @throws UpstreamFailure `failed` (late, cut off, unreadable or implausible answer) or `unavailable` (unreachable, rate-limited,
   *   circuit open); the signal's reason if it aborts
   */
  quote(mint: string, signal: AbortSignal): Promise<MarketQuote | undefined>;
  /** The source's health according to past requests. Sends no request. */
  health(): SourceHealth;
  /** Waits for running requests (bounded by their deadline) and closes the connections; may be called twice. */
  close(): Promise<void>;
};
