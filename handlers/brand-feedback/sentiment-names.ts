import type { Opinion } from './replies.js';

/** The names of the opinions on pages. */
export const OPINION_NAMES: Record<Opinion, string> = {
  positive: 'Positive',
  neutral: 'Neutral',
  negative: 'Negative',
  unknown: 'Opinion not stated',
};
