import { buildConnector, Pool, type Dispatcher } from 'undici';
import { DeadlineExceeded } from './deadline.js';
import { endpointOf } from './endpoint.js';
import { bareHost, publicConnector } from './public-addresses.js';
import { Secrets } from './secrets.js';
import { passTraceOn, tracedRequest } from './trace.js';

export type HttpClientOptions = {
  connections: number;
  maxAnswerBytes: number;
  /** Headers that are sent with every request. */
  headers?: Record<string, string>;
  /** How long opening a connection may take. */
  connectMs?: number;
  /**
   * Resends a request whose connection ended before any answer, as happens when the server closes an idle connection. Only for requests
   * that may be carried out twice.
   */
  resend?: boolean;
  /** Connects to public addresses only (see `publicConnector`). */
  publicOnly?: boolean;
};

type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export type HttpRequest = {
  method: HttpMethod;
  /** Appended to the path of the client's URL; `''` is that path itself. */
  path: string;
  headers?: Record<string, string>;
  /** JSON, unless `headers` has a `content-type`. */
  body?: string | Buffer;
  /** The deadline, from now to the last byte of the answer. */
  ms: number;
  /** Ends the exchange immediately when it aborts. */
  signal?: AbortSignal;
  /** A limit for this answer, below that of the client. */
  maxAnswerBytes?: number;
  /** Overrides the client's `resend`. */
  resend?: boolean;
};

/** A complete answer of any status. */
export class HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
  /** Names and values, alternating. */
  readonly #headers: readonly Buffer[];

  constructor(status: number, headers: readonly Buffer[], body: Buffer) {
    this.status = status;
    this.#headers = headers;
    this.body = body;
  }

  /** The body as UTF-8, without a byte order mark. */
  get text(): string {
    const text = this.body.toString('utf8');
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  /** @param name in lower case */
  header(name: string): string | undefined {
    for (let at = 0; at + 1 < this.#headers.length; at += 2) {
      if (this.#headers[at]?.toString('latin1').toLowerCase() === name)
        return this.#headers[at + 1]?.toString('latin1');
    }
    return undefined;
  }
}

/**
 * Why there is no answer:
 * - `aborted`: the request's signal aborted; `cause` is its reason;
 * - `late`: the deadline passed;
 * - `unreachable`: no connection could be opened, or the client was closed;
 * - `private`: the client connects to public addresses only, and the address is not public;
 * - `cut`: the connection ended before an answer began;
 * - `broken`: the answer is not HTTP or ended early;
 * - `too large`: the answer exceeds the client's limit.
 */
export type NoAnswerKind = 'aborted' | 'late' | 'unreachable' | 'private' | 'cut' | 'broken' | 'too large';

export class NoAnswer extends Error {
  readonly kind: NoAnswerKind;

  constructor(kind: NoAnswerKind, cause: unknown) {
    super(cause instanceof Error && cause.message ? cause.message : 'no answer', { cause });
    this.kind = kind;
  }
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_DESTROYED',
  'UND_ERR_CLOSED',
]);
const CONNECT_MS = 10_000;
const HARMLESS_HEADER = /^(accept.*|content-.*|user-agent)$/i;
const STALE_CONNECTION = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/**
 * A client for one HTTP service, with a pool of keep-alive connections. User, password and query of its URL are sent with every
 * request; `conceal` removes them, and the keys in `headers`, from text that came from the service.
 */
export class HttpClient {
  /** The URL without credentials. */
  readonly name: string;
  readonly conceal: (text: string) => string;
  /** Connections opened so far. */
  opened = 0;
  readonly #pool: Pool;
  readonly #connect: buildConnector.connector;
  readonly #origin: URL;
  readonly #path: string;
  readonly #prefix: string;
  readonly #search: string;
  readonly #headers: Record<string, string>;
  readonly #headersOfJson: Record<string, string>;
  readonly #resend: boolean;

