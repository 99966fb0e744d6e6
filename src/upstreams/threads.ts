import type { Transferable } from 'node:worker_threads';
import type { Piscina } from 'piscina';

/** The message to a worker thread: the job, and a shared integer that becomes 1 when the job is cancelled (`Atomics.load(stop, 0)`). */
export type Job<Task> = { readonly task: Task; readonly stop: Int32Array };

export type ThreadsOptions = {
  /** The module that the workers run. */
  filename: string;
  threads: number;
  /** Heap limit of a thread (old generation) in MB. */
  heapMb?: number;
  workerData?: unknown;
};

/** A thread takes as much memory as a small server, so none runs before the first job, or after this long without jobs. */
const IDLE_MS = 60_000;
/** A cancelled job that is still running after this time counts as hung, and its thread is terminated. */
const HUNG_MS = 60_000;
const CLOSE_MS = 3_000;

/**
 * Worker threads. A cancelled job is signalled to stop rather than terminated: Node 20 may abort the whole process if a thread is
 * terminated while V8 is still compiling its code on another thread. The queue has no limit of its own; callers must limit their jobs.
 */
export class Threads {
  readonly #options: ThreadsOptions;
  readonly #stops = new Set<Int32Array>();
  #pool: Promise<Piscina> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ThreadsOptions) {
    this.#options = options;
  }

  /**
   * Runs a job and settles when it has ended; after an abort, that is when the worker next checks for cancellation. `name`: the
   * function that the worker exports. Throws the signal's reason if the signal aborted, or the error of the worker.
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
    if (this.#closing) throw new Error('the threads are closed');
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

  /** Cancels running jobs and waits for them, for three seconds at most. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    for (const stop of this.#stops) Atomics.store(stop, 0, 1);
    await (await this.#pool)?.close({ force: true });
  }
}

/** Loaded with the first job, because the package loads slowly. */
async function openPool({ filename, threads, heapMb, workerData }: ThreadsOptions): Promise<Piscina> {
  const { Piscina } = await import('piscina');
  const pool = new Piscina({
    filename,
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: IDLE_MS,
    closeTimeout: CLOSE_MS,
    // The workers process text from callers, so they get no environment variables, which may contain secrets.
    env: {},
    workerData,
    ...(heapMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMb } }),
  });
  // Errors of idle workers. A worker with a job rejects the job instead.
  pool.on('error', () => {});
  return pool;
}
