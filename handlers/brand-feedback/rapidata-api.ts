import {
  failureKind,
  type HttpAnswer,
  HttpClient,
  type HttpRequest,
  NoAnswer,
  type NoAnswerKind,
  pause,
  readRetryAfter,
  UpstreamFailure,
} from 'coinslot';

export type RapidataCredentials = { clientId: string; clientSecret: string };

export type RapidataApiOptions = RapidataCredentials & {
  /** Base URLs. Default https://api.rapidata.ai and https://auth.rapidata.ai. */
  apiUrl?: string;
  authUrl?: string;
  /** Deadline of one request, from connecting to the last byte. Default 10 000 ms. */
  requestMs?: number;
  /** Pause before the first retry; it doubles with each retry. Default 500 ms. */
  retryMs?: number;
};

export type Json = Record<string, unknown>;

/** A failed request to the marketplace: an error status, an unusable answer, or no answer. */
export class RapidataFault extends Error {
  /** HTTP status; 0 if no answer came, in which case the request may have been executed. */
  readonly status: number;
  /** The status, or why there is no answer. */
  readonly what: number | NoAnswerKind;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    what: number | NoAnswerKind,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number } = {},
  ) {
    super(message, { cause: options.cause });
    this.what = what;
    this.status = typeof what === 'number' ? what : 0;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  /** True if the marketplace certainly did not execute the request. */
  get refused(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 408;
  }

  get passing(): boolean {
    return (
      this.status === 0 ||
      this.status === 408 ||
      this.status === 425 ||
      this.status === 429 ||
      this.status >= 500
    );
  }
}

type Call = { method: 'GET' | 'POST'; path: string; body?: Json };

const TRIES = 4;
const MAX_PAUSE_MS = 15_000;
const MAX_BODY_BYTES = 4_000_000;
/** A token is renewed after this share of its lifetime. */
const TOKEN_LIFE = 0.8;
const DEFAULT_TOKEN_SECONDS = 300;

/**
 * The HTTP side of Rapidata's API: token (OpenID client credentials), deadlines, bounded bodies, retries. Wire formats:
 * see `openapi/schemas/` of RapidataAI/rapidata-python-sdk.
 */
export class RapidataApi {
  readonly #api: HttpClient;
  readonly #auth: HttpClient;
  readonly #credentials: RapidataCredentials;
  readonly #requestMs: number;
  readonly #retryMs: number;
  #token: { value: string; renewAt: number } | undefined;
  #renewing: Promise<string> | undefined;

  constructor(options: RapidataApiOptions) {
    const { clientId, clientSecret, requestMs = 10_000, retryMs = 500 } = options;
    const limits = {
      connections: 8,
      maxAnswerBytes: MAX_BODY_BYTES,
      connectMs: 3_000,
      headers: { accept: 'application/json' },
    };
    this.#api = new HttpClient(options.apiUrl ?? 'https://api.rapidata.ai', limits);
    this.#auth = new HttpClient(options.authUrl ?? 'https://auth.rapidata.ai', limits);
    this.#credentials = { clientId, clientSecret };
    this.#requestMs = requestMs;
    this.#retryMs = retryMs;
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#api.close(), this.#auth.close()]);
  }

