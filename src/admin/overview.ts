import type { HealthReport } from '../http/health.js';
import type { Undecided } from '../ledger/reader.js';
import type { Order, Payment, Sale } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import type { FacilitatorState } from '../facilitators/facilitators.js';
import type { HeardVerdict } from '../facilitators/listing-verdicts.js';
import { barChart } from './charts.js';
import { needsHtml } from './needs-part.js';
import { operationsHtml, type CountedHere } from './operations-part.js';
import { ago, badge, grid, paymentLink, short, span } from './operator-layout.js';
import type { DaySales, History } from './sales-history.js';
import { toDecimal } from '../price/amount.js';

/** What the overview shows. A part of the ledger that cannot be read is the sentence that says why. */
export type Overview = {
  now: number;
  network: string;
  payTo: string;
  publicUrl: string;
  health: HealthReport;
  facilitators: readonly FacilitatorState[];
  /** What the directories of facilitators make of the operations. */
  directories: HeardVerdict[] | string;
  breakers: readonly { name: string; open: boolean }[];
  counted: CountedHere;
  /** The operator's own addresses. */
  ownWallets: ReadonlySet<string>;
  history: History | string;
  newest: Sale[] | string;
  undecided: Undecided | string;
  unresolved: Payment[] | string;
  /** Without those whose orders are in progress: these have a list of their own. */
  owed: Payment[] | string;
  /** How many orders are in progress. */
  inProgress: number;
  orders: Order[] | string;
  /** What targets were not told yet. */
  untold: { target: string; events: number; since: number }[] | string;
};

const MAX_ORDERS = 50;
const MAX_VERDICTS = 200;

/** The parts of the page that are replaced when something changes. */
export function overviewHtml(view: Overview): string {
  return [
    headline(view),
    section('needs', 'Does anything need you?', needsHtml(view)),
    section('today', 'Today', today(view)),
    section('orders', 'Orders in progress', orders(view)),
    section('month', 'Last 30 days', charts(view)),
    section('operations', 'From the price to the sale', operations(view)),
    section('attention', 'Needs attention', attention(view)),
    section('sales', 'Newest sales', sales(view)),
    section('facilitators', 'Facilitators', facilitators(view)),
    section('directories', 'Directories', directories(view)),
    section('upstreams', 'Backends', upstreams(view)),
  ].join('\n');
}

function section(id: string, title: string, body: string): string {
  return `<section class="card" id="${id}" data-part aria-labelledby="h-${id}"><h2 id="h-${id}">${title}</h2>
${body}</section>`;
}

function headline({ health, network, payTo, publicUrl }: Overview): string {
  return `<div id="headline" class="headline" data-part><h1>Overview</h1>
<p>${badge(health.status)} <span class="badge plain">${escapeHtml(network)}</span> version ${escapeHtml(health.version)}, up ${span(
    health.uptimeSeconds * 1_000,
  )}. Sells at <a href="${escapeHtml(publicUrl)}/">${escapeHtml(publicUrl)}</a>, paid to ${short(payTo)}.</p></div>`;
}

function unreadable(why: string): string {
  return `<p class="fault">${escapeHtml(why)}</p>`;
}

/** Text of a part of the ledger, or why it cannot be read. */
function read<T>(value: T | string, shown: (value: T) => string): string {
  return typeof value === 'string' ? unreadable(value) : shown(value);
}

function today({ history, undecided }: Overview): string {
  return read(history, ({ sales, today: day, complete }) => {
    const of = sales.filter(sale => sale.day === day);
    const tiles = [
      tile('Sales', String(count(of)), `today, UTC${ownOf(of, own => String(count(own)))}`),
      tile('Earned', toDecimal(sum(of)), `USDC, before refunds${ownOf(of, own => toDecimal(sum(own)))}`),
      ...(typeof undecided === 'string'
        ? []
        : [
            tile('Owed', String(undecided.owed.payments), `${toDecimal(undecided.owed.amount)} USDC`),
            tile(
              'Unresolved',
              String(undecided.settling.payments),
              `${toDecimal(undecided.settling.amount)} USDC`,
            ),
          ]),
    ];
    const rows = of
      .toSorted((a, b) => (a.amount < b.amount ? 1 : -1))
      .map(each => [
        `<code>${escapeHtml(each.operation)}</code>${each.own ? OWN : ''}`,
        String(each.sales),
        toDecimal(each.amount),
      ]);
    const columns = [
      { title: 'Operation' },
      { title: 'Sales', number: true },
      { title: 'USDC', number: true },
    ];
    return `<div class="tiles">${tiles.join('')}</div>${still(complete)}${grid('Sales of today by operation', columns, rows, 'Nothing was sold today yet.')}`;
  });
}

