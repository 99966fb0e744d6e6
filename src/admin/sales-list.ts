import type { SalePlace, SoldPayment } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import { after, queryOf, withoutPlace, type SalesFilter } from './sales-filter.js';
import type { Shown } from './operator-layout.js';
import { salesTable } from './sales-part.js';

export const PAGE_SIZE = 50;

/** A page of sales, and the place where the next page starts. */
export type SalesPage = { sales: readonly SoldPayment[]; next: SalePlace | undefined };

type Choices = Shown & { operations: readonly string[] };

/** The list of sales, with its filter. */
export function salesHtml(page: SalesPage, filter: SalesFilter, choices: Choices): string {
  return `<h1>Sales</h1>
<section class="card" aria-labelledby="h-filter"><h2 id="h-filter">Show</h2>
${filterForm(filter, choices.operations)}</section>
<section class="card" aria-labelledby="h-sales"><h2 id="h-sales">${filter.before ? 'Earlier sales' : 'The newest sales'}</h2>
${pageHtml(page, filter, '/sales', choices)}
<p><a href="/sales.csv${escapeHtml(queryOf(withoutPlace(filter)))}">All of these as CSV</a></p></section>`;
}

/** The table and the links to the previous and next page. `path` is the page's path. */
export function pageHtml(
  { sales, next }: SalesPage,
  filter: SalesFilter,
  path: string,
  shown: Shown,
): string {
  const whole = withoutPlace(filter);
  const isFiltered = Object.keys(whole).length > 0;
  const none = isFiltered
    ? 'No sale matches. Choose more days or remove a condition.'
    : 'Nothing has been sold yet. To buy one call with your own wallet, run “coinslot buy”.';
  const searched = `None of the sales after ${next ? new Date(next.settledAt).toISOString().slice(0, 16).replace('T', ' ') : ''} matches.`;
  const table = salesTable(sales, 'Sales', next && sales.length === 0 ? searched : none, shown);
  const links = [
    ...(filter.before
      ? [`<a class="button quiet" href="${path}${escapeHtml(queryOf(whole))}">Newest</a>`]
      : []),
    ...(next
      ? [
          `<a class="button quiet" rel="next" href="${path}${escapeHtml(queryOf(after(filter, next)))}">${sales.length === 0 ? 'Keep searching' : 'Earlier'}</a>`,
        ]
      : []),
  ];
  return links.length === 0 ? table : `${table}<p class="actions">${links.join('')}</p>`;
}

function filterForm(
  { operation, state, payer, from, to }: SalesFilter,
  operations: readonly string[],
): string {
  const names = [...new Set([...operations, ...(operation === undefined ? [] : [operation])])];
  const field = (label: string, input: string): string => `<label>${label}${input}</label>`;
  const value = (text: string | undefined): string =>
    text === undefined ? '' : ` value="${escapeHtml(text)}"`;
  return `<form class="filter" method="get" action="/sales">
${field('Operation', select('operation', names, operation))}
${field('State', select('state', ['delivered', 'owed', 'refunded'], state))}
${field('From (UTC)', `<input type="date" name="from"${value(from)}>`)}
${field('To', `<input type="date" name="to"${value(to)}>`)}
${field('Payer', `<input type="text" name="payer" maxlength="64" autocomplete="off" spellcheck="false"${value(payer)}>`)}
<p class="actions"><button>Show</button><a class="button quiet" href="/sales">All</a></p></form>`;
}

function select(name: string, options: readonly string[], chosen: string | undefined): string {
  const items = options.map(
    option => `<option${option === chosen ? ' selected' : ''}>${escapeHtml(option)}</option>`,
  );
  return `<select name="${name}"><option value="">any</option>${items.join('')}</select>`;
}
