import type { PricedOperation } from '../contract/contract.js';
import type { Payment as Row } from '../ledger/store.js';
import { requirementsOf, type Terms } from '../methods/x402/requirements.js';
import {
  destinationAccountOf,
  feePayerOf,
  receiverAccount,
  type CheckedTransaction,
} from '../rails/solana/transaction.js';
import type { FacilitatorRequest } from './facilitator.js';

/** Builds requests to the facilitators. */
export class FacilitatorRequests {
  readonly #terms: Terms;
  /** By token account. */
  readonly #receivers: ReadonlyMap<string, string>;

  /** @param receivers the present receiver and those that earlier payments of the ledger were paid to */
  constructor(terms: Terms, receivers: readonly string[]) {
    this.#terms = terms;
    const { asset } = terms;
    this.#receivers = new Map(receivers.map(payTo => [receiverAccount({ asset, payTo }), payTo]));
  }

  request(operation: PricedOperation, { evidence, feePayer }: CheckedTransaction): FacilitatorRequest {
    return { transaction: evidence, requirements: requirementsOf(operation, this.#terms, feePayer) };
  }

  /** With the offer under which the payment was claimed, whatever price and receiver are now. */
  repeatRequest({ evidence, flow, amount }: Row): FacilitatorRequest {
    const offered = { flow, price: { atomic: amount } };
    const payTo = this.#receivers.get(destinationAccountOf(evidence)) ?? this.#terms.payTo;
    return {
      transaction: evidence,
      requirements: requirementsOf(offered, { ...this.#terms, payTo }, feePayerOf(evidence)),
    };
  }
}
