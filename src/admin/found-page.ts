import type { Payment } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import type { Shown } from './operator-layout.js';
import { paymentsTable } from './sales-part.js';

/**
 * The page to open instead of a list of results: that of the only payment found, or that of the payer whose address was entered. Undefined if the
 * list is to be shown.
 */
export function onlyPlace(found: readonly Payment[], text: string): string | undefined {
  const [first, ...others] = found;
  if (first && others.length === 0) return `/payments/${first.id}`;
  const isPayer =
    found.every(({ payer }) => payer === text) && found.some(({ settledAt }) => settledAt !== null);
  return isPayer ? `/payers/${encodeURIComponent(text)}` : undefined;
}

/** The payments that match a text. */
export function foundHtml(found: readonly Payment[], text: string, shown: Shown): string {
  return `<h1>Found</h1>
<section class="card" aria-labelledby="h-found"><h2 id="h-found">${found.length} payments for <span class="id">${escapeHtml(text)}</span></h2>
${paymentsTable(found, 'Payments found', shown)}</section>`;
}
