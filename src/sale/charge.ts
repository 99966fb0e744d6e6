import { SharedBucket } from '../admission/admission.js';
import { UnsoldWork, type PayerAllowance } from '../admission/unsold-work.js';
import type { PricedOperation } from '../contract/contract.js';
import { atPrice } from '../contract/quoted.js';
import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Caller } from '../ledger/store.js';
import type { Carrier } from '../methods/method.js';
import type { Methods } from '../methods/methods.js';
import { UNOBSERVED } from '../observe/observer.js';
import { checkPayment, type PaymentCheck, type Payment } from './check-payment.js';
import type { Deps } from './deps.js';
import { HeldOrders } from './held-orders.js';
import { KeptAnswers } from './kept-answers.js';
import { MadePayments } from './made-payments.js';
import { moneyNote } from './next-step.js';
import { moneyIsWith, movedIn, unavailable, unfinished, type Outcome } from './outcome.js';
import type { PaidCall } from './paid-call.js';
import { PaidRequest, type Shared } from './paid-request.js';
import { pickUp, progressOf, type PickedUp, type Progress } from './pick-up.js';
import { Seller } from './seller.js';
import { SingleFlight } from './single-flight.js';
import { WaitingCallers } from './waiting-callers.js';

const NEW_PAYERS = { rate: 50, burst: 500 };
const DEFAULTS = {
  orders: undefined,
  blocked: new Set<string>(),
  workDeadlineMs: 20_000,
  leaseMs: 90_000,
  askAgainAfterMs: 5_000,
};

export type ChargeOptions = Pick<Deps, 'ledger' | 'rail' | 'log' | 'maxUnsettledPerPayer'> &
  Partial<Pick<Deps, 'observer' | 'now' | keyof typeof DEFAULTS>> & {
    methods: Methods;
    unknownPayers?: { rate: number; burst: number };
    /** For each backend, how many calls an hour may end unsold beyond their payers' own shares. Default 1 000. */
    unsoldPerHour?: number | undefined;
    /** How much work a wallet may cause without a purchase; see `UnsoldWork`. */
    unsoldPerPayer?: PayerAllowance;
  };

type OfferedBefore = { operation: PricedOperation; payment: Payment };

/**
 * Exchanges payments for answers. The row in the ledger decides what comes next (`next-step.ts`). If the payment has not bought anything
 * yet, it is claimed under the current offer (`seller.ts`) and one of the two flows runs (`flows.ts`). Each request is a caller of a
 * row (`waiting-callers.ts`) and gets the result of that row, whichever server works on it (`paid-request.ts`).
 */
export class Charge {
  readonly #deps: Deps;
  readonly #methods: Methods;
  readonly #shared: Shared;
  readonly #made: MadePayments;

