import type { PricedOperation } from '../contract/contract.js';
import type { Carrier, Method } from '../methods/method.js';
import type { Methods } from '../methods/methods.js';
import type { Checked, Rail } from '../rails/rail.js';

/** A payment that passed the local check of its rail. Neither ledger nor facilitator has seen it yet. */
export type Payment = {
  method: Method;
  identifier: string | null;
  checked: Checked;
  /** Why it does not match the current offer. It may have been accepted under an earlier one. */
  mismatch?: string;
  /** The id of the challenge that it answers, if its method has such. */
  challenge?: string;
};

export type PaymentCheck =
  | { kind: 'unpaid' }
  | { kind: 'refused'; method: Method; error: string }
  /** It does not match the current offer: 402, unless the ledger knows it. */
  | { kind: 'mismatch'; error: string; payment: Payment }
  | { kind: 'payment'; payment: Payment };

/** Reads and checks the payment of a request without network calls, without its body and without the ledger. */
export async function checkPayment(
  methods: Methods,
  rail: Pick<Rail, 'check'>,
  carrier: Carrier,
  operation: PricedOperation,
): Promise<PaymentCheck> {
  const reading = methods.read(carrier, operation);
  if (!reading) return { kind: 'unpaid' };
  if (reading.kind === 'refused') return reading;
  const { method, evidence, identifier, mismatch, challenge } = reading.credential;
  const check = await rail.check(evidence, operation.price.atomic, challenge?.named);
  const fault = check.ok ? undefined : check.error;
  const { checked } = check;
  if (!checked) return { kind: 'refused', method, error: fault ?? 'the payment cannot be read' };
  const payment = { method, identifier, checked, ...(challenge && { challenge: challenge.id }) };
  const error = mismatch ?? fault;
  return error === undefined
    ? { kind: 'payment', payment }
    : { kind: 'mismatch', error, payment: { ...payment, mismatch: error } };
}
