import { escapeHtml } from '../pages/escape.js';
import { hidden } from '../pages/page-frame.js';
import { orderHtml } from './order-part.js';
import { isInProgress, isRejected, mayRetry, type PaymentFacts } from './payment-facts.js';
import { at, badge, explorerLink, linked, list, paymentLink } from './operator-layout.js';
import { refundsHtml } from './refund-part.js';
import { mayBeRepaid } from '../operator/record-refund.js';
import type { Explorer } from '../rails/solana/explorer.js';
import { toDecimal } from '../price/amount.js';

type Step = { at: number; text: string };

type Beside = { section: string; message?: string; explorer: Explorer | undefined; now: number };

/** Everything about one payment except its request, its answer and its signed transaction. `section`: the operation's own section. */
export function paymentHtml(facts: PaymentFacts, { section, message = '', explorer, now }: Beside): string {
  const { payment, repayments } = facts;
  const said = message ? `<p class="said" role="status">${escapeHtml(message)}</p>` : '';
  return `<h1>Payment <span class="id">${payment.id.slice(0, 12)}…</span></h1>
${said}
<section class="card" aria-labelledby="h-what"><h2 id="h-what">${toDecimal(payment.amount)} USDC for <code>${escapeHtml(payment.operation)}</code> ${badge(isInProgress(facts, now) ? 'in progress' : payment.state)}</h2>
<p>${escapeHtml(meaningOf(facts))}</p>
${actions(facts)}
</section>
${orderHtml(facts)}${section}${refundsHtml(repayments, { explorer })}<section class="card" aria-labelledby="h-history"><h2 id="h-history">History <span class="soft">(UTC)</span></h2>
<ol class="history">${historyOf(facts)
    .map(step => `<li>${at(step.at)} <span>${step.text}</span></li>`)
    .join('\n')}</ol></section>
<section class="card" aria-labelledby="h-facts"><h2 id="h-facts">Details</h2>
${list(detailsOf(facts, explorer))}</section>`;
}

/** What the state means, and what happens next. */
function meaningOf(facts: PaymentFacts): string {
  const { payment } = facts;
  if (payment.aliasOf !== null)
    return 'This payment was answered with what an earlier payment had bought, and was not charged.';
  switch (payment.state) {
    case 'claimed':
      return 'The server is working on the call, or the caller left before the payment was charged. No money has moved.';
    case 'settling':
      return 'A facilitator was asked to settle the payment and gave no clear answer. The server keeps looking for the transfer on chain until it is found or proven absent; there is nothing to do.';
    case 'released':
      return 'The money has not moved. The caller was not charged.';
    case 'delivered':
      return deliveredMeans(facts);
    case 'refunded':
      return 'You have refunded this payment.';
    case 'owed':
      return owedMeans(facts);
  }
}

function deliveredMeans({ payment: { repaid, amount } }: PaymentFacts): string {
  if (repaid === 0n) return 'Paid and answered.';
  return repaid < amount
    ? `Paid and answered; ${toDecimal(repaid)} USDC were refunded.`
    : 'Paid, answered, and refunded in full.';
}

function owedMeans({ payment, order, pausedUntil }: PaymentFacts): string {
  if (payment.repaid + payment.repaying >= payment.amount)
    return 'The money has moved and is being refunded in full, so the work has ended.';
  if (isRejected({ order }))
    return `You rejected this order: the work has ended and its request has been deleted. Refund it. ${order?.failure ?? ''}`;
  if (payment.flow !== 'upfront')
    return 'The money has moved and there is no answer yet. The server does the work when the caller sends the payment again. You can also refund it.';
  if (pausedUntil !== undefined)
    return `The money has moved, and the work was interrupted. A server continues with it after ${new Date(pausedUntil).toISOString()}; a retry starts another attempt immediately. You can also refund it.`;
  if (!order || order.finishedAt === null)
    return 'The money has moved and the server is working on the answer.';
  return order.nextAttemptAt === null
    ? `The money has moved, and there is no further automatic attempt: retry or refund it. ${order.failure ?? ''}`
    : 'The money has moved, and the last attempt ended without an answer. A retry, or the next call by the buyer, starts another attempt. You can also refund it.';
}