  constructor(options: ChargeOptions) {
    const { methods, unknownPayers = NEW_PAYERS, unsoldPerHour: perHour, unsoldPerPayer: perPayer } = options;
    const own = { ...DEFAULTS, observer: UNOBSERVED, now: Date.now, ...options };
    const { ledger, rail, log, observer, now } = own;
    this.#methods = methods;
    this.#made = new MadePayments({ ledger, rail, log });
    this.#deps = {
      ...own,
      callers: new WaitingCallers({ ledger, log, now, emptied: id => void this.#abandon(id) }),
      answers: new KeptAnswers(ledger),
      unsoldWork: new UnsoldWork({ log, observer, now, perHour, perPayer }),
      newPayers: new SharedBucket(unknownPayers),
      newPayersWork: new SharedBucket(unknownPayers),
    };
    this.#shared = {
      seller: new Seller(this.#deps),
      held: new HeldOrders(),
      runs: new SingleFlight(),
      polls: new SingleFlight(),
      claiming: new Set(),
    };
  }

  /**
   * Reads and checks the payment of a request, locally unless the buyer names a transfer that was already sent. Never rejects.
   * @param source where the request comes from
   */
  checkPayment(carrier: Carrier, operation: PricedOperation, source = ''): Promise<PaymentCheck> {
    return checkPayment(this.#methods, this.#deps.rail, carrier, operation, (credential, made) =>
      this.#made.find(credential, made, source),
    );
  }

  /**
   * Compares a payment that does not match the current offer with the other prices that servers of this ledger offered in the last five
   * minutes.
   * @returns the operation at the price that the payment matches, if any; always undefined if the price depends on the call
   */
  async atOfferedPrice(carrier: Carrier, operation: PricedOperation): Promise<OfferedBefore | undefined> {
    if (operation.pricing.needsBody) return undefined;
    for (const atomic of await this.#offeredPrices(operation)) {
      const offered = atPrice(operation, atomic);
      const check = await this.checkPayment(carrier, offered);
      if (check.kind === 'payment') return { operation: offered, payment: check.payment };
    }
    return undefined;
  }

  /** Whether a payment that does not match the current offer was accepted under an earlier one. True if the ledger can't be read. */
  async isKnown({ checked }: Payment): Promise<boolean> {
    try {
      return (await this.#deps.ledger.find(checked.id)) !== undefined;
    } catch {
      return true;
    }
  }

  /** The sentence about the money for a call with an invalid body; see `moneyNote` in next-step.ts. Never rejects. */
  async moneyNote(payment: Payment): Promise<string> {
    try {
      const row = await this.#deps.ledger.find(payment.checked.id);
      return row?.state === 'released' ? moneyNote(row) : movedIn(payment, moneyNote(row));
    } catch (error) {
      this.#deps.log.warn({ error }, 'could not look up a payment in the ledger');
      return 'Correct the body and send it with the same payment.';
    }
  }

  /** Exchanges a payment for the answer of a call. Never rejects. */
  async process(call: PaidCall): Promise<Outcome> {
    this.#deps.rail.arrived(call.payment.checked);
    const outcome = await new PaidRequest(this.#deps, this.#shared, call).outcome();
    return this.#useUp(call.payment, moneyIsWith(call.payment, outcome));
  }

  /**
   * Answers 503 to a readable payment whose call has not been read, and says what the ledger knows about the money. `why` is a sentence
   * without its full stop. Never rejects.
   */
  async turnAway(payment: Payment, why: string, retryAfterSeconds: number): Promise<Outcome> {
    const { ledger, callers, log } = this.#deps;
    const { id, payer } = payment.checked;
    try {
      const { row, target } = await ledger.lookUp(id, payer);
      const worth = row?.aliasOf ? target : row;
      if (!worth)
        return moneyIsWith(
          payment,
          unavailable(`${why}. ${NOT_CHARGED}; send the same payment again`, retryAfterSeconds),
        );
      await callers.turnAway(id, payer);
      if (worth.state === 'settling' || worth.state === 'owed') {
        // No key is given, because only the payment was compared with the ledger, and anybody can copy a landed payment from the chain.
        return this.#useUp(payment, unfinished(worth));
      }
    } catch (error) {
      log.warn({ error }, 'could not look up a payment in the ledger');
      await callers.turnAway(id, payer);
    }
    return unavailable(`${why}. Send the same payment again`, retryAfterSeconds);
  }

  /** What a payment buys now, for someone who has the key of one of its callers instead of the payment (`pick-up.ts`). */
  pickUp(caller: Caller): Promise<PickedUp> {
    return pickUp(this.#deps, caller);
  }

  /** The progress of a payment's order (`pick-up.ts`). */
  progressOf(id: string): Promise<Progress | undefined> {
    return progressOf(this.#deps, id);
  }

  /** Resolves once nothing is in flight. */
  idle(): Promise<void> {
    return this.#shared.runs.idle();
  }

  /** If the outcome has a receipt, the money moved or may have moved, so the payment's blockhash is used up. */
  #useUp({ checked }: Payment, outcome: Outcome): Outcome {
    if (outcome.receipt) this.#deps.rail.moved(checked);
    return outcome;
  }

  async #offeredPrices({ id, price }: PricedOperation): Promise<bigint[]> {
    try {
      const prices = await this.#deps.ledger.offeredPrices(id);
      return prices.filter(each => each !== price.atomic);
    } catch (error) {
      this.#deps.log.warn({ error }, 'could not read the offered prices from the ledger');
      return [];
    }
  }

  /** Called when the last caller at this server has left. Stops the work unless a caller is waiting at another server. */
  async #abandon(id: string): Promise<void> {
    const { ledger, callers } = this.#deps;
    const { runs } = this.#shared;
    if (runs.get(id) === undefined) return;
    const row = ledger.shared ? await ledger.find(id).catch(() => undefined) : undefined;
    if (!row?.attended && callers.isEmpty(id)) runs.abandon(id);
  }
}
