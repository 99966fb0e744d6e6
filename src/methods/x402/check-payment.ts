import type { IncomingHttpHeaders } from 'node:http';
import type { PricedOperation } from '../../contract/contract.js';
import { toDecimal } from '../../contract/price.js';
import type { Terms } from './requirements.js';
import { TransactionChecker, type CheckedTransaction } from '../../rails/solana/transaction.js';
import { decodePayment, type Accepted, type WirePayment } from './wire.js';

/** A payment whose transaction passed the local check. Neither ledger nor facilitator has seen it yet. */
export type Payment = {
  version: 1 | 2;
  identifier: string | null;
  checked: CheckedTransaction;
  /** Why it does not match the current offer. It may have been accepted under an earlier one. */
  mismatch?: string;
};

export type PaymentCheck =
  | { kind: 'unpaid' }
  | { kind: 'refused'; version: 1 | 2; error: string }
  /** It does not match the current offer: 402, unless the ledger knows it. */
  | { kind: 'mismatch'; error: string; payment: Payment }
  | { kind: 'payment'; payment: Payment };

/** Reads and checks payments locally. */
export class PaymentChecker {
  readonly #terms: Terms;
  readonly #checker = new TransactionChecker();

  constructor(terms: Terms) {
    this.#terms = terms;
  }

  /** Reads and checks the payment of a request without network calls, without its body and without the ledger. */
  async check(headers: IncomingHttpHeaders, operation: PricedOperation): Promise<PaymentCheck> {
    const decoded = decodePayment(headers);
    if (decoded.kind === 'none') return { kind: 'unpaid' };
    if (decoded.kind === 'fault') return { kind: 'refused', version: 2, error: decoded.error };
    const { payment: wire } = decoded;
    const { version } = wire;
    const foreign = this.#foreign(wire);
    if (foreign) return { kind: 'refused', version, error: foreign };
    const { asset, payTo } = this.#terms;
    const check = await this.#checker.check(wire.transaction, {
      asset,
      payTo,
      amount: operation.price.atomic,
    });
    const { checked } = check;
    const fault = check.ok ? undefined : check.error;
    if (!checked) return { kind: 'refused', version, error: fault ?? 'transaction: cannot be decoded' };
    const payment = { version, identifier: wire.identifier ?? null, checked };
    const error = (wire.accepted && this.#mismatchOfAccepted(wire.accepted, operation)) ?? fault;
    return error === undefined
      ? { kind: 'payment', payment }
      : { kind: 'mismatch', error, payment: { ...payment, mismatch: error } };
  }

  /** Why this can't be an offer of this server, neither the current nor an earlier one. */
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
    const price = operation.price.atomic;
    const amount = accepted.amount ?? accepted.maxAmountRequired;
    if (amount !== price.toString()) {
      return `amount: accepted ${inUsdc(amount)}, the price is ${toDecimal(price)} USDC`;
    }
    if (accepted.asset !== asset) return `asset: accepted ${accepted.asset}, must be ${asset}`;
    if (accepted.payTo !== payTo) return `payTo: accepted ${accepted.payTo}, must be ${payTo}`;
    const flow = accepted.extra?.paymentFlow ?? 'authorization';
    if (flow !== operation.flow) return `paymentFlow: accepted ${flow}, must be ${operation.flow}`;
    return undefined;
  }
}

/** An amount in atomic units as a buyer sent it; other text is quoted as it is. */
function inUsdc(amount: string | undefined): string {
  return amount !== undefined && /^(0|[1-9][0-9]{0,19})$/.test(amount)
    ? `${toDecimal(BigInt(amount))} USDC`
    : `${amount}`;
}
