import type { HandlersOf } from 'coinslot';
import type { operations } from '../generated/openapi.js';
import { brandFeedback } from './brand-feedback/brand-feedback.js';
import { solMintInfo } from './sol-mint-info/sol-mint-info.js';
import { solTokenBrief } from './sol-token-brief/sol-token-brief.js';
import { summarize } from './summarize/summarize.js';
import { listVoices } from './text-to-speech/list-voices.js';
import { textToSpeech } from './text-to-speech/text-to-speech.js';

/** What this shop sells, by operationId. */
export const handlers = {
  summarize,
  solTokenBrief,
  solMintInfo,
  brandFeedback,
  textToSpeech,
  listVoices,
} satisfies HandlersOf<operations>;
