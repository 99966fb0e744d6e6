import type { Transferable } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import type { Job } from './job.js';

type Options = {
  /** The worker's program. */
  filename: string;
  threads: number;
  /** MB that a thread's old generation may take. */
  heapMb?: number;
  workerData?: unknown;
};

/** A thread takes as much memory as a whole small server: none before the first job, none after this long without. */
const IDLE_MS = 60_000;
/** A job that has not noticed its stop by then hangs, and its thread is ended after all. */
const HUNG_MS = 60_000;
const CLOSE_MS = 3_000;

/**
 * Worker threads whose running jobs are asked to stop and not ended: Node 20 may abort the whole process when a thread is ended in
 * the middle of its work, while V8 still compiles its code on another thread. Never queues by itself what its caller does not bound.
 */
export class Threads {
  readonly #options: Options;
  readonly #stops = new Set<Int32Array>();
  #pool: Promise<Piscina> | undefined;
  #closed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /**
   * Runs a job and settles when it has ended, which after an abort is as soon as the worker looks at its stop. `name`: the function
   * that the worker exports. Throws the signal's reason where it aborted, or what broke the worker.
   */
  async run<Result>(
    task: unknown,
    {
      name,
      signal,
      transferList = [],
    }: { name?: string; signal: AbortSignal; transferList?: Transferable[] },
  ): Promise<Result> {
    signal.throwIfAborted();
    if (this.#closed) throw new Error('the threads are closed');
    const job: Job<unknown> = { task, stop: new Int32Array(new SharedArrayBuffer(4)) };
    const hung = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      Atomics.store(job.stop, 0, 1);
      timer = setTimeout(() => hung.abort(new Error('the worker hung')), HUNG_MS).unref();
    };
    signal.addEventListener('abort', stop, { once: true });
    this.#stops.add(job.stop);
    try {
      const how = { ...(name === undefined ? {} : { name }), signal: hung.signal, transferList };
      const pool = await (this.#pool ??= openPool(this.#options));
      return (await pool.run(job, how)) as Result;
    } finally {
      this.#stops.delete(job.stop);
      signal.removeEventListener('abort', stop);
      clearTimeout(timer);
      signal.throwIfAborted();
    }
  }

  /** Asks running jobs to stop and waits for them, three seconds at most. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const stop of this.#stops) Atomics.store(stop, 0, 1);
    await (await this.#pool)?.close({ force: true });
  }
}

/** Its package is slow to load: with the first job, not at the start. */
async function openPool({ filename, threads, heapMb, workerData }: Options): Promise<Piscina> {
  const { Piscina } = await import('piscina');
  const pool = new Piscina({
    filename,
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: IDLE_MS,
    closeTimeout: CLOSE_MS,
    // Texts of strangers are worked on in there: no secrets of the environment.
    env: {},
    workerData,
    ...(heapMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMb } }),
  });
  // Faults of idle workers; those with a job reject it.
  pool.on('error', () => {});
  return pool;
}
