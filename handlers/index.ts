import type { Sections } from '../src/contract/operation.js';
import type { Backends } from '../src/upstreams/backends.js';
import type { Handlers, OrderSizes, PaidOperationId, Readiness } from '../src/contract/operation.js';
import { brandFeedback, brandFeedbackReady, respondentsWanted } from './brandFeedback.js';
import { solMintInfo } from './solMintInfo.js';
import { solTokenBrief } from './solTokenBrief.js';
import { summarize } from './summarize.js';
import { textToSpeech } from './textToSpeech.js';

/** All handlers by operationId. */
export function createHandlers(backends: Backends) {
  return {
    summarize: summarize(backends.summarizer),
    solTokenBrief: solTokenBrief(backends.briefs),
    solMintInfo: solMintInfo(backends.chain, backends.network),
    brandFeedback: brandFeedback(backends.people, backends.replyStore),
    textToSpeech: textToSpeech(backends.speaker),
  } satisfies Handlers;
}

/** The backends that each handler uses, by their names in /health. */
export const BACKENDS_ASKED: Record<PaidOperationId, string> = {
  summarize: 'summarizer',
  solTokenBrief: 'markets',
  solMintInfo: 'solana',
  brandFeedback: 'people',
  textToSpeech: 'speech',
};

/** Checks that run before an operation is paid up front. */
export function createReadiness(backends: Backends) {
  return { brandFeedback: brandFeedbackReady(backends.people) } satisfies Readiness;
}

/** How many replies an order requests. */
export const ORDER_SIZES: OrderSizes = { brandFeedback: respondentsWanted };

/**
 * The sections of the service: the discovery document of a section lists the operations with its tags, the health document the
 * backends with its names.
 */
export const SECTIONS: Sections = {
  discovery: {
    getSellerDiscovery: ['Text', 'Solana'],
    getBrandDiscovery: ['Humans'],
    getTtsDiscovery: ['Audio'],
  },
  health: { getBrandHealth: ['people'], getTtsHealth: ['speech'] },
};
