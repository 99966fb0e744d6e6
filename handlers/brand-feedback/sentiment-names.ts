import type { Sentiment } from './replies.js';

/** How pages call the sentiments. */
export const SENTIMENT_NAMES: Record<Sentiment, string> = {
  positive: 'Positive',
  neutral: 'Neutral',
  negative: 'Negative',
};
