import { setMaxListeners } from 'node:events';
import { Pool } from '../../pool.js';
import { keyOf, readAddress } from '../../address.js';
import { exchange, NoAnswer, type HttpAnswer } from '../../exchange.js';
import { readRetryAfter, UpstreamFailure } from '../failure.js';

/** How sure a read is; `processed` is never read, since it can be taken back. */
export type Finality = 'confirmed' | 'finalized';

/** An account. `data` holds its first bytes, at most as many as were asked for. */
export type Account = { owner: string; lamports: number; executable: boolean; data: Buffer };

export type LatestBlockhash = { blockhash: string; lastValidBlockHeight: number; slot: number };

/** One entry of an address's history, the newest first. `failed`: the transaction had no effect but its fee. */
export type SignatureEntry = { signature: string; slot: number; failed: boolean; blockTime: number | null };

/** A landed transaction; `message` is what its signatures sign, byte for byte as the chain has it. */
export type LandedTransaction = {
  slot: number;
  failed: boolean;
  transaction: Uint8Array;
  message: Uint8Array;
};

/** What a probe found: how many RPC servers answer, and how long the first that did took. */
export type ChainHealth = { answering: number; servers: number; latencyMs: number | null };

/**
 * Reads from a Solana chain. Every method throws `UpstreamFailure`: `unavailable` when no RPC server can be reached or all
 * refuse work for now, `failed` when they answer wrongly or late. The caller's signal ends the wait at once. An address that
 * is not base58 for 32 bytes is a plain `Error`: check it before.
 */
export type SolanaChain = {
  /** The account at `address`, or null where there is none. Reads at most `bytes` bytes of its data (default 10 240). */
  account(address: string, signal: AbortSignal, bytes?: number): Promise<Account | null>;
  latestBlockhash(finality: Finality, signal: AbortSignal): Promise<LatestBlockhash>;
  blockHeight(finality: Finality, signal: AbortSignal): Promise<number>;
  /** A page of the address's history: at most `limit` (1 to 1 000) entries older than the signature `before`. */
  signaturesFor(
    address: string,
    page: { finality: Finality; before?: string; until?: string; limit?: number },
    signal: AbortSignal,
  ): Promise<SignatureEntry[]>;
  /** The transaction whose first signature is `signature`, or null where the server does not have it. */
  transaction(signature: string, finality: Finality, signal: AbortSignal): Promise<LandedTransaction | null>;
  /** First 32 characters of this are the reference in `solana:<reference>`. */
  genesisHash(signal: AbortSignal): Promise<string>;
  health(signal: AbortSignal): Promise<ChainHealth>;
  close(): Promise<void>;
};

/** `urls`: RPC servers in order of preference. `timeoutMs`: deadline of one try at one server. */
export type ChainOptions = { urls: string[]; timeoutMs?: number; maxInFlight?: number };

/** A full page of 1 000 signatures with memos stays below this. */
const MAX_ANSWER_BYTES = 4_000_000;
const DEFAULT_ACCOUNT_BYTES = 10_240;
const CONNECTIONS = 32;
/** A server that failed is asked last for this long, so that it does not cost every call its deadline. */
const REST_MS = 10_000;
/** JSON-RPC codes that mean "not now": rate limit, node behind, slot not reached yet. */
const NOT_NOW = new Set<unknown>([429, -32429, -32005, -32004, -32014, -32016]);

const wrong = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the Solana RPC server gave no usable answer: try again', { cause });
const late = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure('failed', 'the Solana RPC server did not answer in time: try again', { cause });
const down = (cause: unknown, retryAfterSeconds = 5): UpstreamFailure =>
  new UpstreamFailure('unavailable', 'the Solana chain is not reachable: try again later', {
    cause,
    retryAfterSeconds,
  });

const errorCode = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

function transportFailure({ late: isLate, answered, cause }: NoAnswer): UpstreamFailure {
  if (isLate) return late(cause);
  return answered || String(errorCode(cause)).startsWith('HPE_') ? wrong(cause) : down(cause);
}

/** One question to an RPC server, and the check of its result: throws where that is not what was asked for. */
type Query<T> = { method: string; params: unknown[]; read: (result: unknown) => T };

