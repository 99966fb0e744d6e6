import { extractSummary } from './extract.js';

/** Entry of the summary workers: the summary's sentences, or null when the text says nothing. */
export default function summarizeInWorker(text: string): string[] | null {
  return extractSummary(text);
}
