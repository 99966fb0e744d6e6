import { askRefund, awaitRefund, cancelRefund } from '../../operator/ask-refund.js';
import type { ReportSource } from '../../operator/find-payment.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { recordRefund } from '../../operator/record-refund.js';
import { toDecimal } from '../../price/amount.js';
import { writeErr } from '../terminal.js';
import type { Report } from './print.js';

type Options = {
  tx?: string | undefined;
  amount?: string | undefined;
  reason?: string | undefined;
  wait?: boolean | undefined;
  cancel?: boolean | undefined;
};

/** Records a refund that was sent, cancels one that nobody has paid, or asks a wallet for one. */
export async function refund(
  reader: ReportSource,
  name: string | undefined,
  options: Options,
  rpcUrls: () => string[],
): Promise<Report> {
  const { tx, amount, reason, wait = false, cancel = false } = options;
  if ([tx !== undefined, cancel, wait].filter(Boolean).length > 1)
    throw new OperatorFault('Use one of --tx, --wait and --cancel. Nothing was changed.');
  if (tx !== undefined) return recorded(reader, name, tx, rpcUrls);
  if (cancel) return cancelled(reader, name);
  const asked = await askRefund(reader, name, { amount, reason });
  const { payment, repayment, link } = asked;
  const usdc = toDecimal(repayment.amount);
  const data = { id: payment.id, refund: repayment.id, usdc, receiver: repayment.receiver, link };
  const lines = [
    `Refund ${repayment.id}: ${usdc} USDC to ${repayment.receiver} for payment ${payment.id}.`,
    'Open this link with the wallet that is to pay. It is recorded once the chain shows it as final.',
    link,
  ];
  if (!wait) return { data, lines };
  writeErr(`${lines.join('\n')}\n`);
  const { signature: transaction } = await awaitRefund(reader, asked, rpcUrls());
  return {
    data: { ...data, transaction },
    lines: [`Refunded ${usdc} USDC with transaction ${transaction}.`],
  };
}

async function recorded(
  reader: ReportSource,
  name: string | undefined,
  tx: string,
  rpcUrls: () => string[],
): Promise<Report> {
  const { id, amount, payer, transaction, refunded } = await recordRefund(reader, name, tx, rpcUrls);
  const [usdc, back] = [toDecimal(amount), toDecimal(refunded)];
  return {
    data: { id, state: 'refunded', usdc, payer, transaction, refunded: back },
    lines: [`Recorded: ${back} USDC refunded to ${payer} for payment ${id}.`],
  };
}

async function cancelled(reader: ReportSource, name: string | undefined): Promise<Report> {
  const { id, payment, amount } = await cancelRefund(reader, name);
  return {
    data: { id: payment, refund: id, state: 'cancelled' },
    lines: [
      `Cancelled refund ${id} of ${toDecimal(amount)} USDC. If its link is paid later, record it with --tx.`,
    ],
  };
}
