import type { Undecided } from '../ledger/reader.js';
import type { Payment } from '../ledger/store.js';
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

/** A part of the ledger that cannot be read is the sentence that says why. `inProgress`: owed payments whose orders are worked on. */
type Waiting = {
  now: number;
  undecided: Undecided | string;
  owed: Payment[] | string;
  unresolved: Payment[] | string;
  inProgress: number;
};

/** The payments that are owed or unresolved, without the owed ones whose orders are in progress. */
export function attentionHtml(view: Waiting): string {
  const owed = read(view.owed, rows =>
    titled('Owed: paid, not yet answered', waiting(view, rows, 'owed', view.inProgress)),
  );
  const unresolved = read(view.unresolved, rows =>
    titled('Unresolved: it is not known yet whether the money moved', waiting(view, rows, 'settling')),
  );
  return `<div id="attention">${owed}${unresolved}</div>`;
}

function titled(title: string, table: string): string {
  return table && `<h3>${title}</h3>\n${table}`;
}

/** @param elsewhere how many more are listed in another place */
function waiting(
  { now, undecided }: Waiting,
  rows: Payment[],
  state: 'owed' | 'settling',
  elsewhere = 0,
): string {
  if (rows.length === 0) return '';
  const table = grid(
    state === 'owed' ? 'Owed payments' : 'Unresolved payments',
    COLUMNS,
    rows.map(row => [
      paymentLink(row.id),
      ago(row.settledAt ?? row.settlingAt ?? row.createdAt, now),
      `<code>${escapeHtml(row.operation)}</code>`,
      toDecimal(row.amount),
      payerLink(row.payer),
      state === 'owed'
        ? `<a href="/payments/${row.id}">Retry</a> or <a href="/payments/${row.id}/refund">refund</a>`
        : 'wait',
    ]),
    '',
    'payments',
  );
  const all = typeof undecided === 'string' ? rows.length : undecided[state].payments - elsewhere;
  return all > rows.length
    ? `${table}<p class="soft">The oldest ${rows.length} of ${all}. <code>npm run ledger -- ${state === 'owed' ? 'owed' : 'list --state settling'}</code> lists more.</p>`
    : table;
}
