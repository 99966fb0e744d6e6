import type { PricedOperation } from '../contract/contract.js';
import { quotaText } from '../contract/read-quota.js';
import { escapeHtml } from '../pages/escape.js';

/** When the buyer's money moves, in a few words, and which calls cost nothing, as HTML. */
export function whenCharged({ flow, free }: Pick<PricedOperation, 'flow' | 'free'>): string {
  const when = flow === 'upfront' ? 'paid before the work' : 'charged only for an answer';
  return free ? `${when}. ${escapeHtml(quotaText(free))}` : when;
}
