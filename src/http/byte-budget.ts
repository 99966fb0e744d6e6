/** The caller to whom held bytes are attributed. `source` is a network address (see `sourceOf`). */
export type BudgetOwner = { payment: string; payer: string; source: string };

/** The share of all bytes that one owner may hold. */
const SHARES = { payment: 1 / 8, payer: 1 / 4, source: 1 / 2 };
/** Bytes held by a caller that made progress within this time are not evicted. */
const PATIENCE_MS = 1_000;

type Kind = keyof BudgetOwner;
type Pool = { limit: number; held: number; slowestFirst: Set<Reservation> };

/**
 * Bytes held for callers, with a limit in total and for each payment, payer and source. When a limit is
 * reached, the holders that have gone longest without progress are evicted.
 */
export class ByteBudget {
  readonly #all: Pool;
  readonly #patienceMs: number;
  readonly #limits: Record<Kind, number>;
  readonly #pools: Record<Kind, Map<string, Pool>> = {
    payment: new Map(),
    payer: new Map(),
    source: new Map(),
  };

  constructor(total: number, patienceMs = PATIENCE_MS) {
    this.#all = newPool(total);
    this.#patienceMs = patienceMs;
    this.#limits = {
      payment: total * SHARES.payment,
      payer: total * SHARES.payer,
      source: total * SHARES.source,
    };
  }

  get held(): number {
    return this.#all.held;
  }

  /** A new holder without bytes. `evict` is called at most once, after its bytes are counted as free. */
  open(owner: BudgetOwner, evict: () => void): Reservation {
    const pools = [
      this.#pool('payment', owner),
      this.#pool('payer', owner),
      this.#pool('source', owner),
      this.#all,
    ];
    const forget = (): void => {
      this.#forget('payment', owner);
      this.#forget('payer', owner);
      this.#forget('source', owner);
    };
    return new Reservation(pools, { evict, forget, patienceMs: this.#patienceMs });
  }

  #pool(kind: Kind, owner: BudgetOwner): Pool {
    let pool = this.#pools[kind].get(owner[kind]);
    if (!pool) this.#pools[kind].set(owner[kind], (pool = newPool(this.#limits[kind])));
    return pool;
  }

  #forget(kind: Kind, owner: BudgetOwner): void {
    if (this.#pools[kind].get(owner[kind])?.slowestFirst.size === 0) this.#pools[kind].delete(owner[kind]);
  }
}

function newPool(limit: number): Pool {
  return { limit, held: 0, slowestFirst: new Set() };
}

/** The bytes held for one caller. */
export class Reservation {
  readonly #pools: Pool[];
  readonly #options: { evict: () => void; forget: () => void; patienceMs: number };
  #bytes = 0;
  #progressAt = performance.now();
  #open = true;

  constructor(pools: Pool[], options: { evict: () => void; forget: () => void; patienceMs: number }) {
    this.#pools = pools;
    this.#options = options;
    for (const { slowestFirst } of pools) slowestFirst.add(this);
  }

  /** Takes more bytes, evicting slower holders if necessary. False if that is not enough; the caller must then give up. */
  grow(bytes: number): boolean {
    if (!this.#open || !this.#pools.every(pool => this.#makeRoom(pool, bytes))) return false;
    this.#bytes += bytes;
    for (const pool of this.#pools) pool.held += bytes;
    return true;
  }

  /** Records progress: this holder is now the last to be evicted. */
  progress(): void {
    if (!this.#open) return;
    this.#progressAt = performance.now();
    for (const { slowestFirst } of this.#pools) {
      slowestFirst.delete(this);
      slowestFirst.add(this);
    }
  }

  /** Releases all bytes. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const pool of this.#pools) {
      pool.held -= this.#bytes;
      pool.slowestFirst.delete(this);
    }
    this.#options.forget();
  }

  #makeRoom(pool: Pool, bytes: number): boolean {
    while (pool.held + bytes > pool.limit) {
      const [slowest] = pool.slowestFirst;
      if (!slowest || slowest === this || !slowest.#isStalled()) return false;
      slowest.close();
      slowest.#options.evict();
    }
    return true;
  }

  #isStalled(): boolean {
    return performance.now() - this.#progressAt >= this.#options.patienceMs;
  }
}
