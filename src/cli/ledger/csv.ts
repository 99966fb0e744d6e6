import type { Payment } from '../../ledger/store.js';
import { time } from './print.js';
import type { Cell } from './print.js';
import { pages } from './reports.js';
import { csvLine } from '../../operator/csv-line.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { toDecimal } from '../../price/amount.js';
import type { ReportSource } from '../../operator/find-payment.js';

export { csvLine } from '../../operator/csv-line.js';

const DAY_MS = 86_400_000;

type CsvColumn = readonly [string, (payment: Payment) => Cell];

const ownColumn = (own: ReadonlySet<string>): CsvColumn => [
  'own',
  ({ payer }) => (own.has(payer) ? 'yes' : 'no'),
];

const COLUMNS: readonly CsvColumn[] = [
  ['payment', payment => payment.id],
  ['booked_at', payment => time(payment.settledAt ?? payment.createdAt)],
  ['state', payment => payment.state],
  ['operation', payment => payment.operation],
  ['payer', payment => payment.payer],
  ['usdc', payment => toDecimal(payment.amount)],
  ['network', payment => payment.network],
  ['transaction', payment => payment.settlement],
  ['identifier', payment => payment.identifier],
  ['created_at', payment => time(payment.createdAt)],
  ['settled_at', payment => time(payment.settledAt)],
  ['decided_at', payment => time(payment.decidedAt)],
  ['written_at', payment => time(payment.writtenAt)],
  ['reason', payment => payment.reason],
];

/**
 * The lines of a CSV file (RFC 4180, UTF-8, with a header line) of all payments that were or may have been settled.
 * @param own the operator's own addresses: if there are any, the last column says which payments they made
 * @param range.from,range.to UTC days as YYYY-MM-DD, both included
 * @throws OperatorFault
 */
export async function* csvLines(
  reader: ReportSource,
  range: { from?: string; to?: string },
  own: ReadonlySet<string> = new Set(),
): AsyncGenerator<string> {
  const columns = own.size > 0 ? [...COLUMNS, ownColumn(own)] : COLUMNS;
  const booked = daysOf(range);
  yield csvLine(columns.map(([title]) => title));
  for await (const payment of pages(reader, { booked }))
    yield csvLine(columns.map(([, read]) => read(payment)));
}

/** A range of days, both included, in ms since 1970: from the start of `from` to the start of the day after `to`. @throws OperatorFault */
export function daysOf(range: { from?: string; to?: string }): { from?: number; to?: number } {
  const from = range.from === undefined ? undefined : startOfDay('--from', range.from);
  const to = range.to === undefined ? undefined : startOfDay('--to', range.to) + DAY_MS;
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
}

/** @throws OperatorFault */
export function startOfDay(option: string, text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : NaN;
  if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)) return ms;
  throw new OperatorFault(`${option} must be a day like 2026-01-31, not '${text}'.`);
}
