import type { IncomingHttpHeaders } from 'node:http';
import type { PricedOperation } from '../contract/contract.js';
import type { Terms } from './requirements.js';
import { TransactionChecker, type CheckedTransaction } from './transaction.js';
import { decodePayment, type Accepted, type WirePayment } from './wire.js';

/** A payment whose transaction passed the local check. Nobody was asked about it yet. */
export type Payment = {
  version: 1 | 2;
  identifier: string | null;
  checked: CheckedTransaction;
  /** Why it does not match today's offer. It may have been taken under an earlier one. */
  mismatch?: string;
};

export type PaymentCheck =
  | { kind: 'unpaid' }
  | { kind: 'refused'; version: 1 | 2; error: string }
  /** It does not match today's offer: 402, unless the ledger knows it. */
  | { kind: 'mismatch'; error: string; payment: Payment }
  | { kind: 'payment'; payment: Payment };

/** Reads and checks payments without asking anybody: no call, no body, no ledger. */
export class PaymentChecker {
  readonly #terms: Terms;
  readonly #checker = new TransactionChecker();

  constructor(terms: Terms) {
    this.#terms = terms;
  }

  /** Reads and checks the payment of a request without asking anybody: no call, no body, no ledger. */
  check(headers: IncomingHttpHeaders, operation: PricedOperation): PaymentCheck {
    const decoded = decodePayment(headers);
    if (decoded.kind === 'none') return { kind: 'unpaid' };
    if (decoded.kind === 'fault') return { kind: 'refused', version: 2, error: decoded.error };
    const { payment: wire } = decoded;
    const { version } = wire;
    const foreign = this.#foreign(wire);
    if (foreign) return { kind: 'refused', version, error: foreign };
    const { asset, payTo } = this.#terms;
    const check = this.#checker.check(wire.transaction, { asset, payTo, amount: operation.price.atomic });
    const { checked } = check;
    const fault = check.ok ? undefined : check.error;
    if (!checked) return { kind: 'refused', version, error: fault ?? 'transaction: can not be decoded' };
    const payment = { version, identifier: wire.identifier ?? null, checked };
    const error = (wire.accepted && this.#mismatchOfAccepted(wire.accepted, operation)) ?? fault;
    return error === undefined
      ? { kind: 'payment', payment }
      : { kind: 'mismatch', error, payment: { ...payment, mismatch: error } };
  }

  /** Neither today's offer nor an earlier one of this server. */
  #foreign(wire: WirePayment): string | undefined {
    const { network, v1Network } = this.#terms;
    if (wire.scheme !== 'exact') return `scheme: '${wire.scheme}' is not offered, only exact is`;
    if (wire.network !== network && wire.network !== v1Network) {
      return `network: '${wire.network}' is not offered, only ${network} (v2) and ${v1Network} (v1) are`;
    }
    return undefined;
  }

  #mismatchOfAccepted(accepted: Accepted, operation: PricedOperation): string | undefined {
    const { asset, payTo } = this.#terms;
    const price = operation.price.atomic.toString();
    const amount = accepted.amount ?? accepted.maxAmountRequired;
    if (amount !== price) return `amount: accepted ${amount}, the price is ${price}`;
    if (accepted.asset !== asset) return `asset: accepted ${accepted.asset}, must be ${asset}`;
    if (accepted.payTo !== payTo) return `payTo: accepted ${accepted.payTo}, must be ${payTo}`;
    const flow = accepted.extra?.paymentFlow ?? 'authorization';
    if (flow !== operation.flow) return `paymentFlow: accepted ${flow}, must be ${operation.flow}`;
    return undefined;
  }
}
