import { circuitBreaker, BrokenCircuitError, CircuitState, ConsecutiveBreaker, handleWhen } from 'cockatiel';
import {
  DeadlineExceeded,
  failureKind,
  type HttpAnswer,
  HttpClient,
  type HttpRequest,
  NoAnswer,
  readRetryAfter,
  UpstreamFailure,
} from 'coinslot';

export type PiperOptions = {
  /** Base URL of Piper's HTTP server, for example `http://127.0.0.1:5000`; a path prefix is kept. */
  url: string;
  /** Voice for calls that name none. Default: a US English voice of medium quality, if the server has one. */
  defaultVoice?: string;
  /** Deadline for waiting, synthesis and conversion together. Default 18 000 ms. */
  deadlineMs?: number;
  /** The maximum number of concurrent requests. Default 4. */
  connections?: number;
  /** Calls that may wait for a connection; further calls are refused. Default 16. */
  maxWaiting?: number;
  /** The largest answer that is read. Default 64 MB. */
  maxBodyBytes?: number;
  /** How long the list of voices is cached. Default 60 000 ms. */
  voicesTtlMs?: number;
  /** Consecutive failures that open the circuit (default 5) and how long it stays open (default 10 000 ms). */
  breaker?: { failures?: number; restMs?: number };
};

/**
 * How a server takes its text. Piper has had three interfaces: JSON at `/synthesize`; before that, the same JSON at `/`; and
 * originally plain text at `/`. A server of the last kind would read JSON aloud, and has no list of voices.
 */
export type Dialect = { path: '/synthesize' | '/'; body: 'json' | 'text' };

export const SYNTHESIZE: Dialect = { path: '/synthesize', body: 'json' };
export const ROOT_JSON: Dialect = { path: '/', body: 'json' };
export const ROOT_TEXT: Dialect = { path: '/', body: 'text' };

/** Default of `deadlineMs`. */
export const DEADLINE_MS = 18_000;

export function toFailure(error: unknown): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error;
  const options = { cause: error };
  const kind = error instanceof NoAnswer ? error.kind : undefined;
  if (kind === 'late' || error instanceof DeadlineExceeded)
    return new UpstreamFailure(
      'failed',
      'The speech server did not answer in time; try again or send less text.',
      options,
    );
  if (kind && failureKind(kind) === 'unavailable')
    return new UpstreamFailure('unavailable', 'The speech server cannot be reached; try again.', {
      ...options,
      retryAfterSeconds: 10,
    });
  if (kind === 'too large')
    return new UpstreamFailure(
      'failed',
      'The answer of the speech server is too large; send less text.',
      options,
    );
  return new UpstreamFailure(
    'failed',
    'The speech server closed the connection during its answer; try again.',
    options,
  );
}

export function refusal(answer: HttpAnswer): UpstreamFailure {
  const { status } = answer;
  const cause = new Error(`status ${status}`);
  if (failureKind(status) === 'failed')
    return new UpstreamFailure('failed', 'The speech server rejected the text or failed; try again.', {
      cause,
    });
  const retryAfterSeconds = readRetryAfter(answer.header('retry-after')) ?? 5;
  return new UpstreamFailure('unavailable', 'The speech server is busy; try again.', {
    cause,
    retryAfterSeconds,
  });
}

/** True if the status shows a problem of the server, not of the request. */
function isOutage(status: number): boolean {
  return status >= 500 || status === 429;
}

type PiperRequest = Omit<HttpRequest, 'ms'> & { signal: AbortSignal };

/** The HTTP connections to one Piper server, and its circuit breaker. */
export class PiperServer {
  readonly #client: HttpClient;
  readonly #deadlineMs: number;
  readonly #restSeconds: number;
  readonly #circuit;

  constructor(options: PiperOptions) {
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    this.#client = new HttpClient(options.url, {
      connections: (options.connections ?? 4) + 1,
      maxAnswerBytes: options.maxBodyBytes ?? 64_000_000,
      connectMs: 3_000,
      resend: true,
    });
    const restMs = options.breaker?.restMs ?? 10_000;
    this.#restSeconds = Math.ceil(restMs / 1_000);
    this.#circuit = circuitBreaker(
      // A call cancelled by its caller is not a failure of the server. In the half-open state it counts as one, because the probe had no
      // result.
      handleWhen(
        error => error instanceof UpstreamFailure || this.#circuit.state === CircuitState.HalfOpen,
      ).orWhenResult(answer => isOutage((answer as HttpAnswer).status)),
      { breaker: new ConsecutiveBreaker(options.breaker?.failures ?? 5), halfOpenAfter: restMs },
    );
  }

  get open(): boolean {
    return this.#circuit.state === CircuitState.Open;
  }

  get(path: string, signal: AbortSignal): Promise<HttpAnswer> {
    return this.#guarded({ method: 'GET', path, signal });
  }

  post(dialect: Dialect, text: string, voice: string | undefined, signal: AbortSignal): Promise<HttpAnswer> {
    const json = dialect.body === 'json';
    return this.#guarded({
      method: 'POST',
      path: dialect.path,
      headers: {
        'content-type': json ? 'application/json' : 'text/plain; charset=utf-8',
        accept: 'audio/wav',
      },
      body: json ? JSON.stringify(voice === undefined ? { text } : { text, voice }) : text,
      signal,
    });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Resolves to an answer of any status. Those for which `isOutage` is true count as failures. */
  async #guarded(request: PiperRequest): Promise<HttpAnswer> {
    // While one request probes a recovering server, other requests fail immediately instead of waiting for it.
    if (this.#circuit.state === CircuitState.HalfOpen) throw this.#resting();
    try {
      return await this.#circuit.execute(() => this.#request(request));
    } catch (error) {
      if (error instanceof BrokenCircuitError) throw this.#resting(error);
      throw error;
    }
  }

  async #request(request: PiperRequest): Promise<HttpAnswer> {
    const { signal } = request;
    try {
      return await this.#client.request({ ...request, ms: this.#deadlineMs });
    } catch (error) {
      const reason: unknown = signal.aborted ? signal.reason : error;
      if (signal.aborted && !(reason instanceof DeadlineExceeded)) throw reason;
      throw toFailure(reason);
    }
  }

  #resting(cause?: unknown): UpstreamFailure {
    return new UpstreamFailure('unavailable', 'The speech server keeps failing; try again.', {
      cause,
      retryAfterSeconds: this.#restSeconds,
    });
  }
}
