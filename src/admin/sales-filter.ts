import type { SalePlace, SalesWanted } from '../ledger/store.js';
import { PageFault } from '../pages/form.js';
import { DAY_MS } from './periods.js';

const STATES = ['delivered', 'owed', 'refunded'] as const;
export type SoldState = (typeof STATES)[number];

/** The query of the sales page, as its form sends it. Days are UTC, both included; `before` is where an earlier page ended. */
export type SalesFilter = {
  operation?: string;
  state?: SoldState;
  payer?: string;
  from?: string;
  to?: string;
  before?: string;
};

const LONGEST_TEXT = 200;

/** Empty fields do not filter. @throws PageFault 400 for an invalid day or an invalid `before` */
export function readFilter(query: Record<string, unknown>): SalesFilter {
  const text = (name: keyof SalesFilter): string | undefined => {
    const value = query[name];
    return typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, LONGEST_TEXT) : undefined;
  };
  const state = STATES.find(each => each === text('state'));
  const [operation, payer, from, to, before] = (['operation', 'payer', 'from', 'to', 'before'] as const).map(
    text,
  );
  for (const day of [from, to]) if (day !== undefined) startOf(day);
  if (before !== undefined) placeOf(before);
  return {
    ...(operation === undefined ? {} : { operation }),
    ...(state === undefined ? {} : { state }),
    ...(payer === undefined ? {} : { payer }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(before === undefined ? {} : { before }),
  };
}

/** The filter as a query to the ledger. */
export function wantedOf({ from, to, before, ...others }: SalesFilter): SalesWanted {
  return {
    ...others,
    ...(from === undefined ? {} : { from: startOf(from) }),
    ...(to === undefined ? {} : { to: startOf(to) + DAY_MS }),
    ...(before === undefined ? {} : { before: placeOf(before) }),
  };
}

/** A filter as the query string of a link. */
export function queryOf(filter: SalesFilter): string {
  const query = new URLSearchParams(filter as Record<string, string>).toString();
  return query === '' ? '' : `?${query}`;
}

/** The filter for the first page. */
export function withoutPlace(filter: SalesFilter): SalesFilter {
  const first = { ...filter };
  delete first.before;
  return first;
}

/** The filter that continues where a page ended. */
export function after(filter: SalesFilter, { settledAt, id }: SalePlace): SalesFilter {
  return { ...filter, before: `${settledAt}-${id}` };
}

function startOf(day: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : NaN;
  if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day)) return ms;
  throw new PageFault(400, 'A day must look like 2026-01-31.');
}

function placeOf(text: string): SalePlace {
  const [, time = '', id = ''] = /^(\d{1,15})-([0-9a-f]{64})$/.exec(text) ?? [];
  if (id === '') throw new PageFault(400, 'This link is incomplete. Open the list of sales again.');
  return { settledAt: Number(time), id };
}
