import { toDecimal } from '../../price/amount.js';
import { commandLine } from '../../config/command-line.js';
import { findPayment, type ReportSource } from '../../operator/find-payment.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import type { Report } from './print.js';

/**
 * Requests another attempt at an order whose last attempt has ended. A server of this ledger begins the attempt and then sets its deadline.
 * @throws OperatorFault
 */
export async function retry(reader: ReportSource, name: string | undefined): Promise<Report> {
  const { id, operation, amount } = await findPayment(reader, name);
  const { retired } = await reader.identity();
  const order = retired === undefined ? await reader.retryOrder(id, Date.now()) : undefined;
  if (!order)
    throw new OperatorFault(
      `No attempt was started for ${id}: it is not an owed order, or an attempt is in progress. See its state with ` +
        `${commandLine('ledger')} show ${id}. Nothing was changed.`,
    );
  const attempt = order.tries;
  return {
    data: { id, operation, attempt },
    lines: [
      `Requested attempt ${attempt} at the order ${id} (${operation}, ${toDecimal(amount)} USDC). A running server begins it within seconds.`,
    ],
  };
}
