import { escapeHtml } from '../pages/escape.js';
import { at, list } from './operator-layout.js';
import { isRejected, type PaymentFacts } from './payment-facts.js';

/** The order of a payment: its progress, deadline and next step; empty if there is none. */
export function orderHtml({ order, pausedUntil }: PaymentFacts): string {
  if (!order) return '';
  const { wanted, done, attempts, createdAt, deadline, finishedAt, nextAttemptAt, failure } = order;
  const next = pausedUntil ?? (finishedAt === null ? undefined : nextAttemptAt);
  const rows: [string, string][] = [
    ...(wanted > 0 ? ([['Done', `${done} of ${wanted}`]] as [string, string][]) : []),
    ['Attempt', `${attempts}, ${finishedAt === null ? 'in progress' : 'ended'}`],
    ['Opened', at(createdAt)],
    ['Due', at(deadline)],
    ...(next === undefined || isRejected({ order })
      ? []
      : ([['Next attempt', next === null ? 'only when you retry' : `not before ${at(next)}`]] as [
          string,
          string,
        ][])),
    ...(failure ? ([['Why the last one failed', escapeHtml(failure)]] as [string, string][]) : []),
  ];
  return `<section class="card" aria-labelledby="h-order"><h2 id="h-order">Order</h2>
${list(rows)}</section>`;
}
