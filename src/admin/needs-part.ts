import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HealthReport } from '../http/health.js';
import type { Undecided } from '../ledger/reader.js';
import type { Order, Payment } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import { badge, span } from './operator-layout.js';

/** What is looked through for something to do. A part of the ledger that cannot be read is the sentence that says why. */
type Looked = {
  now: number;
  health: HealthReport;
  facilitators: readonly FacilitatorState[];
  undecided: Undecided | string;
  owed: Payment[] | string;
  orders: Order[] | string;
  untold: { target: string; events: number; since: number }[] | string;
};

/** How long events may wait for a target before somebody should look. */
const WAITING_MS = 10 * 60_000;

/** What the operator should know or do now, each with its reason and a way to it. */
export function needsHtml(view: Looked): string {
  const items = [...payments(view), ...lateOrders(view), ...services(view), ...waiting(view)];
  if (items.length === 0) return '<p>Nothing needs you now.</p>';
  return `<ol class="items">${items.map(item => `<li>${item}</li>`).join('\n')}</ol>`;
}

const many = (count: number, one: string, more: string): string => `${count} ${count === 1 ? one : more}`;

function payments({ owed, undecided }: Looked): string[] {
  const unresolved = typeof undecided === 'string' ? 0 : undecided.settling.payments;
  return [
    ...(typeof owed === 'string' || owed.length === 0
      ? []
      : [
          `${badge('owed')} ${many(owed.length, 'payment has', 'payments have')} no answer: <a href="#attention">retry or refund</a>`,
        ]),
    ...(unresolved === 0
      ? []
      : [
          `${badge('settling')} ${many(unresolved, 'payment is', 'payments are')} looked for on chain: nothing to do, unless it lasts (<a href="#attention">see which</a>)`,
        ]),
  ];
}

function lateOrders({ orders, now }: Looked): string[] {
  const late = typeof orders === 'string' ? [] : orders.filter(({ deadline }) => deadline <= now);
  return late.length === 0
    ? []
    : [
        `${badge('late')} The time of ${many(late.length, 'order', 'orders')} is up: <a href="#orders">see which</a>`,
      ];
}

/** Why the shop is not well: whatever is not, with what it says itself. */
function services({ health, facilitators }: Looked): string[] {
  const backends = Object.entries(health.upstreams)
    // Its parts follow.
    .filter(([name, { status }]) => status !== 'ok' && !(name === 'facilitator' && facilitators.length > 0))
    .map(([name, { status, detail }]) => ({ name, status, detail, place: 'upstreams' }));
  const others = facilitators
    .filter(({ status }) => status !== 'ok')
    .map(({ name, status, detail }) => ({ name, status, detail, place: 'facilitators' }));
  return [...backends, ...others].map(
    ({ name, status, detail, place }) =>
      `${badge(status)} <a href="#${place}">${escapeHtml(name)}</a>${detail ? `: ${escapeHtml(detail)}` : ''}`,
  );
}

function waiting({ untold, now }: Looked): string[] {
  if (typeof untold === 'string') return [];
  return untold
    .filter(({ since }) => now - since > WAITING_MS)
    .map(
      ({ target, events, since }) =>
        `${badge('waiting')} ${many(events, 'event has', 'events have')} not reached ${escapeHtml(target)} for ${span(now - since)}: <a href="/events">see why</a>`,
    );
}
