import type { Payment, Repayment } from '../ledger/store.js';
import { BASE_STYLE } from '../pages/base-style.js';
import { escapeHtml } from '../pages/escape.js';
import { shopPage } from '../pages/page-frame.js';
import { toDecimal } from '../price/amount.js';
import type { Explorer } from '../rails/solana/explorer.js';

/** The seller. `contact`: strings from the contract. */
export type Seller = {
  shop: string;
  url: string;
  payTo: string;
  network: string;
  contact: readonly string[];
};

type Sold = {
  payment: Payment;
  repayments: readonly Repayment[];
  /** The title of the operation in the contract. */
  title: string | undefined;
  explorer: Explorer | undefined;
};

/** Prints black on white, without the parts that only a screen needs. */
export const RECEIPT_STYLE = `${BASE_STYLE}
.id { font-family: var(--mono); font-size: .92em; }
.sum { font-size: var(--text-xl); font-weight: 600; }
dl { margin: var(--space-4) 0 0; }
dl > div { display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: .1rem var(--space-4); padding: .45rem 0; border-top: 1px solid var(--line); }
dt { color: var(--soft); }
dd { margin: 0; min-width: 0; }
a { color: inherit; }
@media (max-width: 40rem) { dl > div { grid-template-columns: 1fr; } }
@media print {
  :root { color-scheme: light; }
  @page { margin: 2cm; }
  body { background: none; color: #000; max-width: none; padding: 0; }
  .card { background: none; border: 0; padding: 0; }
  dt, .soft { color: #333; }
  .screen { display: none; }
}
`;

/** A receipt that can be printed. Escapes all text that comes from outside. */
export function receiptHtml(seller: Seller, sold: Sold): string {
  const { payment, repayments } = sold;
  const left = payment.amount - payment.repaid;
  const net = payment.repaid === 0n ? '' : ` <span class="soft">${toDecimal(left)} USDC after refunds</span>`;
  const back = repayments.filter(({ state }) => state === 'done').map(each => refundRow(each, sold));
  const rows: [string, string][] = [
    ['Receipt', id(payment.id)],
    ['Date (UTC)', time(payment.settledAt ?? payment.createdAt)],
    ['Sold by', sellerLines(seller)],
    [
      'For',
      `${escapeHtml(sold.title ?? payment.operation)} <span class="soft">(${escapeHtml(payment.operation)})</span>`,
    ],
    ...(payment.identifier
      ? ([['Your payment-identifier', id(payment.identifier)]] as [string, string][])
      : []),
    ['Paid by', id(payment.payer)],
    ['Paid with', `USDC on Solana (${escapeHtml(seller.network)})`],
    ['Transaction', transaction(payment.settlement, sold)],
    ['Answer', answered(payment)],
    ...back,
  ];
  const main = `<p class="sum">${toDecimal(payment.amount)} USDC${net}</p>
<dl>${rows.map(([name, value]) => `<div><dt>${name}</dt><dd>${value}</dd></div>`).join('\n')}</dl>
<p class="soft screen">Print this page or save it as PDF with your browser. Anyone with its address can open it and fetch the answer, so keep the address private.</p>`;
  return framed(seller, `Receipt ${payment.id.slice(0, 12)}`, 'Receipt', main);
}

/** The page that explains why there is no receipt. */
export function noReceiptHtml(seller: Seller, why: string): string {
  return framed(seller, 'No receipt', 'No receipt', `<p role="alert">${escapeHtml(why)}</p>`);
}

function framed(seller: Seller, title: string, heading: string, main: string): string {
  return shopPage({ shop: seller.shop, title, heading, style: '/receipts/style.css', main });
}

function sellerLines({ shop, url, payTo, contact }: Seller): string {
  return [escapeHtml(shop), escapeHtml(url), ...contact.map(escapeHtml), `paid to ${id(payTo)}`].join('<br>');
}

function answered({ state, requestHash }: Payment): string {
  if (state === 'owed') return 'not delivered yet; it is kept for you';
  return `${state === 'delivered' ? 'delivered' : 'none; the payment went back'} <span class="soft">(sha256 of the request: <span class="id">${requestHash.slice(0, 16)}…</span>)</span>`;
}

function refundRow(each: Repayment, sold: Sold): [string, string] {
  return [
    'Refunded',
    `${toDecimal(each.amount)} USDC on ${time(each.landedAt ?? each.createdAt)}<br>${transaction(each.signature, sold)}`,
  ];
}

function transaction(signature: string | null, { explorer }: Sold): string {
  if (!signature) return 'not recorded';
  const link = explorer
    ? ` <a class="screen" href="${escapeHtml(explorer.transaction(signature))}" rel="noreferrer">on chain</a>`
    : '';
  return id(signature) + link;
}

const id = (text: string): string => `<span class="id">${escapeHtml(text)}</span>`;

function time(ms: number): string {
  const iso = new Date(ms).toISOString();
  return `<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}
