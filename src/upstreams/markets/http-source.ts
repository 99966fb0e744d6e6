import {
  BrokenCircuitError,
  circuitBreaker,
  CircuitState,
  handleWhen,
  type CircuitBreakerPolicy,
  type IBackoff,
  type IBreaker,
} from 'cockatiel';
import { readRetryAfter, UpstreamFailure } from '../../net/failure.js';
import { HttpClient, NoAnswer, type HttpAnswer } from '../../net/http-client.js';
import type { MarketQuote, MarketSource, SourceHealth } from './source.js';

/** Settings of any source. */
export type SourceOptions = {
  /** Base URL, with path. Default: the aggregator's public URL. */
  url?: string;
  /** Prefix of the source's name: `sandbox` gives `sandbox:jupiter`. */
  label?: string;
  /** Deadline of one request, from the queue to the last byte. Default 4 000 ms. */
  deadlineMs?: number;
  /** Consecutive failures that open the circuit (default 5), and its first rest (default 5 000 ms; doubles up to a minute). */
  breaker?: { failures?: number; restMs?: number };
};

/** What makes one aggregator differ from another. */
export type WireFormat = {
  name: string;
  url: string;
  headers?: Record<string, string>;
  emptyIsUncertain?: boolean;
  /** True if the aggregator answers 404 for an unknown token. */
  unknownIs404?: boolean;
  path: (mint: string) => string;
  /** Reads a parsed 2xx answer; throws `RangeError` if it is implausible. */
  decode: (body: unknown, mint: string) => MarketQuote | undefined;
};

const MAX_BODY_BYTES = 2_000_000;
const MAX_REST_MS = 60_000;
const MAX_BACKOFF_SECONDS = 120;

type Answer = { status: number; body: unknown };

/** The caller left, which is no failure of the source. */
class CallerLeft extends Error {}

/** Counts consecutive failures. A rate limit opens the circuit at once. */
class ConsecutiveOrTripped implements IBreaker {
  state = 0;
  tripped = false;
  readonly #limit: number;
  constructor(limit: number) {
    this.#limit = limit;
  }
  success(): void {
    this.state = 0;
  }
  failure(): boolean {
    this.state += 1;
    const open = this.tripped || this.state >= this.#limit;
    this.tripped = false;
    return open;
  }
}

/**
 * How many seconds to wait after a refusal, from 1 to 120: from `Retry-After`, or else from `x-ratelimit-reset`, which servers send
 * as seconds from now, Unix seconds or Unix milliseconds.
 */
export function backoffSeconds(
  headers: { 'retry-after'?: string | undefined; 'x-ratelimit-reset'?: string | undefined },
  now = Date.now(),
): number | undefined {
  const retryAfter = readRetryAfter(headers['retry-after'], now);
  if (retryAfter !== undefined) return Math.min(retryAfter, MAX_BACKOFF_SECONDS);
  const reset = Number(headers['x-ratelimit-reset'] ?? Number.NaN);
  if (!Number.isFinite(reset) || reset < 0) return undefined;
  const ahead = reset > 1e11 ? (reset - now) / 1_000 : reset > 1e8 ? reset - now / 1_000 : reset;
  return Math.min(Math.max(Math.ceil(ahead), 1), MAX_BACKOFF_SECONDS);
}

/** One aggregator's connections and circuit. */
class Endpoint {
  readonly #name: string;
  readonly #deadlineMs: number;
  readonly #restMs: number;
  readonly #client: HttpClient;
  readonly #counter: ConsecutiveOrTripped;
  readonly #circuit: CircuitBreakerPolicy;
  #askedToWaitUntil = 0;
  #restsUntil = 0;
  #latencyMs: number | undefined;
  #lastFailure: string | undefined;

  constructor(name: string, format: WireFormat, options: SourceOptions) {
    this.#name = name;
    this.#deadlineMs = options.deadlineMs ?? 4_000;
    this.#restMs = options.breaker?.restMs ?? 5_000;
    this.#client = new HttpClient(options.url ?? format.url, {
      connections: 8,
      maxAnswerBytes: MAX_BODY_BYTES,
      connectMs: Math.ceil(this.#deadlineMs * 0.75),
      headers: { accept: 'application/json', 'user-agent': 'coinslot', ...format.headers },
      resend: true,
    });
    this.#counter = new ConsecutiveOrTripped(options.breaker?.failures ?? 5);
    this.#circuit = circuitBreaker(
      // A probe whose caller left has no result, so it must not close the circuit.
      handleWhen(error => !(error instanceof CallerLeft) || this.#circuit.state === CircuitState.HalfOpen),
      { breaker: this.#counter, halfOpenAfter: { next: context => this.#rest(context.attempt) } },
    );
  }

