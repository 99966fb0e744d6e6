import { exchange, NoAnswer, type HttpAnswer } from '../../exchange.js';
import { orAbort } from '../../net/deadline.js';
import { endpointOf, type Endpoint } from '../../net/endpoint.js';
import { Pool } from '../../pool.js';
import { readRetryAfter } from '../failure.js';
import { asFailure, down, errorCode, NotBelieved, RpcError, wrong } from './rpc-failures.js';
import { isRecord, readHash } from './rpc-results.js';

/** One question to an RPC server. */
export type Query<T> = {
  method: string;
  params: unknown[];
  /** Throws where the result is not what was asked for. */
  read: (result: unknown) => T;
  /** Throws where a readable result can't be true. */
  check?: (result: T) => void;
  /** Also a server of another chain may answer. */
  ofAnyChain?: true;
};

export type RpcLog = { error(fields: object, message: string): void };

/** A full page of 1 000 signatures with memos stays below this. */
const MAX_ANSWER_BYTES = 4_000_000;
const CONNECTIONS = 32;
/** Between two lines in the log about the same server. */
const REPORT_EVERY_MS = 60_000;
const NEVER = new AbortController().signal;

/** One RPC server behind a keep-alive pool. */
export class RpcServer {
  /** Its URL without credentials. */
  readonly name: string;
  restUntil = 0;
  readonly #pool: Pool;
  readonly #endpoint: Endpoint;
  readonly #timeoutMs: number;
  readonly #network: string | undefined;
  readonly #log: RpcLog | undefined;
  readonly #headers: Record<string, string>;
  /** Connections opened so far, and how many of them when the server was last seen to serve our chain. */
  #opened = 0;
  #openedAtCheck = -1;
  #checking: Promise<void> | undefined;
  #reportedAt = -Infinity;

  constructor(
    url: string,
    options: { timeoutMs: number; network: string | undefined; log: RpcLog | undefined },
  ) {
    const { timeoutMs, network, log } = options;
    this.#endpoint = endpointOf(url);
    this.name = this.#endpoint.name;
    this.#timeoutMs = timeoutMs;
    this.#network = network;
    this.#log = log;
    this.#headers = {
      ...this.#endpoint.headers,
      'content-type': 'application/json',
      accept: 'application/json',
    };
    this.#pool = new Pool(this.#endpoint.origin, {
      connections: CONNECTIONS,
      keepAliveTimeout: 60_000,
      keepAliveMaxTimeout: 600_000,
      // Every exchange has a deadline of its own.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: MAX_ANSWER_BYTES,
      connect: { timeout: timeoutMs },
    });
    this.#pool.on('connect', () => (this.#opened += 1));
  }

  /**
   * Asks this server once, within the deadline of a try and the caller's. Whatever came over a connection that was opened since the
   * server's chain was last looked at counts only once that has been looked at again: behind a name there may be another machine.
   */
  async ask<T>(query: Query<T>, signal: AbortSignal): Promise<T> {
    try {
      if (query.ofAnyChain) return await this.#read(query, signal);
      await this.#checkChain(signal);
      const result = await this.#read(query, signal);
      await this.#checkChain(signal);
      if (query.check) believe(query.check, result);
      return result;
    } catch (cause) {
      if (cause instanceof NotBelieved) this.#report(cause);
      throw asFailure(cause);
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #checkChain(signal: AbortSignal): Promise<void> {
    if (this.#network === undefined || this.#openedAtCheck === this.#opened) return;
    this.#checking ??= this.#readChain(this.#network).finally(() => (this.#checking = undefined));
    await orAbort(this.#checking, signal);
  }

  async #readChain(network: string): Promise<void> {
    const query = { method: 'getGenesisHash', params: [], read: readHash };
    const genesis = await this.#read(query, NEVER);
    if (!isGenesisOf(network, genesis))
      throw new NotBelieved(`it serves another chain than ${network}: its genesis is ${genesis}`);
    this.#openedAtCheck = this.#opened;
  }

  async #read<T>({ method, params, read }: Query<T>, signal: AbortSignal): Promise<T> {
    const text = await this.#post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), signal);
    return read(resultOf(text, this.#endpoint.conceal));
  }

  async #post(body: string, signal: AbortSignal): Promise<string> {
    const { status, retryAfter, text } = await this.#exchange(body, signal);
    if (status === 200) return text;
    const cause = new Error(`status ${status}: ${this.#endpoint.conceal(text).slice(0, 500)}`);
    throw status === 429 || status >= 500 ? down(cause, readRetryAfter(retryAfter)) : wrong(cause);
  }

  /** A connection that died before any answer (an idle one closed by the server, say) is tried once more. */
  async #exchange(body: string, signal: AbortSignal): Promise<HttpAnswer> {
    const { path, search } = this.#endpoint;
    const until = performance.now() + this.#timeoutMs;
    const request = {
      method: 'POST',
      path: path + search,
      headers: this.#headers,
      body,
    } as const;
    try {
      return await exchange(this.#pool, request, { ms: this.#timeoutMs, signal });
    } catch (error) {
      const died = error instanceof NoAnswer && !error.late && !error.answered;
      if (!died || errorCode(error.cause) !== 'UND_ERR_SOCKET') throw error;
      return exchange(this.#pool, request, { ms: until - performance.now(), signal });
    }
  }

  #report({ message }: NotBelieved): void {
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_EVERY_MS) return;
    this.#reportedAt = now;
    this.#log?.error(
      { rpc: this.name, reason: message },
      `the RPC server ${this.name} of SOLANA_RPC_URL is not believed: ${message}`,
    );
  }
}

/** Whether a chain's genesis hash is that of `solana:<reference>`. */
export function isGenesisOf(network: string, genesis: string): boolean {
  return `solana:${genesis.slice(0, 32)}` === network;
}

function believe<T>(check: (result: T) => void, result: T): void {
  try {
    check(result);
  } catch (error) {
    throw new NotBelieved(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function resultOf(text: string, conceal: (text: string) => string): unknown {
  const answer = parse(text);
  if (!isRecord(answer)) throw wrong('the answer is no object');
  if (isRecord(answer.error)) {
    const { code, message } = answer.error;
    throw new RpcError(code, conceal(String(message)).slice(0, 500));
  }
  if (!('result' in answer)) throw wrong('the answer has no result');
  return answer.result;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrong('the answer is no JSON');
  }
}