const OWN = ' <span class="badge plain">your own</span>';

/** How much of it the operator bought, if anything. */
function ownOf(sales: readonly DaySales[], shown: (own: DaySales[]) => string): string {
  const own = sales.filter(each => each.own);
  return own.length === 0 ? '' : `; ${shown(own)} of it your own`;
}

function operations({ counted, history, now }: Overview): string {
  return operationsHtml(counted, typeof history === 'string' ? undefined : history, now);
}

function still(complete: boolean): string {
  return complete ? '' : '<p class="soft" role="status">Earlier sales are still being counted.</p>';
}

function tile(name: string, value: string, note: string): string {
  return `<div class="tile"><span class="soft">${name}</span><strong>${value}</strong><span class="soft">${note}</span></div>`;
}

function charts({ history }: Overview): string {
  return read(history, ({ sales, today: day, days, complete }) => {
    const byDay = Array.from({ length: days }, (_, index) => {
      const each = day - days + 1 + index;
      return { label: dayName(each), sales: sales.filter(sale => sale.day === each) };
    });
    const counts = byDay.map(({ label, sales: of }) => ({
      label,
      value: count(of),
      shown: String(count(of)),
    }));
    const sums = byDay.map(({ label, sales: of }) => ({
      label,
      value: Number(sum(of)),
      shown: toDecimal(sum(of)),
    }));
    return `<div class="charts">${barChart('Sales', 'Sales', counts, String(count(sales)))}${barChart(
      'USDC',
      'USDC',
      sums,
      toDecimal(sum(sales)),
    )}</div>${still(complete)}`;
  });
}

function dayName(day: number): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}

function count(sales: readonly DaySales[]): number {
  return sales.reduce((total, each) => total + each.sales, 0);
}

function sum(sales: readonly DaySales[]): bigint {
  return sales.reduce((total, { amount }) => total + amount, 0n);
}

function attention(view: Overview): string {
  return `<h3>Owed: paid, not yet answered</h3>
${read(view.owed, rows => owed(view, rows))}
<h3>Unresolved: it is not known yet whether the money moved</h3>
${read(view.unresolved, rows => waiting(view, rows, 'settling', 'Nothing is unresolved.'))}`;
}

function owed(view: Overview, rows: Payment[]): string {
  const none = view.inProgress > 0 ? 'Nothing is owed but orders in progress.' : 'Nothing is owed.';
  return waiting(view, rows, 'owed', none, view.inProgress);
}

/** @param elsewhere how many more are listed in another place */
function waiting(
  { now, undecided }: Overview,
  rows: Payment[],
  state: 'owed' | 'settling',
  none: string,
  elsewhere = 0,
): string {
  const columns = [
    { title: 'Payment' },
    { title: 'Since' },
    { title: 'Operation' },
    { title: 'USDC', number: true },
    { title: 'Payer' },
  ];
  const table = grid(
    state === 'owed' ? 'Owed payments' : 'Unresolved payments',
    columns,
    rows.map(row => [
      paymentLink(row.id),
      ago(row.settledAt ?? row.settlingAt ?? row.createdAt, now),
      `<code>${escapeHtml(row.operation)}</code>`,
      toDecimal(row.amount),
      short(row.payer),
    ]),
    none,
    'payments',
  );
  const all = typeof undecided === 'string' ? rows.length : undecided[state].payments - elsewhere;
  return rows.length > 0 && all > rows.length
    ? `${table}<p class="soft">The oldest ${rows.length} of ${all}. <code>npm run ledger -- ${state === 'owed' ? 'owed' : 'list --state settling'}</code> lists more.</p>`
    : table;
}

