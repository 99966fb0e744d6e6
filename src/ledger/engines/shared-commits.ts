import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation, Scope } from '../engine.js';
import { LedgerFault } from '../fault.js';

const MAX_QUEUED = 2_000;
const MAX_BATCH = 64;
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const MAX_CHAIN = 8;
/**
 * How long a batch waits for rows that other servers have locked. After that, its chains of operations run in transactions of their own, so
 * that only one of them waits for the other server. Less than `HANG_UP_MARGIN_MS`, because it delays the renewal of callers in the batch.
 */
export const SHARED_LOCK_MS = 100;

export type Shared = Scope & { payment: string; operation: Operation };
type Task = Shared & { resolve: (value: unknown) => void; reject: (error: unknown) => void };

/** A chain of operations on one payment or on payments by one payer. They run one after another. */
export type Chain = readonly Shared[];

/** Runs chains of operations in the database. Both functions reject with LedgerFault `unknown` if it is unclear whether they committed. */
export type ChainRunner = {
  /**
   * Runs chains of operations side by side in one transaction.
   * @returns the values of each chain; undefined for a chain whose payer another server has locked. Empty if nothing was written at all
   */
  together: (chains: readonly Chain[]) => Promise<(unknown[] | undefined)[]>;
  /** Runs a chain of operations in a transaction of its own, which waits for its locks. @returns the values of its operations */
  apart: (chain: Chain) => Promise<unknown[]>;
};

/**
 * Operations that are requested while a commit is under way share the next one. Operations on one payment or
 * one payer form a chain and run one after another, because locks do not separate operations within one
 * transaction. A chain that has to wait for another server gets its own transaction.
 */
export class SharedCommits {
  readonly #runner: ChainRunner;
  #queue: Task[] = [];
  /** The payments and payers whose chains of operations are running in transactions of their own. */
  readonly #busy = new Set<string>();
  readonly #apart = new Set<Promise<void>>();
  #working: Promise<void> | undefined;

  constructor(runner: ChainRunner) {
    this.#runner = runner;
  }

  add<T>(shared: Shared): Promise<T> {
    if (this.#queue.length >= MAX_QUEUED)
      throw new LedgerFault('busy', 'Too many operations are waiting for the ledger. Try again in a second.');
    return new Promise<unknown>((resolve, reject) => {
      this.#queue.push({ ...shared, resolve, reject });
      this.#working ??= this.#work();
    }) as Promise<T>;
  }

  /** Resolves once nothing is queued or running. */
  async idle(): Promise<void> {
    while (this.#working || this.#apart.size > 0) await Promise.all([this.#working, ...this.#apart]);
  }

  async #work(): Promise<void> {
    // Waits for further operations that are requested in the same turn of the event loop.
    await new Promise(setImmediate);
    for (let chains = this.#take(); chains.length > 0; chains = this.#take()) await this.#run(chains);
    this.#working = undefined;
  }

  /**
   * Takes the oldest operations that fit into one transaction; the others keep their order. The chains are sorted by payment on all servers, so
   * that two batches do not wait for each other's rows.
   */
  #take(): Task[][] {
    const chains = new Chains(this.#busy);
    this.#queue = this.#queue.filter(task => !chains.add(task));
    return chains.all.toSorted(([a], [b]) => (a!.payment < b!.payment ? -1 : 1));
  }

  async #run(chains: readonly Task[][]): Promise<void> {
    if (chains.length === 1) return this.#runApart(chains);
    try {
      const values = await this.#runner.together(chains);
      chains.forEach((chain, index) => resolveAll(chain, values[index]));
      await this.#runApart(chains.filter((_, index) => values[index] === undefined));
    } catch (error) {
      for (const task of chains.flat()) task.reject(error);
    }
  }

  /**
   * Starts chains of operations in transactions of their own. Resolves after `SHARED_LOCK_MS` at the latest, so that a chain which is
   * waiting for a lock does not delay the next batch.
   */
  async #runApart(chains: readonly Task[][]): Promise<void> {
    if (chains.length === 0) return;
    const limit = new AbortController();
    const late = sleep(SHARED_LOCK_MS, undefined, { signal: limit.signal }).catch(() => undefined);
    await Promise.race([Promise.all(chains.map(chain => this.#begin(chain))), late]);
    limit.abort();
  }

  #begin(chain: readonly Task[]): Promise<void> {
    const keys = chain.flatMap(keysOf);
    for (const key of keys) this.#busy.add(key);
    const run = this.#runChain(chain).then(() => {
      for (const key of keys) this.#busy.delete(key);
      this.#apart.delete(run);
      if (this.#queue.length > 0) this.#working ??= this.#work();
    });
    this.#apart.add(run);
    return run;
  }

  async #runChain(chain: readonly Task[]): Promise<void> {
    try {
      resolveAll(chain, await this.#runner.apart(chain));
    } catch (error) {
      const isUnknown = error instanceof LedgerFault && error.code === 'unknown';
      if (chain.length > 1 && !isUnknown) for (const task of chain) await this.#runChain([task]);
      else for (const task of chain) task.reject(error);
    }
  }
}

/** The chains of ledger operations in one database transaction. */
class Chains {
  readonly all: Task[][] = [];
  readonly #busy: ReadonlySet<string>;
  /** The chain of operations on each payment and by each payer; undefined if their next operation must wait for a later transaction. */
  readonly #byKey = new Map<string, Task[] | undefined>();
  #count = 0;
  #bytes = 0;

  constructor(busy: ReadonlySet<string>) {
    this.#busy = busy;
  }

  /** Adds an operation to a chain of operations. @returns false if it must wait for a later transaction */
  add(task: Task): boolean {
    const keys = keysOf(task);
    const chain = this.#chainOf(keys);
    const isTaken = chain !== undefined && chain.length < MAX_CHAIN && this.#fits(task);
    for (const key of keys) this.#byKey.set(key, isTaken ? chain : undefined);
    if (!isTaken) return false;
    if (chain.length === 0) this.all.push(chain);
    chain.push(task);
    this.#count += 1;
    this.#bytes += task.bytes ?? 0;
    return true;
  }

  /** The chain that an operation belongs to, which may be a new one; undefined if it belongs to two chains, or to one that is running. */
  #chainOf(keys: readonly string[]): Task[] | undefined {
    const known = keys.filter(key => this.#byKey.has(key) || this.#busy.has(key));
    const [first, ...others] = known.map(key => this.#byKey.get(key));
    if (known.length === 0) return [];
    return others.every(other => other === first) ? first : undefined;
  }

  #fits({ bytes = 0 }: Task): boolean {
    return this.#count === 0 || (this.#count < MAX_BATCH && this.#bytes + bytes <= MAX_BATCH_BYTES);
  }
}

const keysOf = ({ payment, payer }: Shared): string[] => (payer === undefined ? [payment] : [payment, payer]);

function resolveAll(chain: readonly Task[], values: readonly unknown[] | undefined): void {
  if (values) chain.forEach((task, index) => task.resolve(values[index]));
}
