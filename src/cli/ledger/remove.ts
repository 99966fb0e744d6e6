import { toDecimal } from '../../price/amount.js';
import { commandLine } from '../../config/command-line.js';
import { findPayment, type ReportSource } from '../../operator/find-payment.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import type { Report } from './print.js';

const REJECTED = 'The operator rejects this order.';

/** Ends the work on an owed order for good, so that it can be refunded. @throws OperatorFault */
export async function rejectOrder(
  reader: ReportSource,
  name: string | undefined,
  reason = REJECTED,
): Promise<Report> {
  const { id, amount, payer } = await findPayment(reader, name);
  if (!(await reader.rejectOrder(id, reason)))
    throw new OperatorFault(`The payment ${id} is no order that is owed. Nothing was changed.`);
  const usdc = toDecimal(amount);
  return {
    data: { id, usdc, payer, reason },
    lines: [
      `Rejected: nobody works for ${id} any more, and what was asked is gone. ${usdc} USDC of ${payer} are owed: ${commandLine('ledger')} refund ${id}`,
    ],
  };
}

/** Removes the contents of a call. @throws OperatorFault */
export async function removeContents(reader: ReportSource, name: string | undefined): Promise<Report> {
  const { id, state } = await findPayment(reader, name);
  const removed = await reader.removeContents(id);
  if (removed !== 'removed')
    throw new OperatorFault(
      `The payment ${id} is ${state}: its buyer still waits for an answer. ${state === 'owed' ? `Reject the order first: ${commandLine('ledger')} reject ${id}. ` : ''}Nothing was changed.`,
    );
  return {
    data: { id, state },
    lines: [`Removed what was asked and answered for ${id}. The books are unchanged.`],
  };
}
