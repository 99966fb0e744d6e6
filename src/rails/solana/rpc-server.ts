import { messageOf } from '../../ledger/fault.js';
import { orAbort } from '../../net/deadline.js';
import { HttpClient } from '../../net/http-client.js';
import { failureKind, readRetryAfter } from '../../net/failure.js';
import { networkOf } from './networks.js';
import { asFailure, unreachable, UntrustedAnswer, RpcError, badAnswer } from './rpc-failures.js';
import { isRecord, readHash } from './rpc-results.js';

/** A request to an RPC server. */
export type Query<T> = {
  method: string;
  params: unknown[];
  /** Throws if the result does not have the expected form. */
  read: (result: unknown) => T;
  /** Throws if a well-formed result can't be true. */
  check?: (result: T) => void;
  /** Whether a server for another chain may also answer. */
  ofAnyChain?: true;
};

export type RpcLog = { error(fields: object, message: string): void };

/** A full page of 1 000 signatures with memos stays below this. */
const MAX_ANSWER_BYTES = 4_000_000;
const CONNECTIONS = 32;
/** The interval between log lines about the same server. */
const REPORT_EVERY_MS = 60_000;
const NEVER = new AbortController().signal;

/** One RPC server behind a keep-alive pool. */
export class RpcServer {
  /** The server's URL without credentials. */
  readonly name: string;
  restUntil = 0;
  readonly #client: HttpClient;
  readonly #timeoutMs: number;
  readonly #network: string | undefined;
  readonly #log: RpcLog | undefined;
  /** The number of connections that had been opened when the server's chain was last checked. */
  #openedAtCheck = -1;
  #checking: Promise<void> | undefined;
  #reportedAt = -Infinity;

  constructor(
    url: string,
    options: { timeoutMs: number; network: string | undefined; log: RpcLog | undefined },
  ) {
    const { timeoutMs, network, log } = options;
    this.#client = new HttpClient(url, {
      connections: CONNECTIONS,
      maxAnswerBytes: MAX_ANSWER_BYTES,
      connectMs: timeoutMs,
      headers: { accept: 'application/json' },
      resend: true,
    });
    this.name = this.#client.name;
    this.#timeoutMs = timeoutMs;
    this.#network = network;
    this.#log = log;
  }

  /**
   * Sends a request once, within the deadline of a try and the caller's deadline. If a connection was opened since the last check of the
   * server's chain, the chain is checked again before the answer counts, because another machine may be behind the same name.
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
      if (cause instanceof UntrustedAnswer) this.#report(cause);
      throw asFailure(cause);
    }
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #checkChain(signal: AbortSignal): Promise<void> {
    if (this.#network === undefined || this.#openedAtCheck === this.#client.opened) return;
    this.#checking ??= this.#readChain(this.#network).finally(() => (this.#checking = undefined));
    await orAbort(this.#checking, signal);
  }

  async #readChain(network: string): Promise<void> {
    const query = { method: 'getGenesisHash', params: [], read: readHash };
    const genesis = await this.#read(query, NEVER);
    if (networkOf(genesis) !== network)
      throw new UntrustedAnswer(`it does not serve ${network}: its genesis is ${genesis}`);
    this.#openedAtCheck = this.#client.opened;
  }

  async #read<T>({ method, params, read }: Query<T>, signal: AbortSignal): Promise<T> {
    const text = await this.#post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), signal);
    return read(resultOf(text, this.#client.conceal));
  }

  async #post(body: string, signal: AbortSignal): Promise<string> {
    const answer = await this.#client.request({
      method: 'POST',
      path: '',
      body,
      ms: this.#timeoutMs,
      signal,
    });
    const { status, text } = answer;
    if (status === 200) return text;
    const cause = new Error(`status ${status}: ${this.#client.conceal(text).slice(0, 500)}`);
    if (failureKind(status) === 'failed') throw badAnswer(cause);
    throw unreachable(cause, readRetryAfter(answer.header('retry-after')));
  }

  #report({ message }: UntrustedAnswer): void {
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_EVERY_MS) return;
    this.#reportedAt = now;
    this.#log?.error(
      { rpc: this.name, reason: message },
      `the RPC server ${this.name} in SOLANA_RPC_URL is ignored: ${message}`,
    );
  }
}

function believe<T>(check: (result: T) => void, result: T): void {
  try {
    check(result);
  } catch (error) {
    throw new UntrustedAnswer(messageOf(error), { cause: error });
  }
}

function resultOf(text: string, conceal: (text: string) => string): unknown {
  const answer = parse(text);
  if (!isRecord(answer)) throw badAnswer('the answer is not an object');
  if (isRecord(answer.error)) {
    const { code, message } = answer.error;
    throw new RpcError(code, conceal(String(message)).slice(0, 500));
  }
  if (!('result' in answer)) throw badAnswer('the answer has no result');
  return answer.result;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badAnswer('the answer is not JSON');
  }
}
