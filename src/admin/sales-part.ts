import type { Payment, Sale } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import { toDecimal } from '../price/amount.js';
import { ago, badge, grid, OWN, payerLink, paymentLink, type Shown } from './operator-layout.js';

const COLUMNS = [
  { title: 'Payment' },
  { title: 'When' },
  { title: 'Operation' },
  { title: 'USDC', number: true },
  { title: 'Payer' },
  { title: 'State' },
];

/** A table of sales. `name` and `none` are plain text, not HTML. */
export function salesTable(sales: readonly Sale[], name: string, none: string, shown: Shown): string {
  const { now, own, inProgress } = shown;
  const rows = sales.map(row => [
    paymentLink(row.id),
    ago(row.settledAt, now),
    `<code>${escapeHtml(row.operation)}</code>`,
    toDecimal(row.amount),
    payerLink(row.payer) + (own.has(row.payer) ? OWN : ''),
    `${badge(inProgress?.has(row.id) ? 'in progress' : row.state)}${row.repaid > 0n && row.state !== 'refunded' ? ` <span class="soft">${toDecimal(row.repaid)} back</span>` : ''}`,
  ]);
  return grid(name, COLUMNS, rows, none, 'payments');
}

/** A table of payments in any state. */
export function paymentsTable(payments: readonly Payment[], name: string, shown: Shown): string {
  const rows = payments.map(row => [
    paymentLink(row.id),
    ago(row.settledAt ?? row.createdAt, shown.now),
    `<code>${escapeHtml(row.operation)}</code>`,
    toDecimal(row.amount),
    payerLink(row.payer) + (shown.own.has(row.payer) ? OWN : ''),
    badge(row.state),
  ]);
  return grid(name, COLUMNS, rows, '', 'payments');
}