  /** @throws TypeError if `url` is not a URL */
  constructor(url: string, options: HttpClientOptions) {
    const { origin, path, search, headers, name, conceal } = endpointOf(url);
    this.name = name;
    const secrets = new Secrets(keysIn(options.headers ?? {}));
    this.conceal = text => secrets.conceal(conceal(text));
    this.#path = path;
    this.#prefix = path.replace(/(?<!\/)\/+$/, '');
    this.#search = search;
    this.#headers = { ...headers, ...options.headers };
    this.#headersOfJson = { ...this.#headers, 'content-type': 'application/json' };
    this.#resend = options.resend ?? false;
    this.#origin = new URL(origin);
    this.#connect = options.publicOnly
      ? publicConnector(options.connectMs ?? CONNECT_MS)
      : buildConnector({ timeout: options.connectMs ?? CONNECT_MS });
    this.#pool = new Pool(origin, {
      connections: options.connections,
      keepAliveTimeout: 60_000,
      keepAliveMaxTimeout: 600_000,
      maxResponseSize: options.maxAnswerBytes,
      // Every request has its own deadline.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: this.#connect,
    });
    this.#pool.on('connect', () => (this.opened += 1));
  }

  /** @throws NoAnswer */
  request(request: HttpRequest): Promise<HttpAnswer> {
    return (request.resend ?? this.#resend) ? this.#insist(request) : this.#exchange(request);
  }

  /**
   * Opens a connection and closes it, without sending a request.
   * @throws NoAnswer
   */
  reach(): Promise<void> {
    const { protocol, host, hostname, port } = this.#origin;
    return new Promise((resolve, reject) => {
      this.#connect({ protocol, host, hostname: bareHost(hostname), port }, (error, socket) => {
        if (error) return reject(new NoAnswer(kindOf(error, false), error));
        socket?.destroy();
        resolve();
      });
    });
  }

  /** Closes the client and ends its open requests. */
  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #insist(request: HttpRequest): Promise<HttpAnswer> {
    const until = performance.now() + request.ms;
    try {
      return await this.#exchange(request);
    } catch (error) {
      const stale =
        error instanceof NoAnswer && error.kind === 'cut' && STALE_CONNECTION.has(codeOf(error.cause));
      if (!stale) throw error;
      return this.#exchange({ ...request, ms: until - performance.now() });
    }
  }

  #exchange({ method, path, headers, body, ...limits }: HttpRequest): Promise<HttpAnswer> {
    const common = body === undefined ? this.#headers : this.#headersOfJson;
    return tracedRequest(method, this.name, () => {
      const request = {
        method,
        path: this.#target(path),
        headers: passTraceOn(headers ? { ...common, ...headers } : common),
        body: body ?? null,
      };
      return exchange(this.#pool, request, limits);
    });
  }

  #target(path: string): string {
    const whole = path === '' ? this.#path : this.#prefix + path;
    if (this.#search === '') return whole;
    return whole + (path.includes('?') ? this.#search.replace('?', '&') : this.#search);
  }
}

/** The values of headers that identify the caller. */
function keysIn(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    HARMLESS_HEADER.test(name) ? [] : [value.replace(/^(Bearer|Basic) /, '')],
  );
}

/** Uses undici's dispatcher directly, because its streams, timers and combined signals cost more than the request itself. */
function exchange(
  pool: Pool,
  request: Dispatcher.DispatchOptions,
  { ms, signal, maxAnswerBytes = Infinity }: Pick<HttpRequest, 'ms' | 'signal' | 'maxAnswerBytes'>,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let received = 0;
    let headers: readonly Buffer[] = [];
    const chunks: Buffer[] = [];
    let failed: NoAnswer | undefined;
    let abort: ((error: Error) => void) | undefined;
    const leave = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    };
    const fail = (failure: NoAnswer): void => {
      leave();
      failed ??= failure;
      reject(failed);
      abort?.(failed);
    };
    const stop = (): void => fail(new NoAnswer('aborted', signal?.reason));
    const expire = (): void =>
      fail(new NoAnswer('late', new DeadlineExceeded(`no answer within ${Math.round(ms)} ms`)));
    const timer = setTimeout(expire, ms);
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) return stop();
    pool.dispatch(request, {
      onConnect(give) {
        abort = give;
        if (failed) give(failed);
      },
      onHeaders(code, lines) {
        if (code >= 200) [status, headers] = [code, lines];
        return true;
      },
      onData(chunk) {
        received += chunk.length;
        if (received > maxAnswerBytes) fail(new NoAnswer('too large', undefined));
        else chunks.push(chunk);
        return true;
      },
      onComplete() {
        leave();
        resolve(new HttpAnswer(status, headers, Buffer.concat(chunks)));
      },
      onError(cause) {
        abort = undefined;
        fail(new NoAnswer(kindOf(cause, status !== 0), cause));
      },
    });
  });
}

function kindOf(cause: Error, answered: boolean): NoAnswerKind {
  const code = codeOf(cause);
  if (UNREACHABLE.has(code)) return 'unreachable';
  if (code === 'ERR_PRIVATE_ADDRESS') return 'private';
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return 'too large';
  return answered || code.startsWith('HPE_') ? 'broken' : 'cut';
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
