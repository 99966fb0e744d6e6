import { escapeHtml } from '../pages/escape.js';
import type { CountedOperation } from '../observe/metrics.js';
import { grid, span } from './operator-layout.js';
import type { History } from './sales-history.js';

/** The counters of this server since it started. Other servers that use the same ledger have their own. */
export type CountedHere = { since: number; operations: readonly CountedOperation[] };

const COLUMNS = [
  { title: 'Operation' },
  { title: '402s', number: true },
  { title: 'Sales', number: true },
  { title: 'Of 402s', number: true },
  { title: 'Refused' },
];
const BOOKED = [
  { title: 'Operation' },
  { title: 'Sales', number: true },
  { title: 'Your own', number: true },
  { title: 'Buyers', number: true },
  { title: 'Came back', number: true },
];

/**
 * For each operation: how many calls were answered with the price, and how many were sold.
 * @param history undefined if the ledger cannot be read, which other parts report
 */
export function operationsHtml(counted: CountedHere, history: History | undefined, now: number): string {
  return `<h3>Since this server started, ${span(now - counted.since)} ago</h3>
<p class="soft">Counted in memory: a restart begins at 0, and other servers on this ledger count their own. Calls without payment are
anonymous: yours are among the 402s, as are those of crawlers.</p>
${grid('Calls since the server started', COLUMNS, counted.operations.map(hereRow), 'Nothing is sold here.')}
${history ? `<h3>Last ${history.period.title}, from the ledger</h3>${bookedHtml(history)}` : ''}`;
}

function hereRow({ operation, unpaid, sold, own, refusals }: CountedOperation): string[] {
  const foreign = sold - own;
  const share = unpaid === 0 ? '–' : `${((100 * foreign) / unpaid).toFixed(1)} %`;
  const why = refusals.map(([reason, count]) => `${escapeHtml(reason)}: ${count}`);
  const shown = own === 0 ? String(sold) : `${foreign} + ${own} own`;
  return [name(operation), String(unpaid), shown, share, why.length === 0 ? '0' : why.join('<br>')];
}

function bookedHtml({ sales, buyers, period }: History): string {
  const operations = [...new Set(sales.map(({ operation }) => operation))].sort();
  const rows = operations.map(operation => {
    const of = sales.filter(each => each.operation === operation);
    const found = buyers.of.find(each => each.operation === operation);
    const count = (own: boolean): string =>
      String(of.reduce((sum, each) => sum + (each.own === own ? each.sales : 0), 0));
    const more = buyers.isWhole ? '' : ' or more';
    return [
      name(operation),
      count(false),
      count(true),
      `${found?.buyers ?? 0}${more}`,
      `${found?.returning ?? 0}${more}`,
    ];
  });
  const note = `<p class="soft">Buyers are wallets other than your own (OWN_WALLETS); those who came back bought in two or more UTC ${period.unit}s.</p>`;
  return `${grid('Sales and buyers by operation', BOOKED, rows, 'Nothing has been sold yet.')}${note}`;
}

function name(operation: string): string {
  return `<code>${escapeHtml(operation)}</code>`;
}
