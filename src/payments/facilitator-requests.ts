import type { Payment as Row } from '../ledger/store.js';
import type { FacilitatorRequest } from './facilitator.js';
import type { Offers } from './offers.js';
import { requirementsOf } from './requirements.js';
import type { Run } from './run.js';
import { feePayerOf } from './transaction.js';

/** Builds requests to the facilitator. */
export class FacilitatorRequests {
  readonly #offers: Offers;

  constructor(offers: Offers) {
    this.#offers = offers;
  }

  request({ call }: Run): FacilitatorRequest {
    const { transaction, feePayer } = call.payment.checked;
    return { transaction, requirements: this.#offers.requirements(call.operation, feePayer) };
  }

  /** With the offer under which the payment was claimed, whatever the price is now. */
  repeatRequest({ transaction, flow, amount }: Row): FacilitatorRequest {
    const offered = { flow, price: { atomic: amount } };
    return {
      transaction,
      requirements: requirementsOf(offered, this.#offers.terms, feePayerOf(transaction)),
    };
  }
}
