import type { Undecided } from '../ledger/reader.js';
import type { Payment } from '../ledger/store.js';
import type { Owed } from './owed-payments.js';
import { escapeHtml } from '../pages/escape.js';
import { toDecimal } from '../price/amount.js';
import { ago, grid, payerLink, paymentLink, read } from './operator-layout.js';

const COLUMNS = [
  { title: 'Payment' },
  { title: 'Since' },
  { title: 'Operation' },
  { title: 'USDC', number: true },
  { title: 'Payer' },
  { title: 'What you can do' },
];

/** If a part of the ledger cannot be read, a sentence that says why takes its place. `inProgress`: owed payments whose orders are in progress. */
type Waiting = {
  now: number;
  undecided: Undecided | string;
  owed: Owed[] | string;
  unresolved: Payment[] | string;
  inProgress: ReadonlySet<string>;
};

/** The owed and the unresolved payments, except owed ones whose orders are in progress. */
export function attentionHtml(view: Waiting): string {
  const owed = read(view.owed, rows =>
    titled('Owed: paid, not yet answered', waiting(view, rows, 'owed', view.inProgress.size)),
  );
  const unresolved = read(view.unresolved, rows =>
    titled(
      'Unresolved: it is not yet known whether the money moved',
      waiting(
        view,
        rows.map(payment => ({ payment })),
        'settling',
      ),
    ),
  );
  return `<div id="attention">${owed}${unresolved}</div>`;
}

/** Links to the pages that confirm another attempt or a refund, and the reason why the last attempt failed. */
export function waysOut({ payment: { id }, mayRetry, failure }: Owed): string {
  const refund = `<a href="/payments/${id}/refund">${mayRetry ? 'refund' : 'Refund'}</a>`;
  const ways = mayRetry ? `<a href="/payments/${id}/retry">Retry</a> or ${refund}` : refund;
  return failure ? `${ways}. <span class="soft">${escapeHtml(failure)}</span>` : ways;
}

function titled(title: string, table: string): string {
  return table && `<h3>${title}</h3>\n${table}`;
}

/** @param elsewhere how many more of these payments another part of the page lists */
function waiting(
  { now, undecided }: Waiting,
  rows: readonly (Owed | { payment: Payment })[],
  state: 'owed' | 'settling',
  elsewhere = 0,
): string {
  if (rows.length === 0) return '';
  const table = grid(
    state === 'owed' ? 'Owed payments' : 'Unresolved payments',
    COLUMNS,
    rows.map(row => [
      paymentLink(row.payment.id),
      ago(row.payment.settledAt ?? row.payment.settlingAt ?? row.payment.createdAt, now),
      `<code>${escapeHtml(row.payment.operation)}</code>`,
      toDecimal(row.payment.amount),
      payerLink(row.payment.payer),
      'mayRetry' in row ? waysOut(row) : 'wait',
    ]),
    '',
    'payments',
  );
  const all = typeof undecided === 'string' ? rows.length : undecided[state].payments - elsewhere;
  return all > rows.length
    ? `${table}<p class="soft">The oldest ${rows.length} of ${all}. <code>npm run ledger -- ${state === 'owed' ? 'owed' : 'list --state settling'}</code> lists more.</p>`
    : table;
}
