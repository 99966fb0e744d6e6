import { escapeHtml } from '../pages/escape.js';
import { toDecimal } from '../price/amount.js';
import { chartOf } from './charts.js';
import { still } from './operator-layout.js';
import { PERIODS, type Period } from './periods.js';
import type { History } from './sales-history.js';
import type { UnitSales } from './tally.js';

/** The revenue of a period: sums, and a chart by operation. `refunded`: the refunds in that period. */
export function cameInHtml(history: History, refunded: bigint): string {
  const { sales, period, first } = history;
  const from = new Date(first * period.unitMs).toISOString().slice(0, 10);
  const tiles = [
    tile(
      'Sales',
      String(count(sales)),
      ownOf(sales, own => String(count(own))),
    ),
    earned(sales, refunded),
    today(history),
  ];
  const chart = sales.length === 0 ? nothing(history) : chartOf(history);
  return `${selector(period)}
<div class="tiles">${tiles.join('')}</div>
${still(history.countedFrom)}
${chart}
<p class="soft">Times are UTC. <a href="/sales?from=${from}">Every sale since ${from}</a>, <a href="/sales.csv?from=${from}">as CSV</a>. Refunds are deducted from “Earned”, but not in the chart and its numbers.</p>`;
}

/** A refund counts in the period in which it was paid, even if the sale was earlier. */
function earned(sales: readonly UnitSales[], refunded: bigint): string {
  const net = sum(sales) - refunded;
  const note =
    refunded === 0n ? 'USDC' : `USDC: ${toDecimal(sum(sales))} less ${toDecimal(refunded)} refunded`;
  return tile(
    'Earned',
    `${net < 0n ? '-' : ''}${toDecimal(net < 0n ? -net : net)}`,
    note + ownOf(sales, own => toDecimal(sum(own))),
  );
}

/** The current hour or day. */
function today({ sales, last, period }: History): string {
  const now = sales.filter(({ unit }) => unit === last);
  return tile(
    period.unit === 'hour' ? 'This hour' : 'Today',
    toDecimal(sum(now)),
    `USDC by ${count(now)} ${count(now) === 1 ? 'sale' : 'sales'}${ownOf(now, own => toDecimal(sum(own)))}`,
  );
}

function selector(chosen: Period): string {
  const links = PERIODS.map(
    ({ name, title }) =>
      `<a href="/?period=${name}"${name === chosen.name ? ' aria-current="true"' : ''}>${title}</a>`,
  );
  return `<nav class="periods" aria-label="Period">${links.join('')}</nav>`;
}

function nothing({ countedFrom, period }: History): string {
  if (countedFrom !== undefined) return '';
  return `<p class="empty">Nothing was sold in the last ${escapeHtml(period.title)}. <code>coinslot check</code> shows whether buyers can find, reach and pay this shop; <code>coinslot buy</code> makes a purchase with a wallet of your own.</p>`;
}

function tile(name: string, value: string, note: string): string {
  return `<div class="tile"><span class="soft">${name}</span><strong>${value}</strong><span class="soft">${note.replace(/^; /, '')}</span></div>`;
}

/** The operator's own purchases among the sales, if any. */
function ownOf(sales: readonly UnitSales[], shown: (own: UnitSales[]) => string): string {
  const own = sales.filter(each => each.own);
  return own.length === 0 ? '' : `; ${shown(own)} from your own wallets`;
}

function count(sales: readonly UnitSales[]): number {
  return sales.reduce((total, each) => total + each.sales, 0);
}

function sum(sales: readonly UnitSales[]): bigint {
  return sales.reduce((total, { amount }) => total + amount, 0n);
}
