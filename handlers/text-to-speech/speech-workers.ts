import { fileURLToPath } from 'node:url';
import { Threads, UpstreamFailure } from 'coinslot';
import type { Outcome, Sounded, SpeakTask, WorkerData } from './speech-worker.js';
import type { SpokenWav } from './voices.js';

/**
 * The worker threads of one speaker. They start when needed and end after a minute without work. At most `threads`
 * jobs may run at a time (see `FairQueue`): the pool never queues.
 */
export class SpeechWorkers {
  readonly #threads: number;
  readonly #load: () => Promise<WorkerData>;
  #pool: Promise<Threads> | undefined;
  #closed = false;

  constructor(threads: number, load: () => Promise<WorkerData>) {
    this.#threads = threads;
    this.#load = load;
  }

  async speak(task: SpeakTask, signal: AbortSignal): Promise<SpokenWav> {
    return soundOf(await this.#run<Sounded>('speak', task, [], signal));
  }

  /** Takes over the memory of `wav`. */
  async convert(wav: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<SpokenWav> {
    return soundOf(await this.#run<Sounded>('convert', { wav }, [wav.buffer], signal));
  }

  /** Prepares a text for a voice of `language`. */
  prepareText(text: string, language: string, signal: AbortSignal): Promise<string> {
    return this.#run<string>('prepareText', { text, language }, [], signal);
  }

  /** Stops running jobs; they throw `unavailable`. */
  async close(): Promise<void> {
    this.#closed = true;
    const pool = await this.#pool?.catch(() => undefined);
    await pool?.close();
  }

  #open(): Promise<Threads> {
    const pool = (this.#pool ??= this.#start());
    // A failure to load is not cached: the next call tries again.
    pool.catch(() => {
      if (this.#pool === pool) this.#pool = undefined;
    });
    return pool;
  }

  async #start(): Promise<Threads> {
    let workerData: WorkerData;
    try {
      workerData = await this.#load();
    } catch (cause) {
      throw new UpstreamFailure('failed', 'The speech engine could not be loaded.', { cause });
    }
    const filename = fileURLToPath(new URL('./speech-worker.js', import.meta.url));
    return new Threads({ filename, threads: this.#threads, workerData });
  }

  async #run<Result>(
    name: string,
    task: unknown,
    transferList: ArrayBuffer[],
    signal: AbortSignal,
  ): Promise<Result> {
    const pool = await this.#open();
    if (this.#closed) throw closedDown();
    signal.throwIfAborted();
    let outcome: Outcome<Result>;
    try {
      outcome = await pool.run<Outcome<Result>>(task, { name, transferList, signal });
    } catch (cause) {
      signal.throwIfAborted();
      if (this.#closed) throw closedDown(cause);
      throw new UpstreamFailure('failed', 'The speech worker failed; try again.', { cause });
    }
    if (this.#closed) throw closedDown();
    if ('result' in outcome) return outcome.result;
    throw refusal(outcome);
  }
}

function closedDown(cause?: unknown): UpstreamFailure {
  return new UpstreamFailure('unavailable', 'The speech engine is shutting down; try again.', {
    cause,
    retryAfterSeconds: 5,
  });
}

function soundOf({ wav, bandwidthHz }: Sounded): SpokenWav {
  return { wav: Buffer.from(wav.buffer, wav.byteOffset, wav.byteLength), bandwidthHz };
}

function refusal({ fault, detail }: Exclude<Outcome<unknown>, { result: unknown }>): UpstreamFailure {
  if (fault === 'failed')
    return new UpstreamFailure('failed', 'The speech engine produced no usable audio; try another text.', {
      cause: new Error(detail),
    });
  return new UpstreamFailure('invalid', detail);
}
