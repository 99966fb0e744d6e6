import { stopped, type Job } from '../job.js';
import { documentOf } from './document.js';
import { extractSummary } from './extract.js';

/** Entry of the summary workers: the summary's sentences, or null when the text says nothing. */
export default function summarizeInWorker({ task, stop }: Job<string>): string[] | null {
  return stopped(stop) ? null : extractSummary(task);
}

/** The text as a model gets it, or null when it says nothing. */
export function readDocument({ task, stop }: Job<string>): string | null {
  return stopped(stop) ? null : documentOf(task);
}
