import type { Backends } from '../src/backends.js';
import type { Handlers, PaidOperationId, Readiness } from '../src/operation.js';
import { brandFeedback, brandFeedbackReady } from './brandFeedback.js';
import { solMintInfo } from './solMintInfo.js';
import { solTokenBrief } from './solTokenBrief.js';
import { summarize } from './summarize.js';
import { textToSpeech } from './textToSpeech.js';

/** Everything we sell, by operationId. */
export function createHandlers(backends: Backends) {
  return {
    summarize: summarize(backends.summarizer),
    solTokenBrief: solTokenBrief(backends.briefs),
    solMintInfo: solMintInfo(backends.chain, backends.network),
    brandFeedback: brandFeedback(backends.people, backends.book),
    textToSpeech: textToSpeech(backends.speaker),
  } satisfies Handlers;
}

/** Whom each of them asks, by the names that /health lists. */
export const BACKENDS_ASKED: Record<PaidOperationId, string> = {
  summarize: 'summarizer',
  solTokenBrief: 'markets',
  solMintInfo: 'solana',
  brandFeedback: 'people',
  textToSpeech: 'speech',
};

/** What is asked before an operation is paid up front. */
export function createReadiness(backends: Backends) {
  return { brandFeedback: brandFeedbackReady(backends.people) } satisfies Readiness;
}