  /** Retries temporary failures, up to four attempts in all. For requests that may be executed twice. */
  async repeatable(call: Call, signal: AbortSignal): Promise<HttpAnswer> {
    return this.#again(
      () => this.once(call, signal),
      fault => fault.passing,
      signal,
    );
  }

  /** Retries only after a 429, which shows that the marketplace did nothing. */
  async unrepeatable(call: Call, signal: AbortSignal): Promise<HttpAnswer> {
    return this.#again(
      () => this.once(call, signal),
      fault => fault.status === 429,
      signal,
    );
  }

  /** @throws RapidataFault for every status except 2xx; the signal's reason if it aborts. */
  async once(call: Call, signal: AbortSignal): Promise<HttpAnswer> {
    const answer = await this.#authorised(call, await this.#bearer(signal), signal);
    // The token may have expired early. After a second 401, the token is not the cause.
    const last =
      answer.status === 401 ? await this.#authorised(call, await this.#renewed(signal), signal) : answer;
    if (last.status < 200 || last.status > 299) throw faultOf(call, last, this.#secrets);
    return last;
  }

  async #again(
    ask: () => Promise<HttpAnswer>,
    worth: (fault: RapidataFault) => boolean,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof RapidataFault) || !worth(error) || attempt >= TRIES) throw error;
        const hinted = (error.retryAfterSeconds ?? 0) * 1_000;
        await pause(Math.min(Math.max(this.#retryMs * 2 ** (attempt - 1), hinted), MAX_PAUSE_MS), signal);
      }
    }
  }

  #authorised({ method, path, body }: Call, token: string, signal: AbortSignal): Promise<HttpAnswer> {
    const headers = { authorization: `Bearer ${token}` };
    const sent = body ? { body: JSON.stringify(body) } : {};
    return this.#send(this.#api, { method, path, headers, ...sent, signal });
  }

  async #bearer(signal: AbortSignal): Promise<string> {
    const token = this.#token;
    return token && Date.now() < token.renewAt ? token.value : this.#renewed(signal);
  }

  /** Concurrent calls share one renewal. */
  async #renewed(signal: AbortSignal): Promise<string> {
    this.#renewing ??= this.#renew().finally(() => (this.#renewing = undefined));
    const token = await this.#renewing;
    signal.throwIfAborted();
    return token;
  }

  get #secrets(): (string | undefined)[] {
    return [this.#credentials.clientSecret, this.#token?.value];
  }

  async #renew(): Promise<string> {
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: this.#credentials.clientId,
      client_secret: this.#credentials.clientSecret,
      scope: 'openid email api',
    });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const call = { method: 'POST', path: '/connect/token' } as const;
    const answer = await this.#send(this.#auth, { ...call, headers, body: form.toString() });
    if (answer.status !== 200) throw faultOf(call, answer, this.#secrets);
    const { access_token: value, expires_in: seconds } = readJson(answer.body);
    if (typeof value !== 'string' || value === '')
      throw new RapidataFault(502, 'the answer to the token request contains no token');
    const life = typeof seconds === 'number' && seconds > 0 ? seconds : DEFAULT_TOKEN_SECONDS;
    this.#token = { value, renewAt: Date.now() + life * 1_000 * TOKEN_LIFE };
    return value;
  }

  async #send(client: HttpClient, request: Omit<HttpRequest, 'ms'>): Promise<HttpAnswer> {
    try {
      return await client.request({ ...request, ms: this.#requestMs });
    } catch (error) {
      request.signal?.throwIfAborted();
      const { kind, cause } = error instanceof NoAnswer ? error : { kind: 'broken' as const, cause: error };
      throw new RapidataFault(kind, `${request.method} ${request.path}: no answer`, { cause });
    }
  }
}

function faultOf(
  { method, path }: Pick<Call, 'method' | 'path'>,
  answer: HttpAnswer,
  secrets: readonly (string | undefined)[],
): RapidataFault {
  const { status, body } = answer;
  const retryAfterSeconds = readRetryAfter(answer.header('retry-after'));
  // Some services repeat the request in their errors.
  const detail = secrets
    .reduce<string>(
      (text, secret) => (secret ? text.replaceAll(secret, '…') : text),
      body.toString('utf8', 0, 4_000),
    )
    .slice(0, 300);
  const options = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new RapidataFault(status, `${method} ${path.split('?', 1)[0]}: ${status} ${detail}`, options);
}

/** @throws RapidataFault unless the body is a JSON object. */
export function readJson(body: Buffer): Json {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new RapidataFault(502, 'the answer is not JSON', { cause });
  }
  if (!isJson(value)) throw new RapidataFault(502, 'the answer is not a JSON object');
  return value;
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws RapidataFault if the field is missing. */
export function textField(json: Json, name: string): string {
  const value = json[name];
  if (typeof value !== 'string' || value === '' || value.length > 200)
    throw new RapidataFault(502, `the answer has no ${name}`);
  return value;
}

/** The failure that a caller sees for a fault. */
export function failureOf(fault: RapidataFault): UpstreamFailure {
  if (failureKind(fault.what) === 'unavailable') {
    const retryAfterSeconds = Math.max(fault.retryAfterSeconds ?? 30, 1);
    const message = 'The marketplace cannot be reached; try again.';
    return new UpstreamFailure('unavailable', message, { cause: fault, retryAfterSeconds });
  }
  return new UpstreamFailure('failed', `The marketplace ${failed(fault)}.`, { cause: fault });
}

function failed({ passing }: RapidataFault): string {
  return passing
    ? 'failed or gave no usable answer; try again later'
    : 'refused the request; the seller must fix this';
}
