import type { PricedOperation } from '../contract/contract.js';
import type { Carrier, Method } from '../methods/method.js';
import type { Methods } from '../methods/methods.js';
import type { Terms } from '../methods/x402/requirements.js';
import { TransactionChecker, type CheckedTransaction } from '../rails/solana/transaction.js';

/** A payment whose transaction passed the local check. Neither ledger nor facilitator has seen it yet. */
export type Payment = {
  method: Method;
  identifier: string | null;
  checked: CheckedTransaction;
  /** Why it does not match the current offer. It may have been accepted under an earlier one. */
  mismatch?: string;
};

export type PaymentCheck =
  | { kind: 'unpaid' }
  | { kind: 'refused'; method: Method; error: string }
  /** It does not match the current offer: 402, unless the ledger knows it. */
  | { kind: 'mismatch'; error: string; payment: Payment }
  | { kind: 'payment'; payment: Payment };

/** Reads and checks payments locally. */
export class PaymentChecker {
  readonly #terms: Pick<Terms, 'asset' | 'payTo'>;
  readonly #methods: Methods;
  readonly #checker = new TransactionChecker();

  constructor({ terms, methods }: { terms: Pick<Terms, 'asset' | 'payTo'>; methods: Methods }) {
    this.#terms = terms;
    this.#methods = methods;
  }

  /** Reads and checks the payment of a request without network calls, without its body and without the ledger. */
  async check(carrier: Carrier, operation: PricedOperation): Promise<PaymentCheck> {
    const reading = this.#methods.read(carrier, operation);
    if (!reading) return { kind: 'unpaid' };
    if (reading.kind === 'refused') return reading;
    const { method, transaction, identifier, mismatch } = reading.credential;
    const { asset, payTo } = this.#terms;
    const check = await this.#checker.check(transaction, { asset, payTo, amount: operation.price.atomic });
    const { checked } = check;
    const fault = check.ok ? undefined : check.error;
    if (!checked) return { kind: 'refused', method, error: fault ?? 'transaction: cannot be decoded' };
    const payment = { method, identifier, checked };
    const error = mismatch ?? fault;
    return error === undefined
      ? { kind: 'payment', payment }
      : { kind: 'mismatch', error, payment: { ...payment, mismatch: error } };
  }
}
