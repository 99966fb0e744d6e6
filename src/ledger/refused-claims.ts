import type { Engine, TransactionBody } from './engine.js';
import type { Fence } from './queries/conditions.js';

/** Longer than a busy server goes without a write of its own (its looks at the chain), so that deletions seldom need a commit to themselves. */
const SHARED_COMMIT_MS = 5_000;
/** Where each write is a transaction, and other servers see the rows meanwhile. */
const OWN_COMMIT_MS = 250;
const MAX_GATHERED = 200;

type Deletion = {
  fence: Fence;
  resolve: (bytes: number | undefined) => void;
  reject: (error: unknown) => void;
};

/**
 * Claims that verify refused, gathered to be deleted together: with the next write where writes share a commit (SQLite), else a quarter of a
 * second later. So a refused payment costs the ledger one commit, not two.
 */
export class RefusedClaims {
  readonly #engine: Engine;
  readonly #remove: (fence: Fence) => TransactionBody<number | undefined>;
  readonly #waitMs: number;
  readonly #known = new Map<string, Promise<unknown>>();
  #gathered: Deletion[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** @param remove resolves to the bytes that were freed, or undefined where the claim is not ours */
  constructor(engine: Engine, remove: (fence: Fence) => TransactionBody<number | undefined>) {
    this.#engine = engine;
    this.#remove = remove;
    this.#waitMs = engine.dialect.concurrentWriters ? OWN_COMMIT_MS : SHARED_COMMIT_MS;
  }

  /** Resolves once it is on disk, to what `remove` found. */
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

  /** Resolves once a payment is not among them any more; undefined where it is not. Never rejects. */
  gone(id: string): Promise<unknown> | undefined {
    const known = this.#known.get(id);
    if (known) void this.flush();
    return known;
  }

  /** Deletes what was gathered. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // Those who lock several rows lock them in one order.
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

  /** The engine, which takes along what was gathered with every write, where that costs no commit, and before it closes. */
  get engine(): Engine {
    const engine = this.#engine;
    const { dialect, owner, warnings } = engine;
    return {
      dialect,
      owner,
      warnings,
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
