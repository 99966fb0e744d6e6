import type { Job } from 'coinslot';
import { documentOf } from './document.js';
import { extractSummary, type Extract } from './extract.js';

/**
 * The entry point of the summary workers.
 * @returns the summary; null if the text has no content
 */
export default function summarizeInWorker({ task, stop }: Job<string>): Extract | null {
  return isCancelled(stop) ? null : extractSummary(task);
}

/** The text that is sent to a model; null if it has no content. */
export function readDocument({ task, stop }: Job<string>): string | null {
  return isCancelled(stop) ? null : documentOf(task);
}

function isCancelled(stop: Int32Array): boolean {
  return Atomics.load(stop, 0) === 1;
}
