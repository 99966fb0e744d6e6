import type { Payment as Row } from '../ledger/store.js';
import type { Called } from '../rails/rail.js';
import { requirementsOf, type Terms } from '../methods/x402/requirements.js';
import {
  destinationAccountOf,
  feePayerOf,
  receiverAccount,
  type CheckedTransaction,
} from '../rails/solana/transaction.js';
import type { FacilitatorRequest } from './facilitator.js';
import type { Listings } from './listings.js';

/** Builds requests to the facilitators. */
export class FacilitatorRequests {
  readonly #terms: Terms;
  /** The receivers by their token accounts. */
  readonly #receivers: ReadonlyMap<string, string>;
  readonly #listings: Listings | undefined;

  /**
   * @param receivers the current receiver and former ones
   * @param listings the entries for directories; without it, nothing is listed
   */
  constructor(terms: Terms, receivers: readonly string[], listings?: Listings) {
    this.#terms = terms;
    this.#listings = listings;
    const { asset } = terms;
    this.#receivers = new Map(receivers.map(payTo => [receiverAccount({ asset, payTo }), payTo]));
  }

  request(call: Called, { evidence, feePayer }: CheckedTransaction): FacilitatorRequest {
    const requirements = requirementsOf(call.operation, this.#terms, feePayer);
    return { transaction: evidence, requirements, listing: this.#listings?.of(call) };
  }

  /**
   * A request that repeats the offer under which the payment was claimed, whatever the current price and receiver are. It never
   * asks a directory to list the operation.
   */
  repeatRequest({ evidence, flow, amount }: Row): FacilitatorRequest {
    const offered = { flow, price: { atomic: amount } };
    const payTo = this.#receivers.get(destinationAccountOf(evidence)) ?? this.#terms.payTo;
    return {
      transaction: evidence,
      requirements: requirementsOf(offered, { ...this.#terms, payTo }, feePayerOf(evidence)),
    };
  }
}