  /** Throws `UpstreamFailure`, or the signal's reason. */
  async get(path: string, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    // While one request probes a recovering source, the others fail at once instead of waiting for it.
    if (this.#circuit.state === CircuitState.HalfOpen) throw this.#resting();
    const startedAt = performance.now();
    try {
      const answer = await this.#circuit.execute(() => this.#fetch(path, signal));
      this.#latencyMs = Math.round(performance.now() - startedAt);
      this.#lastFailure = undefined;
      return answer;
    } catch (error) {
      if (error instanceof CallerLeft) throw signal.reason;
      if (error instanceof BrokenCircuitError) throw this.#resting();
      this.#lastFailure = error instanceof Error ? error.message : 'failed';
      throw error;
    }
  }

  health(): SourceHealth {
    const latency = this.#latencyMs === undefined ? {} : { latencyMs: this.#latencyMs };
    if (this.#lastFailure !== undefined) return { status: 'degraded', ...latency, detail: this.#lastFailure };
    return {
      status: 'ok',
      ...latency,
      ...(this.#latencyMs === undefined ? { detail: 'no request sent yet' } : {}),
    };
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #rest(attempt: number): IBackoff<{ attempt: number }> {
    const now = Date.now();
    const asked = this.#askedToWaitUntil - now;
    const duration = asked > 0 ? asked : Math.min(this.#restMs * 2 ** Math.min(attempt - 1, 16), MAX_REST_MS);
    this.#restsUntil = now + duration;
    return { duration, next: context => this.#rest(context.attempt) };
  }

  #resting(): UpstreamFailure {
    const seconds = Math.max(Math.ceil((this.#restsUntil - Date.now()) / 1_000), 1);
    const message = `${this.#name} is paused after failures; try again in ${seconds} s`;
    return new UpstreamFailure('unavailable', message, { retryAfterSeconds: seconds });
  }

  async #fetch(path: string, signal: AbortSignal): Promise<Answer> {
    try {
      return this.#read(await this.#client.request({ method: 'GET', path, ms: this.#deadlineMs, signal }));
    } catch (error) {
      if (signal.aborted) throw new CallerLeft('the caller left');
      throw this.#explain(error);
    }
  }

  /**
   * Failures of the source as a whole throw here, inside the circuit. A 4xx for one token is returned instead, so that requests
   * for an unusual token cannot open the circuit for everyone.
   */
  #read(answer: HttpAnswer): Answer {
    const { status, text } = answer;
    if (status === 429 || status === 503) throw this.#refused(answer);
    if (status === 401 || status === 403) {
      const message = `${this.#name} refused access (${status}); the operator must check the API key`;
      throw new UpstreamFailure('failed', message);
    }
    if (status >= 400 && status < 500 && status !== 408)
      return { status, body: looksLikeHtml(text) ? 'html' : '' };
    if (status < 200 || status > 299) {
      throw new UpstreamFailure('failed', `${this.#name} answered ${status}; try again later`);
    }
    try {
      return { status, body: JSON.parse(text) as unknown };
    } catch (cause) {
      throw new UpstreamFailure('failed', `${this.#name} sent an answer that is not JSON; try again later`, {
        cause,
      });
    }
  }

  #refused(answer: HttpAnswer): UpstreamFailure {
    const { status } = answer;
    const seconds = backoffSeconds({
      'retry-after': answer.header('retry-after'),
      'x-ratelimit-reset': answer.header('x-ratelimit-reset'),
    });
    if (status === 429 || seconds !== undefined) {
      const waitMs = seconds === undefined ? Math.max(this.#restMs, 1_000) : seconds * 1_000;
      this.#askedToWaitUntil = Date.now() + waitMs;
      this.#counter.tripped = true;
    }
    const message = `${this.#name} ${status === 429 ? 'limits the request rate' : 'is temporarily unavailable'}; try again later`;
    return new UpstreamFailure('unavailable', message, {
      retryAfterSeconds: seconds ?? Math.ceil(this.#restMs / 1_000),
    });
  }

  #explain(error: unknown): UpstreamFailure {
    if (error instanceof UpstreamFailure) return error;
    const told = { cause: error };
    const kind = error instanceof NoAnswer ? error.kind : 'broken';
    if (kind === 'unreachable') {
      return new UpstreamFailure('unavailable', `${this.#name} cannot be reached; try again later`, told);
    }
    const what =
      kind === 'late'
        ? 'did not answer in time'
        : kind === 'too large'
          ? 'sent too large an answer'
          : 'sent an incomplete answer';
    return new UpstreamFailure('failed', `${this.#name} ${what}; try again later`, told);
  }
}

const looksLikeHtml = (text: string): boolean => /^\s*</.test(text.slice(0, 200));

/** Makes a market source from a wire format: one keep-alive pool, a deadline, a circuit breaker and a size limit. */
export function createHttpSource(format: WireFormat, options: SourceOptions): MarketSource {
  const name = options.label ? `${options.label}:${format.name}` : format.name;
  const endpoint = new Endpoint(name, format, options);
  return {
    name,
    ...(format.emptyIsUncertain ? { emptyIsUncertain: true } : {}),
    async quote(mint, signal) {
      const { status, body } = await endpoint.get(format.path(mint), signal);
      // An HTML 404 page comes from a proxy and says nothing about the token.
      if (status === 404 && format.unknownIs404 && body !== 'html') return undefined;
      if (status !== 200) {
        throw new UpstreamFailure('failed', `${name} answered ${status} for this token; try again later`);
      }
      try {
        return format.decode(body, mint);
      } catch (cause) {
        const what = cause instanceof RangeError ? cause.message : 'an unreadable record';
        throw new UpstreamFailure('failed', `${name} answered ${what} for this token; try again later`, {
          cause,
        });
      }
    },
    health: () => endpoint.health(),
    close: () => endpoint.close(),
  };
}
