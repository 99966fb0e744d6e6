import type { Ledger } from '../ledger/store.js';
import { toDecimal } from '../price/amount.js';
import { at, linked, list, OWN, short, type Shown } from './operator-layout.js';
import { pageHtml, type SalesPage } from './sales-list.js';

type Totals = Awaited<ReturnType<Ledger['payerTotals']>>;

/** The purchases of one wallet. */
export function payerHtml(payer: string, totals: Totals, page: SalesPage, shown: Shown): string {
  const path = `/payers/${encodeURIComponent(payer)}`;
  return `<h1>Payer ${short(payer)}${shown.own.has(payer) ? OWN : ''}</h1>
<section class="card" aria-labelledby="h-payer"><h2 id="h-payer">In total</h2>
${list(factsOf(payer, totals, shown))}</section>
<section class="card" aria-labelledby="h-sales"><h2 id="h-sales">What it bought</h2>
${pageHtml(page, page.sales.length === 0 ? { payer } : {}, path, shown)}
<p><a href="/sales?payer=${encodeURIComponent(payer)}">Filter its sales</a>, <a href="/sales.csv?payer=${encodeURIComponent(payer)}">as CSV</a></p></section>`;
}

const DAY_MS = 86_400_000;

function cameBack(first: number, last: number): string {
  return Math.floor(first / DAY_MS) < Math.floor(last / DAY_MS)
    ? 'yes, on another day'
    : 'not yet: all on one day';
}

function factsOf(
  payer: string,
  { sales, amount, repaid, first, last, isWhole }: Totals,
  { explorer }: Shown,
): [string, string][] {
  const more = isWhole ? '' : ' (the newest of more)';
  return [
    ['Address', linked(payer, explorer?.address)],
    ['Sales', `${sales}${more}`],
    ['Paid', `${toDecimal(amount)} USDC`],
    ...(repaid > 0n ? ([['Paid back to it', `${toDecimal(repaid)} USDC`]] as [string, string][]) : []),
    ...(first === undefined || last === undefined
      ? []
      : ([
          [isWhole ? 'First sale' : 'First of these', at(first)],
          ['Last sale', at(last)],
          ...(isWhole ? ([['Came back', cameBack(first, last)]] as [string, string][]) : []),
        ] as [string, string][])),
  ];
}
