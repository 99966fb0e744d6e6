import type { Backends } from '../src/backends.js';
import type { Handlers } from '../src/operation.js';
import { brandFeedback } from './brandFeedback.js';
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
    brandFeedback: brandFeedback(),
    textToSpeech: textToSpeech(backends.speaker),
  } satisfies Handlers;
}
