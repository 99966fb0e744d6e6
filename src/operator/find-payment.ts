import type { LedgerReader, LedgerReports, Payment } from '../ledger/store.js';
import { OperatorFault } from './operator-fault.js';

export type ReportSource = LedgerReader & LedgerReports;

/**
 * The payment with this id, or the only one whose id begins with it.
 * @throws OperatorFault
 */
export async function findPayment(reader: ReportSource, text: string | undefined): Promise<Payment> {
  const prefix = text?.toLowerCase() ?? '';
  if (!/^[0-9a-f]{8,64}$/.test(prefix))
    throw new OperatorFault('Give the id of a payment, or at least its first 8 digits.');
  const [first, second] = await reader.startingWith(prefix);
  if (!first) throw new OperatorFault(`There is no payment ${prefix} in this ledger.`);
  if (second) throw new OperatorFault(`More than one payment begins with ${prefix}. Give more digits.`);
  return first;
}
