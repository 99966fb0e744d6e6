import { toDecimal } from '../price/amount.js';
import { ago, grid, payerLink, still } from './operator-layout.js';
import type { History } from './sales-history.js';

const COLUMNS = [
  { title: 'Payer' },
  { title: 'USDC', number: true },
  { title: 'Sales', number: true },
  { title: 'Days', number: true },
  { title: 'Last' },
];

/** The buyers: how many there are, how many came back, and who paid most, without the operator's own wallets. */
export function buyersHtml({ who, period, countedFrom }: History, now: number): string {
  const { payers, returning, own, best, isWhole } = who;
  const more = isWhole ? '' : ' or more';
  const unit = period.unit === 'hour' ? 'in at least two different hours' : 'on at least two different days';
  const columns = COLUMNS.map(each =>
    each.title === 'Days' && period.unit === 'hour' ? { ...each, title: 'Hours' } : each,
  );
  const rows = best.map(each => [
    payerLink(each.payer),
    toDecimal(each.amount),
    String(each.sales),
    String(each.units),
    ago(each.last, now),
  ]);
  const share = payers === 0 ? '' : ` (${Math.round((100 * returning) / payers)} %)`;
  const yours =
    own.wallets === 0
      ? ''
      : ` Your own wallets bought ${own.sales} times for ${toDecimal(own.amount)} USDC in total; they are not in this list.`;
  const sentence =
    payers === 0
      ? `<p class="soft">Nobody has bought anything in the last ${period.title}.${yours}</p>`
      : `<p><strong>${payers}${more}</strong> ${payers === 1 ? 'wallet' : 'wallets'} bought, <strong>${returning}${more}</strong>${share} of them ${unit}. The wallet that paid the most comes first.${yours}</p>`;
  const none = countedFrom === undefined ? 'Buyers are listed here, the best one first.' : 'Not counted yet.';
  return `${sentence}${still(countedFrom)}${grid('The best buyers', columns, rows, none, 'buyers')}`;
}
