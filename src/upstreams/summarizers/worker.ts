import { stopped, type Job } from '../job.js';
import { extractSummary } from './extract.js';

/** Entry of the summary workers: the summary's sentences, or null when the text says nothing. */
export default function summarizeInWorker({ task, stop }: Job<string>): string[] | null {
  return stopped(stop) ? null : extractSummary(task);
}