function actions(facts: PaymentFacts): string {
  const { id } = facts.payment;
  if (!mayBeRepaid(facts.payment)) return '';
  const isOpen = facts.repayments.some(({ decidedAt }) => decidedAt === null);
  const retry = mayRetry(facts) ? `<a class="button" href="/payments/${id}/retry">Retry…</a>` : '';
  return `<p class="actions">${retry}<a class="button quiet" href="/payments/${id}/refund">${isOpen ? 'Show the refund…' : 'Refund…'}</a></p>`;
}

function historyOf({ payment, order, refund, answer }: PaymentFacts): Step[] {
  const { createdAt, settlingAt, settledAt, decidedAt, writtenAt, auditedAt, asks, reason, state } = payment;
  const steps: (Step | undefined)[] = [
    { at: createdAt, text: 'claimed: the payment arrived and passed the checks' },
    when(
      settlingAt,
      `settling: a facilitator was asked (${asks} ${asks === 1 ? 'request' : 'requests'} so far)`,
    ),
    when(settledAt, 'settled: a facilitator reported the transfer to your account, or the chain shows it'),
    order && {
      at: order.createdAt,
      text: `order opened${order.wanted > 0 ? `, for ${order.wanted} parts` : ''}`,
    },
    when(
      order?.finishedAt ?? null,
      `attempt ${order?.attempts ?? 0} ended${state === 'owed' ? ' without an answer' : ''}`,
    ),
    answer && { at: answer.savedAt, text: `answer saved: status ${answer.status}, ${answer.bytes} bytes` },
    when(decidedAt, `${state}${reason && state !== 'refunded' ? `: ${escapeHtml(reason)}` : ''}`),
    refund && {
      at: refund.refundedAt,
      text: `${toDecimal(refund.amount)} USDC refunded with transaction <span class="id">${escapeHtml(refund.signature)}</span>`,
    },
    when(writtenAt, 'the answer was delivered to its caller'),
    when(auditedAt, 'audited: the finalized chain was searched for the transfer'),
  ];
  return steps.filter(step => step !== undefined).toSorted((a, b) => a.at - b.at);
}

function when(time: number | null, text: string): Step | undefined {
  return time === null ? undefined : { at: time, text };
}

function detailsOf({ payment }: PaymentFacts, explorer: Explorer | undefined): [string, string][] {
  const id = (text: string): string => `<span class="id">${escapeHtml(text)}</span>`;
  const { settlement, identifier, requestId, aliasOf } = payment;
  return [
    ['Id', id(payment.id)],
    [
      'Payer',
      `<a class="id" href="/payers/${encodeURIComponent(payment.payer)}">${escapeHtml(payment.payer)}</a>${explorerLink(payment.payer, explorer?.address)}`,
    ],
    ['Network', id(payment.network)],
    ['Flow', payment.flow],
    ...(settlement
      ? ([['Transaction', linked(settlement, explorer?.transaction)]] as [string, string][])
      : []),
    ...(identifier ? ([['Payment identifier', id(identifier)]] as [string, string][]) : []),
    ...(requestId ? ([['Last request', id(requestId)]] as [string, string][]) : []),
    ...(aliasOf ? ([['Redeems', paymentLink(aliasOf)]] as [string, string][]) : []),
    ['Requests that waited for the answer', String(payment.callers)],
    ['Times the work was run', String(payment.runs)],
  ];
}

/** The page that asks for confirmation of another attempt. */
export function retryHtml({ payment, order }: PaymentFacts, formKey: string): string {
  const got = order && order.wanted > 0 ? `${order.done} of ${order.wanted} parts are done. ` : '';
  return `<section class="card narrow" aria-labelledby="h-ask"><h1 id="h-ask">Start another attempt?</h1>
<p>${toDecimal(payment.amount)} USDC were paid for <code>${escapeHtml(payment.operation)}</code>. ${got}The attempt repeats the work, or continues with the missing parts, at your cost. The buyer is not charged again.</p>
<form method="post" action="/payments/${payment.id}/retry">${hidden('form', formKey)}
<p class="actions"><button>Start another attempt</button><a class="button quiet" href="/payments/${payment.id}">Cancel</a></p></form></section>`;
}
