import { stopped, type Job } from '../job.js';
import { documentOf } from './document.js';
import { extractSummary } from './extract.js';

/** Entry point of the summary workers: the summary's sentences; null if the text has no content. */
export default function summarizeInWorker({ task, stop }: Job<string>): string[] | null {
  return stopped(stop) ? null : extractSummary(task);
}

/** The text that is sent to a model; null if it has no content. */
export function readDocument({ task, stop }: Job<string>): string | null {
  return stopped(stop) ? null : documentOf(task);
}
