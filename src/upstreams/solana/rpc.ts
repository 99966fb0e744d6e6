import { Connection, PublicKey, SolanaJSONRPCError, type ConnectionConfig } from '../../web3.js';
import { Pool, type Dispatcher } from 'undici';
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

function transportFailure(cause: unknown, answered: boolean): UpstreamFailure {
  const code = errorCode(cause);
  const name = cause instanceof Error ? cause.name : '';
  if (name === 'AbortError' || name === 'TimeoutError') return late(cause);
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return late(cause);
  return answered || String(code).startsWith('HPE_') ? wrong(cause) : down(cause);
}

/** Any error of a read, as the failure it means. */
function asFailure(cause: unknown): UpstreamFailure {
  if (cause instanceof UpstreamFailure) return cause;
  if (cause instanceof SolanaJSONRPCError && NOT_NOW.has(cause.code)) return down(cause);
  return wrong(cause);
}

/** One RPC server: a keep-alive pool, and a `Connection` whose every request goes through it. */
class Server {
  readonly connection: Connection;
  restUntil = 0;
  readonly #pool: Pool;
  readonly #path: string;
  readonly #timeoutMs: number;
  readonly #headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json',
  };
  /**
   * web3.js passes no signal to `fetch`, but calls it before it first waits: the signal of the read that is being started. An
   * AsyncLocalStorage would make every promise of the whole server dearer.
   */
  #starting: AbortSignal | undefined;

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
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxResponseSize: MAX_ANSWER_BYTES,
      connect: { timeout: timeoutMs },
    });
    const fetch = async (_url: unknown, init?: { body?: unknown }): Promise<unknown> => {
      const text = await this.#post(String(init?.body));
      return { ok: true, status: 200, statusText: 'OK', text: () => Promise.resolve(text) };
    };
    this.connection = new Connection(`${origin}/`, {
      commitment: 'confirmed',
      disableRetryOnRateLimit: true,
      httpAgent: false,
      fetch: fetch as NonNullable<ConnectionConfig['fetch']>,
    });
  }

  /** Runs one read against this server, within the deadline of a try and the caller's. */
  async attempt<T>(read: (server: Server) => Promise<T>, signal: AbortSignal): Promise<T> {
    const both = AbortSignal.any([signal, AbortSignal.timeout(this.#timeoutMs)]);
    try {
      return await this.#start(both, read);
    } catch (cause) {
      throw asFailure(cause);
    }
  }

  #start<T>(signal: AbortSignal, read: (server: Server) => Promise<T>): Promise<T> {
    this.#starting = signal;
    try {
      return read(this);
    } finally {
      this.#starting = undefined;
    }
  }

  /** A call that web3.js would decode further than we want. */
  async raw(method: string, params: unknown[]): Promise<unknown> {
    const text = await this.#post(JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }));
    const answer = JSON.parse(text) as unknown;
    if (!isRecord(answer)) throw wrong('the answer is no object');
    if (isRecord(answer.error))
      throw new SolanaJSONRPCError({ code: answer.error.code, message: String(answer.error.message) });
    if (!('result' in answer)) throw wrong('the answer has no result');
    return answer.result;
  }

  /** A connection that died before any answer (an idle one closed by the server, say) is tried once more. */
  async #post(
    body: string,
    signal = this.#starting ?? AbortSignal.timeout(this.#timeoutMs),
    again = true,
  ): Promise<string> {
    const request = { method: 'POST', path: this.#path, headers: this.#headers, body, signal } as const;
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#pool.request(request);
    } catch (cause) {
      if (again && errorCode(cause) === 'UND_ERR_SOCKET') return this.#post(body, signal, false);
      throw transportFailure(cause, false);
    }
    const { statusCode, headers } = response;
    const text = await response.body.text().catch((cause: unknown) => {
      throw transportFailure(cause, true);
    });
    const cause = new Error(`status ${statusCode}: ${text.slice(0, 500)}`);
    if (statusCode === 429 || statusCode >= 500) throw down(cause, readRetryAfter(headers['retry-after']));
    if (statusCode !== 200) throw wrong(cause);
    return text;
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

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

async function readAccount(server: Server, key: PublicKey, bytes: number): Promise<Account | null> {
  const dataSlice = { offset: 0, length: bytes };
  const { value } = await server.connection.getAccountInfoAndContext(key, {
    commitment: 'confirmed',
    dataSlice,
  });
  if (value === null) return null;
  const { owner, lamports, executable, data } = value;
  return { owner: owner.toBase58(), lamports, executable, data: data.subarray(0, bytes) };
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

  async read<T>(read: (server: Server) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#inFlight >= this.#maxInFlight) throw down('too many reads in flight', 2);
    this.#inFlight += 1;
    try {
      return await this.#inTurn(read, signal);
    } finally {
      this.#inFlight -= 1;
    }
  }

  async #inTurn<T>(read: (server: Server) => Promise<T>, signal: AbortSignal): Promise<T> {
    const failures: UpstreamFailure[] = [];
    for (const server of this.#order()) {
      if (signal.aborted) throw late(signal.reason);
      try {
        const result = await server.attempt(read, signal);
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

async function probe(servers: Server[], signal: AbortSignal): Promise<ChainHealth> {
  const started = performance.now();
  const latencies = await Promise.all(
    servers.map(async server => {
      try {
        await server.attempt(
          ({ connection }) => connection.getLatestBlockhashAndContext('confirmed'),
          signal,
        );
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
 * A chain behind one or several JSON-RPC servers (Solana RPC HTTP methods, through @solana/web3.js). A read goes to the first
 * server and falls over to the next when that one is down, late or wrong.
 */
export function createChain(options: ChainOptions): SolanaChain {
  const servers = new Servers(options);
  return {
    async account(address, signal, bytes = DEFAULT_ACCOUNT_BYTES) {
      const key = new PublicKey(address);
      return servers.read(server => readAccount(server, key, bytes), signal);
    },
    latestBlockhash: (finality, signal) =>
      servers.read(async ({ connection }) => {
        const { context, value } = await connection.getLatestBlockhashAndContext(finality);
        return { ...value, slot: context.slot };
      }, signal),
    blockHeight: (finality, signal) =>
      servers.read(({ connection }) => connection.getBlockHeight(finality), signal),
    async signaturesFor(address, { finality, ...page }, signal) {
      const key = new PublicKey(address);
      return servers.read(async ({ connection }) => {
        const found = await connection.getSignaturesForAddress(key, page, finality);
        return found.map(({ signature, slot, err, blockTime }) => ({
          signature,
          slot,
          failed: err !== null,
          blockTime: blockTime ?? null,
        }));
      }, signal);
    },
    transaction: (signature, finality, signal) =>
      servers.read(async server => {
        const options = { encoding: 'base64', commitment: finality, maxSupportedTransactionVersion: 0 };
        return readLanded(await server.raw('getTransaction', [signature, options]));
      }, signal),
    genesisHash: signal => servers.read(({ connection }) => connection.getGenesisHash(), signal),
    health: signal => probe(servers.list, signal),
    async close() {
      await Promise.all(servers.list.map(server => server.close()));
    },
  };
}
