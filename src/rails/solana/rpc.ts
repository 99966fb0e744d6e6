import { setMaxListeners } from 'node:events';
import { keyOf } from './address.js';
import type { UpstreamFailure } from '../../net/failure.js';
import { aboutTransaction, asFailure, unreachable, timedOut } from './rpc-failures.js';
import * as results from './rpc-results.js';
import type { Finality, LatestBlockhash } from './rpc-results.js';
import { RpcServer, type Query, type RpcLog } from './rpc-server.js';

/**
 * Reads from a Solana chain. Every method throws `UpstreamFailure`: `unavailable` if no RPC server can be reached or all of them are
 * overloaded, `failed` if they answer wrongly or late. The caller's signal ends the wait immediately. An address that is not base58 of
 * 32 bytes causes a plain `Error`; check it first.
 */
export type SolanaChain = {
  /**
   * The account at `address`, or null if there is none. Reads at most `bytes` bytes of its data (default 10 240), as seen at `confirmed`
   * unless another finality is named.
   */
  account(
    address: string,
    signal: AbortSignal,
    bytes?: number,
    finality?: Finality,
  ): Promise<results.Account | null>;
  /** Up to 100 accounts in one read, in the order of `addresses` and as of one slot; null for one that does not exist. */
  accounts(
    addresses: string[],
    signal: AbortSignal,
    bytes?: number,
  ): Promise<{ slot: number; accounts: (results.Account | null)[] }>;
  /**
   * The largest token accounts of a mint: at most twenty, the largest first. Many servers refuse this read, for large mints or for all,
   * so only the first server is asked, and a refusal does not move it to the end of the order for other reads.
   */
  largestHoldings(mint: string, signal: AbortSignal): Promise<results.Holding[]>;
  /** @param check throws if the result can't be true; then the next server is asked */
  latestBlockhash(
    finality: Finality,
    signal: AbortSignal,
    check?: (latest: LatestBlockhash) => void,
  ): Promise<LatestBlockhash>;
  blockHeight(finality: Finality, signal: AbortSignal): Promise<number>;
  /**
   * The height at `confirmed` that each server reports, in the order of the servers; undefined for one that does not answer. Never
   * rejects.
   */
  heights(signal: AbortSignal): Promise<(number | undefined)[]>;
  /**
   * A page of the address's history: at most `limit` (1 to 1 000) entries older than the signature `before`. A server that has not reached
   * `minContextSlot` gives none.
   */
  signaturesFor(
    address: string,
    page: { finality: Finality; before?: string; until?: string; limit?: number; minContextSlot?: number },
    signal: AbortSignal,
  ): Promise<results.SignatureEntry[]>;
  /** The transaction whose first signature is `signature`, or null if the server does not have it. */
  transaction(
    signature: string,
    finality: Finality,
    signal: AbortSignal,
  ): Promise<results.LandedTransaction | null>;
  /**
   * Sends a signed transaction (base64) to all servers concurrently, without preflight and without resends by the servers. Resolves once
   * one of them accepts it, which does not mean that it lands; throws the first failure if none does. Sending it again is harmless.
   */
  send(transaction: string, signal: AbortSignal): Promise<void>;
  /** The outcome of sent transactions in about the last minute, by their first signatures (at most 256). */
  signatureStatuses(signatures: string[], signal: AbortSignal): Promise<(results.SignatureStatus | null)[]>;
  /** Whether a transaction (base64) would succeed now. Signatures may be missing. */
  simulate(transaction: string, signal: AbortSignal): Promise<results.Simulation>;
  /** Whether a transaction with this blockhash can still land, as seen at `confirmed` unless another finality is named. */
  blockhashLives(blockhash: string, signal: AbortSignal, finality?: Finality): Promise<boolean>;
  /** The lamports of an account; 0 if there is none. */
  balance(address: string, signal: AbortSignal): Promise<bigint>;
  /** The genesis hash of the server's chain, whichever that is. Its first 32 characters are the reference in `solana:<reference>`. */
  genesisHash(signal: AbortSignal): Promise<string>;
  /** Asks each server for its chain. Never rejects. */
  survey(signal: AbortSignal): Promise<SurveyedServer[]>;
  /** How many RPC servers answer. Never rejects. */
  health(signal: AbortSignal): Promise<{ answering: number; servers: number }>;
  close(): Promise<void>;
};