/** One RPC server behind a keep-alive pool. */
class Server {
  restUntil = 0;
  readonly #pool: Pool;
  readonly #path: string;
  readonly #timeoutMs: number;
  readonly #headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json',
  };

  constructor(url: string, timeoutMs: number) {
    const { origin, pathname, search, username, password } = new URL(url);
    this.#path = pathname + search;
    this.#timeoutMs = timeoutMs;
    if (username !== '') {
      const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
      this.#headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    }
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS,
      keepAliveTimeout: 60_000,
      keepAliveMaxTimeout: 600_000,
      // Every exchange has a deadline of its own.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: MAX_ANSWER_BYTES,
      connect: { timeout: timeoutMs },
    });
  }

  /** Asks this server once, within the deadline of a try and the caller's. */
  async ask<T>({ method, params, read }: Query<T>, signal: AbortSignal): Promise<T> {
    try {
      return read(
        resultOf(await this.#post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), signal)),
      );
    } catch (cause) {
      throw asFailure(cause);
    }
  }

  async #post(body: string, signal: AbortSignal): Promise<string> {
    const { status, retryAfter, text } = await this.#exchange(body, signal);
    const cause = new Error(`status ${status}: ${text.slice(0, 500)}`);
    if (status === 429 || status >= 500) throw down(cause, readRetryAfter(retryAfter));
    if (status !== 200) throw wrong(cause);
    return text;
  }

  /** A connection that died before any answer (an idle one closed by the server, say) is tried once more. */
  async #exchange(body: string, signal: AbortSignal): Promise<HttpAnswer> {
    const until = performance.now() + this.#timeoutMs;
    const request = { method: 'POST', path: this.#path, headers: this.#headers, body } as const;
    try {
      return await exchange(this.#pool, request, { ms: this.#timeoutMs, signal });
    } catch (error) {
      const died = error instanceof NoAnswer && !error.late && !error.answered;
      if (!died || errorCode(error.cause) !== 'UND_ERR_SOCKET') throw error;
      return exchange(this.#pool, request, { ms: until - performance.now(), signal });
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** A JSON-RPC error. */
class RpcError extends Error {
  readonly code: unknown;

  constructor({ code, message }: Record<string, unknown>) {
    super(`${String(code)}: ${String(message).slice(0, 500)}`);
    this.code = code;
  }
}

/** Any error of a read, as the failure it means. */
function asFailure(cause: unknown): UpstreamFailure {
  if (cause instanceof UpstreamFailure) return cause;
  if (cause instanceof NoAnswer) return transportFailure(cause);
  if (cause instanceof RpcError && NOT_NOW.has(cause.code)) return down(cause);
  return wrong(cause);
}

function resultOf(text: string): unknown {
  const answer = JSON.parse(text) as unknown;
  if (!isRecord(answer)) throw wrong('the answer is no object');
  if (isRecord(answer.error)) throw new RpcError(answer.error);
  if (!('result' in answer)) throw wrong('the answer has no result');
  return answer.result;
}

/** A slot or a height. */
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

function readCount(result: unknown): number {
  if (!isCount(result)) throw wrong('unreadable number');
  return result;
}

function readHash(result: unknown): string {
  // A blockhash is written as an address is.
  if (typeof result !== 'string' || !readAddress(result)) throw wrong('unreadable hash');
  return result;
}

/** A result with the slot that it was read at. */
function readInContext(result: unknown): { slot: number; value: Record<string, unknown> | null } {
  if (!isRecord(result) || !isRecord(result.context)) throw wrong('unreadable result');
  const { slot } = result.context;
  const { value } = result;
  if (!isCount(slot) || !(isRecord(value) || value === null)) throw wrong('unreadable result');
  return { slot, value };
}

function readLatestBlockhash(result: unknown): LatestBlockhash {
  const { slot, value } = readInContext(result);
  return {
    blockhash: readHash(value?.blockhash),
    lastValidBlockHeight: readCount(value?.lastValidBlockHeight),
    slot,
  };
}

function readHistory(result: unknown): SignatureEntry[] {
  if (!Array.isArray(result)) throw wrong('unreadable history');
  return result.map((entry: unknown) => {
    if (!isRecord(entry) || typeof entry.signature !== 'string' || !('err' in entry))
      throw wrong('unreadable history');
    const { signature, slot, err, blockTime = null } = entry;
    if (blockTime !== null && typeof blockTime !== 'number') throw wrong('unreadable history');
    return { signature, slot: readCount(slot), failed: err !== null, blockTime };
  });
}

/** Splits a transaction off its signatures (compact-u16 count, 64 bytes each). */
function messageOf(transaction: Buffer): Uint8Array {
  let count = 0;
  let at = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = transaction[at];
    if (byte === undefined || shift > 14) throw wrong('unreadable transaction');
    at += 1;
    count |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  const message = transaction.subarray(at + 64 * count);
  if (count === 0 || message.length === 0) throw wrong('unreadable transaction');
  return message;
}

function readLanded(result: unknown): LandedTransaction | null {
  if (result === null) return null;
  if (!isRecord(result) || typeof result.slot !== 'number' || !isRecord(result.meta))
    throw wrong('unreadable transaction');
  const encoded: unknown = Array.isArray(result.transaction) ? result.transaction[0] : undefined;
  if (typeof encoded !== 'string' || !('err' in result.meta)) throw wrong('unreadable transaction');
  const transaction = Buffer.from(encoded, 'base64');
  return {
    slot: result.slot,
    failed: result.meta.err !== null,
    transaction,
    message: messageOf(transaction),
  };
}

function readAccount(result: unknown, bytes: number): Account | null {
  const { value } = readInContext(result);
  if (value === null) return null;
  const { owner, lamports, executable, data } = value;
  const encoded: unknown = Array.isArray(data) && data[1] === 'base64' ? data[0] : undefined;
  // Lamports may be more than a number counts exactly: nobody counts with them here.
  const isAccount =
    typeof owner === 'string' &&
    readAddress(owner) !== undefined &&
    typeof lamports === 'number' &&
    typeof executable === 'boolean' &&
    typeof encoded === 'string';
  if (!isAccount) throw wrong('unreadable account');
  return { owner, lamports, executable, data: Buffer.from(encoded, 'base64').subarray(0, bytes) };
}

/** Asks the servers in turn until one answers. */
class Servers {
  readonly list: Server[];
  readonly #maxInFlight: number;
  #inFlight = 0;

  constructor({ urls, timeoutMs = 5_000, maxInFlight = 512 }: ChainOptions) {
    if (urls.length === 0) throw new Error('at least one Solana RPC URL is needed');
    this.list = urls.map(url => new Server(url, timeoutMs));
    this.#maxInFlight = maxInFlight;
  }

  async ask<T>(query: Query<T>, signal: AbortSignal): Promise<T> {
    if (this.#inFlight >= this.#maxInFlight) throw down('too many reads in flight', 2);
    this.#inFlight += 1;
    // Many reads may share a signal, and each listens to it.
    setMaxListeners(this.#maxInFlight, signal);
    try {
      return await this.#inTurn(query, signal);
    } finally {
      this.#inFlight -= 1;
    }
  }

  async #inTurn<T>(query: Query<T>, signal: AbortSignal): Promise<T> {
    const failures: UpstreamFailure[] = [];
    for (const server of this.#order()) {
      if (signal.aborted) throw late(signal.reason);
      try {
        const result = await server.ask(query, signal);
        server.restUntil = 0;
        return result;
      } catch (cause) {
        if (signal.aborted) throw late(cause);
        failures.push(asFailure(cause));
        server.restUntil = Date.now() + REST_MS;
      }
    }
    throw failures.find(({ kind }) => kind === 'failed') ?? failures[0] ?? down('no server');
  }

  /** The servers by preference, those that failed lately last. */
  #order(): Server[] {
    const now = Date.now();
    const rested = this.list.filter(({ restUntil }) => restUntil <= now);
    return [...rested, ...this.list.filter(server => !rested.includes(server))];
  }
}

const latestBlockhash = (commitment: Finality): Query<LatestBlockhash> => ({
  method: 'getLatestBlockhash',
  params: [{ commitment }],
  read: readLatestBlockhash,
});

async function probe(servers: Server[], signal: AbortSignal): Promise<ChainHealth> {
  const started = performance.now();
  const latencies = await Promise.all(
    servers.map(async server => {
      try {
        await server.ask(latestBlockhash('confirmed'), signal);
        return performance.now() - started;
      } catch {
        return null;
      }
    }),
  );
  const answers = latencies.filter(latency => latency !== null);
  const latencyMs = answers[0] === undefined ? null : Math.round(answers[0]);
  return { answering: answers.length, servers: servers.length, latencyMs };
}

/**
 * A chain behind one or several JSON-RPC servers (Solana RPC HTTP methods). A read goes to the first server and falls over to the
 * next when that one is down, late or wrong.
 */
export function createChain(options: ChainOptions): SolanaChain {
  const servers = new Servers(options);
  const ask = <T>(signal: AbortSignal, method: string, params: unknown[], read: (result: unknown) => T) =>
    servers.ask({ method, params, read }, signal);
  return {
    async account(address, signal, bytes = DEFAULT_ACCOUNT_BYTES) {
      keyOf(address);
      const dataSlice = { offset: 0, length: bytes };
      const params = [address, { encoding: 'base64', commitment: 'confirmed', dataSlice }];
      return ask(signal, 'getAccountInfo', params, result => readAccount(result, bytes));
    },
    latestBlockhash: (finality, signal) => servers.ask(latestBlockhash(finality), signal),
    blockHeight: (commitment, signal) => ask(signal, 'getBlockHeight', [{ commitment }], readCount),
    async signaturesFor(address, { finality, ...page }, signal) {
      keyOf(address);
      const params = [address, { ...page, commitment: finality }];
      return ask(signal, 'getSignaturesForAddress', params, readHistory);
    },
    transaction(signature, finality, signal) {
      const options = { encoding: 'base64', commitment: finality, maxSupportedTransactionVersion: 0 };
      return ask(signal, 'getTransaction', [signature, options], readLanded);
    },
    genesisHash: signal => ask(signal, 'getGenesisHash', [], readHash),
    health: signal => probe(servers.list, signal),
    async close() {
      await Promise.all(servers.list.map(server => server.close()));
    },
  };
}
