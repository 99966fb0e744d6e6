import type { Payment, Repayment } from '../ledger/store.js';
import { escapeHtml } from '../pages/escape.js';
import { hidden } from '../pages/page-frame.js';
import { qrCode } from '../pages/qr-code.js';
import { toDecimal } from '../price/amount.js';
import { at, badge, linked, list, type Shown } from './operator-layout.js';

/** The data of a page about a refund. `link`: the Solana Pay link of the refund under way. */
type RefundView = {
  payment: Payment;
  formKey: string;
  receivers: readonly string[];
  open: Repayment | undefined;
  link: string | undefined;
  fault?: string;
  tx?: string;
  /** Whether the server is working on the answer. */
  isInProgress: boolean;
};

/** Asks how to refund, or shows the link of the refund under way. */
export function refundHtml(view: RefundView): string {
  const { payment, open, fault = '' } = view;
  const left = payment.amount - payment.repaid;
  const rows: [string, string][] = [
    ['Paid', `${toDecimal(payment.amount)} USDC for <code>${escapeHtml(payment.operation)}</code>`],
    ...(payment.repaid > 0n
      ? ([['Refunded', `${toDecimal(payment.repaid)} USDC`]] as [string, string][])
      : []),
    [
      'Payment',
      `<span class="id">${payment.id.slice(0, 12)}…</span>, settled ${payment.settledAt === null ? '–' : at(payment.settledAt)}`,
    ],
    ['Goes to', `<span class="id">${escapeHtml(payment.payer)}</span>, who paid`],
  ];
  const said = fault ? `<p id="why" class="fault" role="alert">${escapeHtml(fault)}</p>` : '';
  return `<section class="card narrow" aria-labelledby="h-ask"><h1 id="h-ask">Refund this payment</h1>
${list(rows)}
${said}${open ? underWay(view, open) : askForm(view, left)}
</section>
${open?.state === 'sending' ? '' : recordedSection(view)}`;
}

function askForm({ payment, formKey, isInProgress }: RefundView, left: bigint): string {
  const ends = isInProgress
    ? '<p>The server is still working on the answer. A refund of the whole amount ends that work as soon as its QR code is made.</p>\n'
    : '';
  return `${ends}<form method="post" action="/payments/${payment.id}/refund/link">${hidden('form', formKey)}
<label class="above" for="amount">Amount in USDC, at most ${toDecimal(left)}</label>
<input type="text" id="amount" name="amount" inputmode="decimal" required autocomplete="off" maxlength="20" pattern="[0-9]+([.][0-9]{1,6})?" title="A number such as 0.50" value="${toDecimal(left)}">
<label class="above" for="reason">Reason, for your books (may be empty)</label>
<input type="text" id="reason" name="reason" autocomplete="off" maxlength="500">
<p class="soft">The server has none of your keys. The next page has a QR code for any Solana wallet; no money moves before you pay it.</p>
<p class="actions"><button>Make the QR code</button><a class="button quiet" href="/payments/${payment.id}">Back</a></p></form>`;
}

function underWay({ payment, formKey, link }: RefundView, { id, amount, state }: Repayment): string {
  const usdc = toDecimal(amount);
  if (link === undefined || state === 'sending')
    return `<p>${usdc} USDC are being sent with a key: refund <span class="id">${escapeHtml(id)}</span>. It is recorded once its transaction is final on the chain.</p>
<p class="actions"><a class="button quiet" href="/payments/${payment.id}">Back</a></p>`;
  return `<div class="pay" data-awaits>${qrCode(link, `QR code that pays ${usdc} USDC back`)}
<div><p><strong>Scan this with the wallet that pays ${usdc} USDC</strong>, or <a href="${escapeHtml(link)}">open it in a wallet on this device</a>. It contains amount, receiver and the memo <span class="id">refund:${escapeHtml(id)}</span>.</p>
<p class="soft" role="status">Waiting for the transfer. It is recorded within a minute of becoming final, even if you close this page.</p></div></div>
<form method="post" action="/payments/${payment.id}/refund/cancel">${hidden('form', formKey)}
<p class="actions"><a class="button quiet" href="/payments/${payment.id}">Back</a><button class="quiet">Cancel this refund</button></p></form>
<p class="soft">After a cancellation, anyone with the QR code can still pay it, and that is recorded, too.</p>`;
}

/** For operators who have already sent the money. */
function recordedSection({ payment, formKey, receivers, fault = '', tx = '' }: RefundView): string {
  const described = fault && tx ? ' aria-describedby="why" aria-invalid="true" autofocus' : '';
  const from = receivers.map(each => `<span class="id">${escapeHtml(each)}</span>`).join(' or ');
  return `<section class="card narrow" aria-labelledby="h-sent"><h2 id="h-sent">Sent already?</h2>
<p>If you have sent the money from an account of ${from} in another way, give the signature of that transaction. It is recorded if the chain shows it at <code>finalized</code>, about half a minute after the transfer.</p>
<form method="post" action="/payments/${payment.id}/refund">${hidden('form', formKey)}
<label class="above" for="tx">Signature of the transaction</label>
<input type="text" id="tx" name="tx" required autocomplete="off" spellcheck="false" minlength="64" maxlength="88" pattern="[1-9A-HJ-NP-Za-km-z]{64,88}" title="64 to 88 base58 characters" value="${escapeHtml(tx)}"${described}>
<p class="actions"><button class="quiet">Record the refund</button></p></form></section>`;
}

const STATES: Record<Repayment['state'], string> = {
  asked: 'waiting',
  sending: 'waiting',
  done: 'refunded',
  failed: 'failed',
  cancelled: 'cancelled',
};

/** The refunds of a payment, or nothing if there are none. */
export function refundsHtml(repayments: readonly Repayment[], shown: Pick<Shown, 'explorer'>): string {
  if (repayments.length === 0) return '';
  const items = repayments.map(each => {
    const { amount, state, signature, createdAt, landedAt, reason, failure, source } = each;
    const said = [
      ...(signature ? [`transaction ${linked(signature, shown.explorer?.transaction)}`] : []),
      ...(source ? [`from ${linked(source, shown.explorer?.address)}`] : []),
      ...(reason ? [escapeHtml(reason)] : []),
      ...(failure && state !== 'done' ? [escapeHtml(failure)] : []),
    ];
    return `<li>${at(landedAt ?? createdAt)} <span>${badge(STATES[state])} ${toDecimal(amount)} USDC${said.length > 0 ? `: ${said.join(', ')}` : ''}</span></li>`;
  });
  return `<section class="card" aria-labelledby="h-refunds"><h2 id="h-refunds">Refunds</h2>
<ol class="history">${items.join('\n')}</ol></section>`;
}
