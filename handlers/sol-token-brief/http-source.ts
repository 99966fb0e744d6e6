import {
  backoffSeconds,
  Circuit,
  type CircuitOptions,
  failureKind,
  type HttpAnswer,
  HttpClient,
  NoAnswer,
  Resting,
  UpstreamFailure,
} from 'coinslot';
import type { MarketQuote, MarketSource, SourceHealth } from './source.js';

/** The settings that every source has. */
export type SourceOptions = {
  /** Base URL, with path. Default: the aggregator's public URL. */
  url?: string;
  /** Prefix of the source's name: `sandbox` gives `sandbox:jupiter`. */
  label?: string;
  /** Deadline of one request, from the queue to the last byte. Default 4 000 ms. */
  deadlineMs?: number;
  /** Consecutive failures that open the circuit (default 5), and how long it stays open at first (default 5 000 ms; doubles up to a minute). */
  breaker?: CircuitOptions;
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

type Answer = { status: number; body: unknown };

/** One aggregator's connections and circuit. */
class Endpoint {
  readonly #name: string;
  readonly #deadlineMs: number;
  readonly #restMs: number;
  readonly #client: HttpClient;
  readonly #circuit: Circuit;
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
    this.#circuit = new Circuit(options.breaker);
  }

  /** Throws `UpstreamFailure`, or the signal's reason. */
  async get(path: string, signal: AbortSignal): Promise<Answer> {
    const startedAt = performance.now();
    try {
      const answer = await this.#circuit.run(signal, () => this.#fetch(path, signal));
      this.#latencyMs = Math.round(performance.now() - startedAt);
      this.#lastFailure = undefined;
      return answer;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof Resting) throw this.#resting(error);
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

  #resting({ seconds }: Resting): UpstreamFailure {
    const message = `${this.#name} is paused after failures; try again in ${seconds} s`;
    return new UpstreamFailure('unavailable', message, { retryAfterSeconds: seconds });
  }

  async #fetch(path: string, signal: AbortSignal): Promise<Answer> {
    try {
      return this.#read(await this.#client.request({ method: 'GET', path, ms: this.#deadlineMs, signal }));
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /**
   * Failures of the source as a whole throw here, inside the circuit. A 4xx for one token is returned instead, so that requests
   * for an unusual token cannot open the circuit for everyone.
   */
  #read(answer: HttpAnswer): Answer {
    const { status, text } = answer;
    if (failureKind(status) === 'unavailable') throw this.#refused(answer);
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
    if (status === 429 || seconds !== undefined) this.#circuit.trip(seconds);
    const message = `${this.#name} ${status === 429 ? 'limits the request rate' : 'is temporarily unavailable'}; try again later`;
    return new UpstreamFailure('unavailable', message, {
      retryAfterSeconds: seconds ?? Math.ceil(this.#restMs / 1_000),
    });
  }

  #explain(error: unknown): UpstreamFailure {
    if (error instanceof UpstreamFailure) return error;
    const told = { cause: error };
    const kind = error instanceof NoAnswer ? error.kind : 'broken';
    if (failureKind(kind) === 'unavailable') {
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