function sales({ newest, now, ownWallets }: Overview): string {
  const columns = [
    { title: 'Payment' },
    { title: 'When' },
    { title: 'Operation' },
    { title: 'USDC', number: true },
    { title: 'Payer' },
    { title: 'State' },
  ];
  return read(newest, rows =>
    grid(
      'Newest sales',
      columns,
      rows.map(row => [
        paymentLink(row.id),
        ago(row.settledAt, now),
        `<code>${escapeHtml(row.operation)}</code>`,
        toDecimal(row.amount),
        short(row.payer) + (ownWallets.has(row.payer) ? OWN : ''),
        badge(row.state),
      ]),
      'Nothing has been sold yet.',
      'payments',
    ),
  );
}

function orders({ orders: open, now }: Overview): string {
  const columns = [
    { title: 'Payment' },
    { title: 'Done', number: true },
    { title: 'Attempt', number: true },
    { title: 'Ends', number: true },
  ];
  return read(open, rows => {
    const shown = rows.slice(0, MAX_ORDERS);
    const table = grid(
      'Orders in progress',
      columns,
      shown.map(row => [
        paymentLink(row.payment),
        `${row.done} of ${row.wanted}`,
        String(row.attempts),
        row.deadline > now ? `in ${span(row.deadline - now)}` : 'now',
      ]),
      'No order is in progress.',
    );
    return rows.length > shown.length
      ? `${table}<p class="soft">The oldest ${shown.length} of ${rows.length}.</p>`
      : table;
  });
}

function facilitators({ facilitators: all }: Overview): string {
  const columns = [
    { title: 'Facilitator' },
    { title: 'State' },
    { title: 'Breaker' },
    { title: 'Latency', number: true },
    { title: 'Detail' },
  ];
  return grid(
    'Facilitators',
    columns,
    all.map(({ name, status, restSeconds, latencyMs, detail }) => [
      `<span class="id">${escapeHtml(name)}</span>`,
      badge(status),
      restSeconds === undefined ? 'closed' : `open, next try in ${restSeconds} s`,
      latencyMs === undefined ? '–' : `${latencyMs} ms`,
      escapeHtml(detail),
    ]),
    'No facilitator is configured.',
  );
}

function directories({ directories: heard, now }: Overview): string {
  const columns = [
    { title: 'Operation' },
    { title: 'Called over' },
    { title: 'Facilitator' },
    { title: 'Listed' },
    { title: 'Since' },
    { title: 'Detail' },
  ];
  return read(heard, rows =>
    grid(
      'What the directories of facilitators make of the operations',
      columns,
      rows
        .slice(0, MAX_VERDICTS)
        .map(row => [
          `<code>${escapeHtml(row.operation)}</code>`,
          row.transport === 'mcp' ? 'MCP' : 'HTTP',
          `<span class="id">${escapeHtml(row.facilitator)}</span>`,
          badge(row.status),
          ago(row.at, now),
          escapeHtml(row.why ?? ''),
        ]),
      'No directory has said anything yet: an operation is listed when it is first sold through a facilitator that has one.',
    ),
  );
}

function upstreams({ health, breakers }: Overview): string {
  const columns = [
    { title: 'Backend' },
    { title: 'State' },
    { title: 'Breaker' },
    { title: 'Latency', number: true },
    { title: 'Detail' },
  ];
  const breakerOf = (name: string): string => {
    const breaker = breakers.find(each => each.name === name);
    return breaker ? (breaker.open ? 'open' : 'closed') : '–';
  };
  return grid(
    'Backends',
    columns,
    Object.entries(health.upstreams).map(([name, { status, latencyMs, detail }]) => [
      escapeHtml(name),
      badge(status),
      breakerOf(name),
      latencyMs === undefined ? '–' : `${latencyMs} ms`,
      escapeHtml(detail ?? ''),
    ]),
    'This shop needs no backend.',
  );
}
