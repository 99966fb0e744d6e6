import type { Opinion } from './replies.js';

/** How pages call the opinions. */
export const OPINION_NAMES: Record<Opinion, string> = {
  positive: 'Positive',
  neutral: 'Neutral',
  negative: 'Negative',
  unknown: 'Opinion not stated',
};
