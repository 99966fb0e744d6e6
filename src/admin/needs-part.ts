import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import type { HealthReport } from '../http/health.js';
import type { CanaryRun } from '../operator/canary-runs.js';
import type { Undecided } from '../ledger/reader.js';
import type { Order, Repayment } from '../ledger/store.js';
import { toDecimal } from '../price/amount.js';
import type { Owed } from './owed-payments.js';
import { isInTime } from './payment-facts.js';
import { waysOut } from './attention-part.js';
import { escapeHtml } from '../pages/escape.js';
import { badge, span } from './operator-layout.js';

/** The data in which the checks below look for problems. If a part of the ledger cannot be read, a sentence that says why takes its place. */
type Looked = {
  now: number;
  health: HealthReport;
  facilitators: readonly FacilitatorState[];
  undecided: Undecided | string;
  owed: Owed[] | string;
  repayments: Repayment[] | string;
  orders: Order[] | string;
  untold: { target: string; events: number; since: number }[] | string;
  directories: HeardVerdict[] | string;
  canary: CanaryRun[] | string;
};

/** Something that the operator should know or do. `state` is the text of its badge; `what` and `todo` are HTML. */
type Need = { state: string; what: string; todo: string };

/** How long events may wait for a target before the operator should check it. */
const WAITING_MS = 10 * 60_000;
const MAX_REFUNDS = 5;

/** The checks, most urgent first. */
const SOURCES: readonly ((view: Looked) => Need[])[] = [
  owedPayments,
  unpaidRefunds,
  lateOrders,
  services,
  canaryFailed,
  waiting,
  unlisted,
  unresolved,
];

/** What the operator should know or do now, with reasons. */
export function needsHtml(view: Looked): string {
  const needs = SOURCES.flatMap(source => source(view));
  if (needs.length === 0)
    return `<p>${badge('ok')} Nothing needs your attention. Problems appear here with what to do; with WEBHOOK_URLS set, you also get them as messages.</p>`;
  return `<ol class="needs">${needs
    .map(
      ({ state, what, todo }) =>
        `<li>${badge(state)} <div><strong>${what}</strong> <span>${todo}</span></div></li>`,
    )
    .join('\n')}</ol>`;
}

const many = (count: number, one: string, more: string): string => `${count} ${count === 1 ? one : more}`;

function owedPayments({ owed }: Looked): Need[] {
  if (typeof owed === 'string' || owed.length === 0) return [];
  const what = `${many(owed.length, 'payment has', 'payments have')} no answer.`;
  const [first] = owed;
  const todo = first && owed.length === 1 ? waysOut(first) : '<a href="#attention">Retry or refund each</a>.';
  return [{ state: 'owed', what, todo: `The money has moved: ${todo}` }];
}

/** Refunds whose link nobody has paid yet. */
function unpaidRefunds({ repayments, now }: Looked): Need[] {
  const unpaid = typeof repayments === 'string' ? [] : repayments.filter(({ state }) => state === 'asked');
  return unpaid.slice(0, MAX_REFUNDS).map(({ payment, amount, createdAt }) => ({
    state: 'waiting',
    what: `A refund of ${toDecimal(amount)} USDC was prepared ${span(now - createdAt)} ago and has not been paid.`,
    todo: `<a href="/payments/${payment}/refund">Show its QR code</a>, or cancel it there.`,
  }));
}

function unresolved({ undecided }: Looked): Need[] {
  const { payments = 0, since } = typeof undecided === 'string' ? {} : undecided.settling;
  if (payments === 0) return [];
  const what = `${many(payments, 'payment is', 'payments are')} being looked for on chain.`;
  const todo =
    'Nothing to do: the server reads the outcome from the chain. If one stays unresolved for an hour, check the RPC servers';
  return [
    {
      state: 'settling',
      what,
      todo: `${todo}${since === undefined ? '' : ' (<a href="#attention">which</a>)'}.`,
    },
  ];
}

function lateOrders({ orders, now }: Looked): Need[] {
  const late = typeof orders === 'string' ? [] : orders.filter(order => !isInTime(order, now));
  if (late.length === 0) return [];
  const what = `${many(late.length, 'order is', 'orders are')} past the deadline.`;
  return [
    {
      state: 'late',
      what,
      todo: '<a href="#orders">See which</a>: finish with the parts that are done, retry or refund.',
    },
  ];
}

/** Everything in the shop that is not healthy, with its own message. */
function services({ health, facilitators }: Looked): Need[] {
  const backends = Object.entries(health.upstreams)
    // The facilitators as a whole are skipped, because each of them is listed below.
    .filter(([name, { status }]) => status !== 'ok' && !(name === 'facilitator' && facilitators.length > 0))
    .map(([name, { status, detail }]) =>
      serviceNeed(
        name,
        status,
        detail,
        'Calls that need this backend fail and are not charged. <a href="#upstreams">Its state</a>',
      ),
    );
  const settling = facilitators.filter(({ status }) => status !== 'down').length;
  const consequence =
    settling > 0
      ? `Meanwhile, payments are settled by ${many(settling, 'other facilitator', 'other facilitators')}`
      : 'Nothing can be sold until a facilitator answers';
  const others = facilitators
    .filter(({ status }) => status !== 'ok')
    .map(({ name, status, detail }) =>
      serviceNeed(
        name,
        status,
        detail,
        `${status === 'down' ? `${consequence}. ` : ''}<a href="#facilitators">Its state</a>`,
      ),
    );
  return [...backends, ...others];
}

function serviceNeed(name: string, state: string, detail: string | undefined, todo: string): Need {
  return { state, what: `${escapeHtml(name)}${detail ? `: ${escapeHtml(detail)}` : ''}.`, todo };
}

/** Only the last run counts, because earlier failures no longer matter. */
function canaryFailed({ canary, now }: Looked): Need[] {
  const [newest] = typeof canary === 'string' ? [] : canary;
  if (newest?.fault === undefined) return [];
  const what = `The last purchase by the canary failed, ${span(now - newest.at)} ago.`;
  const todo = `Buyers may see the same: ${escapeHtml(newest.fault)} <a href="#canary">Its purchases</a>`;
  return [{ state: 'failed', what, todo }];
}

function waiting({ untold, now }: Looked): Need[] {
  if (typeof untold === 'string') return [];
  return untold
    .filter(({ since }) => now - since > WAITING_MS)
    .map(({ target, events, since }) => ({
      state: 'waiting',
      what: `${many(events, 'event has', 'events have')} not reached ${escapeHtml(target)} for ${span(now - since)}.`,
      todo: 'They are retried for three days: <a href="/events">see why</a>.',
    }));
}

/** Operations that a facilitator's directory rejected: buyers can't find them there. */
function unlisted({ directories }: Looked): Need[] {
  if (typeof directories === 'string') return [];
  return directories
    .filter(({ status }) => status === 'rejected')
    .map(({ operation, facilitator, why }) => ({
      state: 'unlisted',
      what: `${escapeHtml(facilitator)} does not list ${escapeHtml(operation)}${why ? `: ${escapeHtml(why)}` : ''}.`,
      todo: 'Buyers who search there do not find it. <a href="#directories">What directories say</a>',
    }));
}
