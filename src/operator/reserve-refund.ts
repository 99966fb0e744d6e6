import { REMOVED_PAYER, type LedgerReader, type Payment, type Repayment } from '../ledger/store.js';
import type { RepaymentWay } from '../ledger/states.js';
import { toAtomic, toDecimal } from '../price/amount.js';
import { OperatorFault } from './operator-fault.js';
import { mayBeRepaid, notPaid } from './record-refund.js';

/** `amount`: decimal USDC; default: the part of the payment that has not been refunded yet. */
export type AskedAmount = { amount?: string | undefined; reason?: string | undefined };

/**
 * Reserves a refund. If a refund of the same amount is already under way by the same means, returns that one.
 * @throws OperatorFault that says what is wrong; in that case, nothing was changed
 */
export async function reserveRefund(
  ledger: Pick<LedgerReader, 'startRepayment'>,
  payment: Payment,
  { amount, reason, way }: AskedAmount & { way: RepaymentWay },
): Promise<Repayment> {
  const { id } = payment;
  const wanted = amount === undefined ? undefined : atomicOf(amount);
  if (!mayBeRepaid(payment)) throw notPaid(payment);
  if (payment.payer === REMOVED_PAYER)
    throw new OperatorFault(
      `The payer of ${id} was removed from this ledger. Transaction ${payment.settlement ?? ''} still names the payer: refund by hand. Nothing was changed.`,
    );
  const left = payment.amount - payment.repaid;
  const request = { payment: id, amount: wanted ?? left, way, reason, after: payment.after };
  const started = await ledger.startRepayment(request);
  if (started.kind === 'not paid') throw notPaid(payment);
  if (started.kind === 'too much')
    throw new OperatorFault(
      `Only ${toDecimal(started.left)} USDC of payment ${id} can be refunded, not ${toDecimal(wanted ?? left)}. Nothing was changed.`,
    );
  if (!('repayment' in started)) throw new Error('only the operator decides here');
  const { repayment } = started;
  if (repayment.way !== way) throw otherWay(repayment);
  if (wanted !== undefined && wanted !== repayment.amount)
    throw new OperatorFault(
      `A refund of ${toDecimal(repayment.amount)} USDC is under way for payment ${id}. ${way === 'wallet' ? 'Pay it' : 'Send it'}, or cancel it with --cancel. Nothing was changed.`,
    );
  return repayment;
}

function otherWay({ id, payment, way }: Repayment): OperatorFault {
  return new OperatorFault(
    way === 'key'
      ? `Refund ${id} of payment ${payment} is being sent with a key. Continue it with --keypair. Nothing was changed.`
      : `Refund ${id} of payment ${payment} is waiting for a wallet to pay it, and the wallet may already have its link. Pay it, or cancel it with --cancel. Nothing was changed.`,
  );
}

/** @throws OperatorFault */
function atomicOf(amount: string): bigint {
  try {
    return toAtomic(amount);
  } catch (error) {
    throw new OperatorFault(`--amount ${(error as Error).message}. Nothing was changed.`);
  }
}
