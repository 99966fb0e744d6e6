import type { HealthReport } from '../http/health.js';
import type { Undecided } from '../ledger/reader.js';
import type { Order, Payment, Repayment, Sale } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import { attentionHtml } from './attention-part.js';
import { buyersHtml } from './buyers-part.js';
import { canaryHtml } from './canary-part.js';
import type { CanaryRun } from '../operator/canary-runs.js';
import { cameInHtml } from './came-in-part.js';
import { backendsHtml, directoriesHtml, facilitatorsHtml } from './health-part.js';
import { needsHtml } from './needs-part.js';
import type { Owed } from './owed-payments.js';
import { operationsHtml, type CountedHere } from './operations-part.js';
import { ago, badge, grid, paymentLink, read, short, span } from './operator-layout.js';
import { salesTable } from './sales-part.js';
import type { History } from './sales-history.js';

/** The data of the overview. If a part of the ledger cannot be read, a sentence that says why takes its place. */
export type Overview = {
  now: number;
  network: string;
  payTo: string;
  publicUrl: string;
  health: HealthReport;
  facilitators: readonly FacilitatorState[];
  /** What the facilitators' directories last answered about each operation. */
  directories: HeardVerdict[] | string;
  breakers: readonly { name: string; open: boolean }[];
  counted: CountedHere;
  /** The operator's own addresses. */
  ownWallets: ReadonlySet<string>;
  history: History | string;
  /** Refunds within the period of the history, in atomic units. */
  refunded: bigint | string;
  newest: Sale[] | string;
  undecided: Undecided | string;
  unresolved: Payment[] | string;
  /** The owed payments, except those whose orders are in progress, which have their own list. */
  owed: Owed[] | string;
  /** Ids of the payments whose orders are in progress. */
  inProgress: ReadonlySet<string>;
  /** Requested refunds that have not landed, oldest first. */
  repayments: Repayment[] | string;
  orders: Order[] | string;
  /** Events not yet sent to their targets. */
  untold: { target: string; events: number; since: number }[] | string;
  /** The canary's purchases, newest first. */
  canary: CanaryRun[] | string;
};

const MAX_ORDERS = 50;

/**
 * The parts of the page, ordered by what an operator wants to know first. Each part is replaced in the browser when its data changes, and
 * reports the data that it can't read.
 */
export function overviewHtml(view: Overview): string {
  const { now, history, counted } = view;
  const booked = typeof history === 'string' ? undefined : history;
  return [
    headline(view),
    part('needs', 'Does anything need your attention?', `${needsHtml(view)}${attentionHtml(view)}`),
    part(
      'came-in',
      'What came in?',
      read(history, found => read(view.refunded, refunded => cameInHtml(found, refunded))),
    ),
    part(
      'buyers',
      'Who buys?',
      read(history, found => buyersHtml(found, now)),
    ),
    part('orders', 'Orders in progress', orders(view)),
    part('sales', 'Newest sales', sales(view)),
    part('healthy', 'Is it healthy?', healthy(view)),
    part('operations', 'From price to sale', operationsHtml(counted, booked, now)),
  ].join('\n');
}

function part(id: string, title: string, body: string): string {
  return `<section class="card" id="${id}" data-part aria-labelledby="h-${id}"><h2 id="h-${id}">${title}</h2>
${body}</section>`;
}

function headline({ health, network, payTo, publicUrl }: Overview): string {
  const why = health.status === 'ok' ? '' : ' (<a href="#needs">why</a>)';
  return `<div id="headline" class="headline" data-part><h1>Overview</h1>
<p>${badge(health.status)}${why} <span class="badge plain">${escapeHtml(network)}</span> version ${escapeHtml(health.version)}, up ${span(
    health.uptimeSeconds * 1_000,
  )}. Sells at <a href="${escapeHtml(publicUrl)}/">${escapeHtml(publicUrl)}</a>, paid to ${short(payTo)}.</p></div>`;
}

function healthy(view: Overview): string {
  const { facilitators, health, breakers, directories, canary, ownWallets, now } = view;
  return `<h3 id="facilitators">Facilitators: they settle payments</h3>
${facilitatorsHtml(facilitators)}
<h3 id="upstreams">Backends, ledger and chain</h3>
${backendsHtml(health, breakers)}
<h3 id="directories">Directories: where buyers find you</h3>
${read(directories, heard => directoriesHtml(heard, now))}
<h3 id="canary">Canary: test purchases</h3>
${read(canary, runs => canaryHtml(runs, now, ownWallets))}`;
}

function sales({ newest, now, ownWallets, inProgress }: Overview): string {
  const none =
    'Nothing has been sold yet. To buy one call with your own wallet, run “coinslot buy”; “coinslot list” shows how buyers find the shop.';
  return read(newest, rows => {
    const table = salesTable(rows, 'Newest sales', none, { now, own: ownWallets, inProgress });
    return rows.length === 0 ? table : `${table}<p><a href="/sales">All sales</a></p>`;
  });
}

function orders({ orders: open, now }: Overview): string {
  const columns = [
    { title: 'Payment' },
    { title: 'Since' },
    { title: 'Done', number: true },
    { title: 'Ends', number: true },
  ];
  return read(open, rows => {
    const shown = rows.slice(0, MAX_ORDERS);
    const table = grid(
      'Orders in progress',
      columns,
      shown.map(row => [
        paymentLink(row.payment),
        ago(row.createdAt, now),
        row.wanted > 0 ? `${row.done} of ${row.wanted}` : '–',
        row.deadline > now ? `in ${span(row.deadline - now)}` : 'now',
      ]),
      'No order is in progress. Orders of operations that are paid up front appear here while they are being worked on.',
    );
    return rows.length > shown.length
      ? `${table}<p class="soft">The oldest ${shown.length} of ${rows.length}.</p>`
      : table;
  });
}
