import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { FairQueue, orAbort, Threads, UpstreamFailure } from 'coinslot';
import type { Extract } from './extract.js';
import { joinSentences } from './gate.js';
import type { Summarizer } from './summarizer.js';

/** The module that the summary threads run. */
export const SUMMARY_WORKER = fileURLToPath(new URL('./summary-worker.js', import.meta.url));
const WORKER_HEAP_MB = 512;

/** `threads`: workers (1 or 2). `maxQueue`: how many texts may wait for a worker; further ones are refused as `unavailable`. */
export type EmbeddedOptions = { threads?: number; maxQueue?: number };

/** The message for a text without anything to summarize. */
export const NOTHING_TO_SAY = 'text contains nothing to summarize: send text with at least one word';

/**
 * The extractive summarizer in worker threads: one to three of the text's own sentences. Needs no network. An
 * aborted signal ends the wait immediately; a text in progress is processed to its end, which takes tenths of a second.
 */
export function createEmbeddedSummarizer(options: EmbeddedOptions = {}): Summarizer {
  const threads = options.threads ?? Math.min(2, Math.max(1, availableParallelism() - 1));
  const queue = new FairQueue({
    slots: threads,
    maxWaiting: options.maxQueue ?? 32,
    fullMessage: 'the summarizer is busy: try again shortly',
  });
  const pool = new Threads({ filename: SUMMARY_WORKER, threads, heapMb: WORKER_HEAP_MB });
  const run = async (
    text: string,
    signal: AbortSignal,
    caller: string | undefined,
  ): Promise<Extract | null> => {
    try {
      // A cancelled job keeps its slot until its thread is free again.
      const job = queue.run(() => pool.run<Extract | null>(text, { signal }), signal, caller);
      return await orAbort(job, signal);
    } catch (cause) {
      if (cause instanceof UpstreamFailure) throw cause;
      const message = signal.aborted
        ? 'the summary was not ready in time: send a shorter text or try again'
        : 'the summarizer failed on this text: try again or send a shorter one';
      throw new UpstreamFailure('failed', message, { cause });
    }
  };
  return {
    name: 'extractive',
    mock: false,
    async summarize(text, signal, caller) {
      const extract = await run(text, signal, caller);
      if (extract === null) throw new UpstreamFailure('invalid', NOTHING_TO_SAY);
      return { summary: joinSentences(extract.sentences), method: extract.method };
    },
    check: async () => {},
    async close() {
      queue.close(new UpstreamFailure('unavailable', 'the summarizer is shutting down: try again'));
      await pool.close();
    },
  };
}
