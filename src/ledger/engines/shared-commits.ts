import { setTimeout as sleep } from 'node:timers/promises';
import type { Scope, TransactionBody } from '../engine.js';
import { LedgerFault } from '../fault.js';

const MAX_QUEUED = 2_000;
const MAX_BATCH = 64;
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
/**
 * How long a batch waits for locks of other servers. Beyond that, its operations run one by one, so that one waits for another server, not
 * all. Less than `HANG_UP_MARGIN_MS`: a renewal of a caller in it comes that much later.
 */
export const SHARED_LOCK_MS = 100;

type Operation = () => TransactionBody<unknown>;
export type Shared = Scope & { payment: string; operation: Operation };
type Task = Shared & { resolve: (value: unknown) => void; reject: (error: unknown) => void };

/** How a batch is run. */
export type BatchRunner = {
  /** In one transaction. @returns their values, or undefined if nothing was written and each must run by itself */
  together: (tasks: readonly Shared[]) => Promise<unknown[] | undefined>;
  alone: (task: Shared) => Promise<unknown>;
};

/**
 * Operations that are requested while a commit is under way share the next one. No two of a batch are for the same payment, or the same
 * payer: they run side by side in their transaction, in which locks do not keep them apart.
 */
export class SharedCommits {
  readonly #runner: BatchRunner;
  #queue: Task[] = [];
  #working: Promise<void> | undefined;

  constructor(runner: BatchRunner) {
    this.#runner = runner;
  }

  add<T>(shared: Shared): Promise<T> {
    if (this.#queue.length >= MAX_QUEUED)
      throw new LedgerFault('busy', 'Too many operations wait for the ledger. Try again in a second.');
    return new Promise<unknown>((resolve, reject) => {
      this.#queue.push({ ...shared, resolve, reject });
      this.#working ??= this.#work();
    }) as Promise<T>;
  }

  /** Resolves once nothing waits. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    // What is requested in the same turn of the event loop is gathered, too.
    await new Promise(setImmediate);
    while (this.#queue.length > 0) await this.#run(this.#take());
    this.#working = undefined;
  }

  /**
   * The oldest operations that are of different payments and payers, and fit into one transaction; the others keep their order. In the order
   * of their payments, as at other servers, so that two batches do not wait for each other's rows.
   */
  #take(): Task[] {
    const batch: Task[] = [];
    const taken = new Set<string>();
    let bytes = 0;
    this.#queue = this.#queue.filter(task => {
      const keys = task.payer === undefined ? [task.payment] : [task.payment, task.payer];
      const isApart = keys.every(key => !taken.has(key));
      for (const key of keys) taken.add(key);
      const fits =
        batch.length === 0 || (batch.length < MAX_BATCH && bytes + (task.bytes ?? 0) <= MAX_BATCH_BYTES);
      if (!isApart || !fits) return true;
      bytes += task.bytes ?? 0;
      batch.push(task);
      return false;
    });
    return batch.toSorted((a, b) => (a.payment < b.payment ? -1 : 1));
  }

  async #run(batch: readonly Task[]): Promise<void> {
    if (batch.length === 1) return this.#runEach(batch);
    try {
      const values = await this.#runner.together(batch);
      if (values) batch.forEach((task, index) => task.resolve(values[index]));
      else await this.#runEach(batch);
    } catch (error) {
      for (const task of batch) task.reject(error);
    }
  }

  /** Does not wait long: those that wait for another server keep nobody up. */
  async #runEach(tasks: readonly Task[]): Promise<void> {
    const limit = new AbortController();
    const all = tasks.map(task => this.#runner.alone(task).then(task.resolve, task.reject));
    const late = sleep(SHARED_LOCK_MS, undefined, { signal: limit.signal }).catch(() => undefined);
    await Promise.race([Promise.all(all), late]);
    limit.abort();
  }
}
