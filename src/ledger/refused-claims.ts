import type { Engine, TransactionBody } from './engine.js';
import type { Fence } from './queries/conditions.js';

/** Longer than the interval between a busy server's writes, so that deletions rarely need their own commit. */
const SHARED_COMMIT_MS = 5_000;
/** Used if each write is a separate transaction, and other servers see the rows meanwhile. */
const OWN_COMMIT_MS = 250;
const MAX_GATHERED = 200;

type Deletion = {
  fence: Fence;
  resolve: (bytes: number | undefined) => void;
  reject: (error: unknown) => void;
};

/**
 * Gathers claims that verify refused and deletes them together: with the next write if writes share a commit (SQLite), else a quarter
 * of a second later. A refused payment thus costs the ledger one commit instead of two.
 */
export class RefusedClaims {
  readonly #engine: Engine;
  readonly #remove: (fence: Fence) => TransactionBody<number | undefined>;
  readonly #waitMs: number;
  readonly #known = new Map<string, Promise<unknown>>();
  #gathered: Deletion[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param remove resolves to the number of bytes freed, or undefined if the claim is not this server's */
  constructor(engine: Engine, remove: (fence: Fence) => TransactionBody<number | undefined>) {
    this.#engine = engine;
    this.#remove = remove;
    this.#waitMs = engine.dialect.concurrentWriters ? OWN_COMMIT_MS : SHARED_COMMIT_MS;
  }

  /** Resolves to the result of `remove` once it is on disk. */
  add(fence: Fence): Promise<number | undefined> {
    const deleted = new Promise<number | undefined>((resolve, reject) => {
      this.#gathered.push({ fence, resolve, reject });
    });
    const known = deleted
      .catch(() => {})
      .then(() => {
        if (this.#known.get(fence.id) === known) this.#known.delete(fence.id);
      });
    this.#known.set(fence.id, known);
    if (this.#gathered.length >= MAX_GATHERED) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), this.#waitMs).unref();
    return deleted;
  }

  /** Resolves once the claim of a payment is deleted; undefined if it is not among them. Never rejects. */
  gone(id: string): Promise<unknown> | undefined {
    const known = this.#known.get(id);
    if (known) void this.flush();
    return known;
  }

  /** Deletes the gathered claims. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // All transactions that lock several rows lock them in the order of their ids.
    const batch = this.#gathered.splice(0).sort((a, b) => (a.fence.id < b.fence.id ? -1 : 1));
    if (batch.length === 0) return;
    try {
      const freed = await this.#engine.write(() => this.#removeAll(batch));
      for (const [index, { resolve }] of batch.entries()) resolve(freed[index]);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  *#removeAll(batch: readonly Deletion[]): TransactionBody<(number | undefined)[]> {
    const freed = [];
    for (const { fence } of batch) freed.push(yield* this.#remove(fence));
    return freed;
  }

  /** The engine, extended to delete the gathered claims with every write, if that costs no commit, and before it closes. */
  get engine(): Engine {
    const engine = this.#engine;
    const { dialect, owner } = engine;
    return {
      dialect,
      owner,
      read: operation => engine.read(operation),
      write: (operation, bytes) => {
        if (!dialect.concurrentWriters) void this.flush();
        return engine.write(operation, bytes);
      },
      transact: work => engine.transact(work),
      close: async () => {
        await this.flush();
        await engine.close();
      },
    };
  }
}
