import type { operations } from '../generated/openapi.js';
import type { HandlersOf } from '../src/contract/operation.js';
import type { Backends } from '../src/upstreams/backends.js';
import { brandFeedback, brandFeedbackReady, respondentsWanted } from './brandFeedback.js';
import { solMintInfo } from './solMintInfo.js';
import { solTokenBrief } from './solTokenBrief.js';
import { summarize } from './summarize.js';
import { textToSpeech } from './textToSpeech.js';

/** The handlers of this shop by operationId, each with the name of its backend in /health. */
export const handlers = {
  summarize: ({ summarizer }) => ({ call: summarize(summarizer), backend: 'summarizer' }),
  solTokenBrief: ({ briefs }) => ({ call: solTokenBrief(briefs), backend: 'markets' }),
  solMintInfo: ({ chain, network }) => ({ call: solMintInfo(chain, network), backend: 'solana' }),
  brandFeedback: ({ people, replyStore, partial }) => ({
    call: brandFeedback(people, replyStore, partial),
    ready: brandFeedbackReady(people),
    replies: ({ body }) => respondentsWanted(body),
    backend: 'people',
  }),
  textToSpeech: ({ speaker }) => ({ call: textToSpeech(speaker), backend: 'speech' }),
  listVoices: ({ speaker }) => ({ call: () => speaker.voices() }),
} satisfies HandlersOf<operations, Backends>;
