import { toDecimal } from '../../price/amount.js';
import { commandLine } from '../../config/command-line.js';
import { isAddress } from '../../rails/solana/address.js';
import { anonymizer } from '../../operator/anonymizer.js';
import { findPayment, type ReportSource } from '../../operator/find-payment.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import type { Report } from './print.js';

const REJECTED = 'The operator rejects this order.';

/** Permanently ends the work on an owed order, so that it can be refunded. @throws OperatorFault */
export async function rejectOrder(
  reader: ReportSource,
  name: string | undefined,
  reason = REJECTED,
): Promise<Report> {
  const { id, amount, payer } = await findPayment(reader, name);
  if (!(await reader.rejectOrder(id, reason)))
    throw new OperatorFault(`The payment ${id} is not an owed order. Nothing was changed.`);
  const usdc = toDecimal(amount);
  return {
    data: { id, usdc, payer, reason },
    lines: [
      `Rejected: the work for ${id} has ended, and its request was deleted. ${usdc} USDC are owed to ${payer}: ${commandLine('ledger')} refund ${id}`,
    ],
  };
}

/** Removes the contents of a call, or a payer and the contents of all its calls. @throws OperatorFault */
export async function remove(reader: ReportSource, name: string | undefined): Promise<Report> {
  return name !== undefined && isAddress(name) ? removePayer(reader, name) : removeContents(reader, name);
}

async function removePayer(reader: ReportSource, payer: string): Promise<Report> {
  const { removed, open } = await reader.removePayer(payer, anonymizer);
  if (removed + open === 0) throw new OperatorFault(`There is no payment from ${payer} in this ledger.`);
  const lines = [
    `Removed the address from ${removed} payments, with their requests and answers. The books are unchanged.`,
  ];
  const rest = `${open} payments keep the address, because they have not ended, were settled less than a minute ago, or are being refunded. Repeat the command later.`;
  return { data: { payer, removed, open }, lines: open === 0 ? lines : [...lines, rest] };
}

async function removeContents(reader: ReportSource, name: string | undefined): Promise<Report> {
  const { id, state } = await findPayment(reader, name);
  const removed = await reader.removeContents(id);
  if (removed !== 'removed')
    throw new OperatorFault(
      `The payment ${id} is ${state}: its buyer is still waiting for an answer. ${state === 'owed' ? `Reject the order first: ${commandLine('ledger')} reject ${id}. ` : ''}Nothing was changed.`,
    );
  return {
    data: { id, state },
    lines: [`Removed the request and the answer of ${id}. The books are unchanged.`],
  };
}