/** `name` is the URL without credentials. `genesis` is undefined if the server did not answer. */
export type SurveyedServer = { name: string; genesis: string | undefined };

export type ChainOptions = {
  /** RPC servers in order of preference. */
  urls: string[];
  /** `solana:<reference>`: a server for another chain is logged and ignored. Without it, any chain is accepted. */
  network?: string;
  /** Deadline of one try at one server. Default 5 s. */
  timeoutMs?: number;
  maxInFlight?: number;
  log?: RpcLog;
};

const DEFAULT_ACCOUNT_BYTES = 10_240;
/** A server that failed is asked last for this long, so that it does not delay every call. */
const REST_MS = 10_000;

/** Asks the servers in turn until one answers, or all of them concurrently. */
class Servers {
  readonly list: RpcServer[];
  readonly #maxInFlight: number;
  #inFlight = 0;

  constructor({ urls, network, timeoutMs = 5_000, maxInFlight = 512, log }: ChainOptions) {
    if (urls.length === 0) throw new Error('at least one Solana RPC URL is needed');
    this.list = urls.map(url => new RpcServer(url, { network, timeoutMs, log }));
    this.#maxInFlight = maxInFlight;
  }

  async ask<T>(query: Query<T>, signal: AbortSignal): Promise<T> {
    if (this.#inFlight >= this.#maxInFlight) throw unreachable('too many reads in flight', 2);
    this.#inFlight += 1;
    // Many reads may share a signal, and each adds a listener.
    setMaxListeners(this.#maxInFlight, signal);
    try {
      return await this.#inTurn(query, signal);
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** Asks each server; undefined for one that does not answer. Never rejects. */
  each<T>(query: Query<T>, signal: AbortSignal): Promise<(T | undefined)[]> {
    return Promise.all(this.list.map(server => server.ask(query, signal).catch(() => undefined)));
  }

  async survey(signal: AbortSignal): Promise<SurveyedServer[]> {
    const found = await this.each(GENESIS, signal);
    return this.list.map(({ name }, index) => ({ name, genesis: found[index] }));
  }

  async health(signal: AbortSignal): ReturnType<SolanaChain['health']> {
    const found = await this.each(latestBlockhash('confirmed'), signal);
    return { answering: found.filter(Boolean).length, servers: found.length };
  }

  /** Asks only the preferred server, for reads that a working server may refuse. */
  askOne<T>(query: Query<T>, signal: AbortSignal): Promise<T> {
    const [preferred] = this.#order();
    if (!preferred) throw unreachable('no server');
    return preferred.ask(query, signal);
  }

  /** Asks all servers concurrently. @returns the first answer, without waiting for the others */
  async askAll<T>(query: Query<T>, signal: AbortSignal): Promise<T> {
    if (signal.aborted) throw timedOut(signal.reason);
    setMaxListeners(this.#maxInFlight, signal);
    try {
      return await Promise.any(this.list.map(server => server.ask(query, signal)));
    } catch (cause) {
      const failures = (cause as AggregateError).errors as UpstreamFailure[];
      throw signal.aborted ? timedOut(signal.reason) : (failures[0] ?? unreachable('no server'));
    }
  }

  async #inTurn<T>(query: Query<T>, signal: AbortSignal): Promise<T> {
    const failures: UpstreamFailure[] = [];
    for (const server of this.#order()) {
      if (signal.aborted) throw timedOut(signal.reason);
      try {
        const result = await server.ask(query, signal);
        server.restUntil = 0;
        return result;
      } catch (cause) {
        if (signal.aborted) throw timedOut(cause);
        failures.push(asFailure(cause));
        server.restUntil = Date.now() + REST_MS;
      }
    }
    throw failures.find(({ kind }) => kind === 'failed') ?? failures[0] ?? unreachable('no server');
  }

  /** The servers in order of preference, with those that failed recently last. */
  #order(): RpcServer[] {
    const now = Date.now();
    const rested = this.list.filter(({ restUntil }) => restUntil <= now);
    return [...rested, ...this.list.filter(server => !rested.includes(server))];
  }
}

const latestBlockhash = (
  commitment: Finality,
  check?: (latest: LatestBlockhash) => void,
): Query<LatestBlockhash> => ({
  method: 'getLatestBlockhash',
  params: [{ commitment }],
  read: results.readLatestBlockhash,
  ...(check ? { check } : {}),
});

const GENESIS: Query<string> = {
  method: 'getGenesisHash',
  params: [],
  read: results.readHash,
  ofAnyChain: true,
};

const blockHeight = (commitment: Finality): Query<number> => ({
  method: 'getBlockHeight',
  params: [{ commitment }],
  read: results.readCount,
});

type Ask = <T>(
  signal: AbortSignal,
  method: string,
  params: unknown[],
  read: (result: unknown) => T,
) => Promise<T>;

function accountReads(
  servers: Servers,
  ask: Ask,
): Pick<SolanaChain, 'account' | 'accounts' | 'largestHoldings'> {
  return {
    async account(address, signal, bytes = DEFAULT_ACCOUNT_BYTES, commitment = 'confirmed') {
      keyOf(address);
      const dataSlice = { offset: 0, length: bytes };
      const params = [address, { encoding: 'base64', commitment, dataSlice }];
      return ask(signal, 'getAccountInfo', params, result => results.readAccount(result, bytes));
    },
    async accounts(addresses, signal, bytes = DEFAULT_ACCOUNT_BYTES) {
      addresses.forEach(keyOf);
      const how = { encoding: 'base64', commitment: 'confirmed', dataSlice: { offset: 0, length: bytes } };
      return ask(signal, 'getMultipleAccounts', [addresses, how], result =>
        results.readAccounts(result, addresses.length, bytes),
      );
    },
    async largestHoldings(mint, signal) {
      keyOf(mint);
      const params = [mint, { commitment: 'confirmed' }];
      return servers.askOne(
        { method: 'getTokenLargestAccounts', params, read: results.readHoldings },
        signal,
      );
    },
  };
}

/**
 * A chain behind one or several JSON-RPC servers (Solana RPC HTTP methods). A read goes to the first server and fails over to the next
 * when that one is down, late, wrong, or on another chain.
 */
export function createChain(options: ChainOptions): SolanaChain {
  const servers = new Servers(options);
  const ask: Ask = (signal, method, params, read) => servers.ask({ method, params, read }, signal);
  return {
    ...accountReads(servers, ask),
    latestBlockhash: (finality, signal, check) => servers.ask(latestBlockhash(finality, check), signal),
    blockHeight: (finality, signal) => servers.ask(blockHeight(finality), signal),
    heights: signal => servers.each(blockHeight('confirmed'), signal),
    async signaturesFor(address, { finality, ...page }, signal) {
      keyOf(address);
      const params = [address, { ...page, commitment: finality }];
      return ask(signal, 'getSignaturesForAddress', params, results.readHistory);
    },
    transaction(signature, finality, signal) {
      const options = { encoding: 'base64', commitment: finality, maxSupportedTransactionVersion: 0 };
      return ask(signal, 'getTransaction', [signature, options], results.readLanded);
    },
    async send(transaction, signal) {
      const how = { encoding: 'base64', skipPreflight: true, maxRetries: 0 };
      await servers.askAll({ method: 'sendTransaction', params: [transaction, how], read: String }, signal);
    },
    signatureStatuses: (signatures, signal) =>
      ask(signal, 'getSignatureStatuses', [signatures], result =>
        results.readStatuses(result, signatures.length),
      ),
    async simulate(transaction, signal) {
      const how = { encoding: 'base64', commitment: 'confirmed', sigVerify: false };
      try {
        return await ask(signal, 'simulateTransaction', [transaction, how], results.readSimulation);
      } catch (error) {
        const fault = aboutTransaction(error);
        if (fault === undefined) throw error;
        return { error: fault };
      }
    },
    blockhashLives: (blockhash, signal, commitment = 'confirmed') =>
      ask(signal, 'isBlockhashValid', [blockhash, { commitment }], results.readFlag),
    async balance(address, signal) {
      keyOf(address);
      return ask(signal, 'getBalance', [address, { commitment: 'confirmed' }], result =>
        BigInt(results.readCount(results.readValue(result))),
      );
    },
    genesisHash: signal => servers.ask(GENESIS, signal),
    survey: signal => servers.survey(signal),
    health: signal => servers.health(signal),
    async close() {
      await Promise.all(servers.list.map(server => server.close()));
    },
  };
}
