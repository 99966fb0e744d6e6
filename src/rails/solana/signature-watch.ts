import { orAbort, withAbortAfter } from '../../net/deadline.js';
import type { SolanaChain } from './rpc.js';

/** The most signatures that an RPC server takes in one request. */
const MAX_SIGNATURES = 256;
const EVERY_MS = 400;
/** The minimum time between two requests. A new signature does not wait for the next regular one. */
const LEAST_MS = 50;
const LOOK_DEADLINE_MS = 5_000;

/** `failed`: the transaction landed and had no effect except its fee. */
export type Landing = { failed: boolean };

type Watched = { landing: Promise<Landing>; resolve: (landing: Landing) => void; watchers: number };

/** Waits for sent transactions to be `confirmed`. One request asks for all of them. */
export class SignatureWatch {
  readonly #chain: Pick<SolanaChain, 'signatureStatuses'>;
  readonly #everyMs: number;
  readonly #watched = new Map<string, Watched>();
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #lookedAt = -Infinity;
  /** Whether a signature was added since the last request was sent. */
  #newcomer = false;

  constructor(chain: Pick<SolanaChain, 'signatureStatuses'>, everyMs = EVERY_MS) {
    this.#chain = chain;
    this.#everyMs = everyMs;
  }

  /** Resolves once the transaction is `confirmed`; throws the signal's reason. */
  async landing(signature: string, signal: AbortSignal): Promise<Landing> {
    signal.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    const watched = this.#watched.get(signature) ?? this.#watch(signature);
    watched.watchers += 1;
    try {
      return await orAbort(watched.landing, signal);
    } finally {
      watched.watchers -= 1;
      if (watched.watchers === 0 && this.#watched.get(signature) === watched) this.#watched.delete(signature);
    }
  }

  close(): void {
    this.#closing.abort(new Error('the server is shutting down'));
    clearTimeout(this.#timer);
  }

  #watch(signature: string): Watched {
    let resolve: Watched['resolve'] = () => {};
    const landing = new Promise<Landing>(done => (resolve = done));
    const watched = { landing, resolve, watchers: 0 };
    this.#watched.set(signature, watched);
    this.#newcomer = true;
    this.#lookIn(0);
    return watched;
  }

  /** Schedules a request, unless one is under way: that one is followed by another anyway. */
  #lookIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#looking || this.#closing.signal.aborted) return;
    const soonest = this.#lookedAt + Math.min(LEAST_MS, this.#everyMs) - performance.now();
    this.#timer = setTimeout(() => void this.#look(), Math.max(ms, soonest));
  }

  /** Asks for the signatures that have waited longest. An outage is not reported, because the next request may succeed. */
  async #look(): Promise<void> {
    if (this.#watched.size === 0) return;
    const signatures = [...this.#watched.keys()].slice(0, MAX_SIGNATURES);
    this.#looking = true;
    this.#newcomer = false;
    try {
      const statuses = await withAbortAfter(LOOK_DEADLINE_MS, this.#closing.signal, signal =>
        this.#chain.signatureStatuses(signatures, signal),
      );
      for (const [index, signature] of signatures.entries()) this.#note(signature, statuses[index] ?? null);
    } catch {
      for (const signature of signatures) this.#note(signature, null);
    }
    this.#looking = false;
    this.#lookedAt = performance.now();
    this.#lookIn(this.#newcomer || this.#watched.size > MAX_SIGNATURES ? 0 : this.#everyMs);
  }

  #note(signature: string, status: { finality: string; failed: boolean } | null): void {
    const watched = this.#watched.get(signature);
    if (!watched) return;
    // Moved to the end of the queue.
    this.#watched.delete(signature);
    if (status && status.finality !== 'processed') watched.resolve({ failed: status.failed });
    else this.#watched.set(signature, watched);
  }
}
