import { LRUCache } from 'lru-cache';
import type { UsedUp } from '../admission/unsold-work.js';
import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Caller, ClaimResult, ClaimRequest } from '../ledger/store.js';
import type { Deps } from './deps.js';
import {
  blockedPayer,
  facilitatorDown,
  MAX_RUNS,
  refused,
  tooManyNewPayers,
  tooMuchUnsoldWork,
  unavailable,
  type Unsold,
} from './outcome.js';
import { partyOf, type PaidCall } from './paid-call.js';

/** The most that one payer may have in unsettled payments, in atomic units: 100 USDC. */
const MAX_UNSETTLED_AMOUNT = 100_000_000n;

/** How many known payers are cached, and for how long. */
const REGULARS = { max: 10_000, ttl: 60_000 };

/** Claims payments that have bought nothing yet, under the current offer. */
export class Seller {
  /** Payers that were already known at their last claim. */
  readonly #regulars = new LRUCache<string, true>(REGULARS);
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The refusal, if the payment can be refused without reading the ledger. */
  refusalBeforeClaim(call: PaidCall, payerKnown: boolean): Unsold | undefined {
    const usedUp = this.#usedUp(call, payerKnown);
    const refusal = this.#refusal(call, payerKnown, usedUp);
    if (usedUp && refusal?.kind === 'unavailable' && refusal.reportedBy === 'limit')
      this.#deps.unsoldWork.turnedAway(partyOf(call, payerKnown), usedUp);
    return refusal;
  }

  #refusal(call: PaidCall, payerKnown: boolean, usedUp: UsedUp | undefined): Unsold | undefined {
    const { rail, newPayers } = this.#deps;
    const { checked, mismatch } = call.payment;
    if (call.closing?.aborted) {
      return unavailable(`The server is shutting down. ${NOT_CHARGED}; send the same payment again`, 5);
    }
    if (this.#deps.blocked.has(checked.payer)) return blockedPayer();
    if (mismatch !== undefined) return refused(mismatch);
    if (!rail.position()) {
      return unavailable(`The chain can't be reached. ${NOT_CHARGED}; send the same payment again`, 5);
    }
    const outage = rail.outage(checked);
    if (outage) return facilitatorDown(outage);
    if (usedUp) return tooMuchUnsoldWork(usedUp);
    if (!payerKnown && !newPayers.take(call.source ?? '')) return tooManyNewPayers();
    return undefined;
  }

  /**
   * Whether to claim without reading the row first. Nearly all payments of a known payer are new and match the offer; the claim reports
   * the exceptions.
   */
  maySkipLook(call: PaidCall): boolean {
    const isRegular = this.#regulars.has(call.payment.checked.payer);
    return isRegular && this.#refusal(call, true, this.#usedUp(call, true)) === undefined;
  }

  /** Reserves the payment. `caller`: set if the request is already waiting for the row. */
  async claim(call: PaidCall, caller: Caller | undefined): Promise<ClaimResult> {
    const { payer } = call.payment.checked;
    const claimed = await this.#deps.ledger.claim(this.#request(call), caller);
    if (claimed.kind !== 'claimed') return claimed;
    if (claimed.payerKnown) this.#regulars.set(payer, true);
    else this.#regulars.delete(payer);
    return claimed;
  }

  /** Work paid up front never counts as unsold. */
  #usedUp(call: PaidCall, payerKnown: boolean): UsedUp | undefined {
    if (call.operation.flow === 'upfront') return undefined;
    return this.#deps.unsoldWork.usedUp(partyOf(call, payerKnown));
  }

  #request({ operation, payment, requestHash, requestId, upfront }: PaidCall): ClaimRequest {
    const { rail, maxUnsettledPerPayer, leaseMs } = this.#deps;
    const position = rail.position();
    if (!position) throw new Error('the view of the chain is too old');
    const { checked, method, identifier } = payment;
    return {
      id: checked.id,
      operation: operation.id,
      requestHash,
      payer: checked.payer,
      amount: operation.price.atomic,
      network: rail.network,
      method: method.name,
      evidence: checked.evidence,
      identifier,
      requestId,
      flow: operation.flow,
      request: upfront?.request ?? null,
      ...position,
      leaseMs,
      hint: rail.formerHint(payment.checked),
      limits: {
        maxUnsettledPerPayer,
        maxUnsettledAmountPerPayer: MAX_UNSETTLED_AMOUNT,
        maxRuns: MAX_RUNS,
      },
    };
  }
}
