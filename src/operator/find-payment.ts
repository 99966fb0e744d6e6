import type { LedgerReader, LedgerReports, Payment } from '../ledger/store.js';
import { OperatorFault } from './operator-fault.js';

export type ReportSource = LedgerReader & LedgerReports;

const SHORTEST = 8;

/**
 * The payments that a search string identifies: by id or at least its first 8 digits, transaction, refund, payer, payment-identifier or the
 * id of the last request with the payment. Newest first, at most 50.
 * @throws OperatorFault if there are none
 */
export async function findPayments(reader: ReportSource, text: string | undefined): Promise<Payment[]> {
  const quoted = text?.trim() ?? '';
  if (quoted.length < SHORTEST)
    throw new OperatorFault(
      'Give the id of a payment or at least its first 8 digits, a transaction, a refund, a payer, a payment-identifier or a request (X-Request-Id).',
    );
  const found = await reader.paymentsNamed(quoted);
  if (found.length > 0) return found;
  throw new OperatorFault(
    `There is no payment ${quoted} in this ledger, and no transaction, refund, payer, payment-identifier or request of that name.`,
  );
}

/**
 * The one payment that a search string identifies.
 * @throws OperatorFault
 */
export async function findPayment(reader: ReportSource, text: string | undefined): Promise<Payment> {
  const [first, ...others] = await findPayments(reader, text);
  if (first && others.length === 0) return first;
  throw new OperatorFault(
    `At least ${others.length + 1} payments match ${text?.trim()}. Name one of them by its id: ` +
      `${[first, ...others]
        .slice(0, 5)
        .map(each => each?.id.slice(0, 16))
        .join(', ')}${others.length > 4 ? ', …' : ''}.`,
  );
}
