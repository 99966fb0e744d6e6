/**
 * What one market-data aggregator says about a token. Every number is finite, not negative and in US dollars unless the name
 * says otherwise; a field the source does not know is absent. Texts are cleaned (see `cleanText`).
 */
export type MarketQuote = {
  symbol?: string;
  name?: string;
  /** More than 0. */
  priceUsd?: number;
  /** Price × circulating supply, as the source reports it. Never a repetition of its fully diluted valuation. */
  mcapUsd?: number;
  liquidityUsd?: number;
  volume24hUsd?: number;
  holders?: number;
  /** 0 to 100, Jupiter's measure of genuine activity. */
  organicScore?: number;
};

/** `degraded`: the last request failed or the circuit is open. `latencyMs` is that of the last answer. */
export type SourceHealth = { status: 'ok' | 'degraded'; latencyMs?: number; detail?: string };

/** The port: one market-data aggregator. */
export type MarketSource = {
  /** As it appears in `sources`, for instance `jupiter` or `sandbox:jupiter`. */
  name: string;
  /** True where "no market" and a passing failure look alike, so that such an answer proves nothing alone. */
  emptyIsUncertain?: boolean;
  /**
   * The source's view of one token; undefined when it knows no market for it. Ends within the source's own deadline.
   * Throws `UpstreamFailure` `failed` (late, cut off, unreadable or implausible answer) or `unavailable` (unreachable,
   * rate-limited, circuit open), and the signal's reason when the signal aborts.
   */
  quote(mint: string, signal: AbortSignal): Promise<MarketQuote | undefined>;
  /** What is known from past requests; sends none. */
  health(): SourceHealth;
  /** Waits for running requests (bounded by their deadline) and closes the connections; may be called twice. */
  close(): Promise<void>;
};
