import type { Payment as Row } from '../ledger/store.js';
import type { FacilitatorRequest } from '../facilitators/facilitator.js';
import type { Offers } from '../offers/offers.js';
import { requirementsOf } from '../methods/x402/requirements.js';
import type { Run } from './run.js';
import { destinationAccountOf, feePayerOf, receiverAccount } from '../rails/solana/transaction.js';

/** Builds requests to the facilitator. */
export class FacilitatorRequests {
  readonly #offers: Offers;
  /** By token account. */
  readonly #receivers: ReadonlyMap<string, string>;

  /** @param receivers the present receiver and those that earlier payments of the ledger were paid to */
  constructor(offers: Offers, receivers: readonly string[]) {
    this.#offers = offers;
    const { asset } = offers.terms;
    this.#receivers = new Map(receivers.map(payTo => [receiverAccount({ asset, payTo }), payTo]));
  }

  request({ call }: Run): FacilitatorRequest {
    const { transaction, feePayer } = call.payment.checked;
    return { transaction, requirements: this.#offers.requirements(call.operation, feePayer) };
  }

  /** With the offer under which the payment was claimed, whatever price and receiver are now. */
  repeatRequest({ transaction, flow, amount }: Row): FacilitatorRequest {
    const offered = { flow, price: { atomic: amount } };
    const { terms } = this.#offers;
    const payTo = this.#receivers.get(destinationAccountOf(transaction)) ?? terms.payTo;
    return {
      transaction,
      requirements: requirementsOf(offered, { ...terms, payTo }, feePayerOf(transaction)),
    };
  }
}
