import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Log } from '../net/log.js';
import { UNOBSERVED, type Observer } from '../observe/observer.js';
import type { PricedOperation } from '../contract/contract.js';
import type { Caller, Ledger } from '../ledger/store.js';
import { SharedBucket } from '../admission/admission.js';
import { WaitingCallers } from './waiting-callers.js';
import type { Carrier } from '../methods/method.js';
import type { Methods } from '../methods/methods.js';
import type { Rail } from '../rails/rail.js';
import { PaymentChecker, type PaymentCheck, type Payment } from './check-payment.js';
import { Flows } from './flows.js';
import { HeldOrders } from './held-orders.js';
import { moneyNote } from './next-step.js';
import { KeptAnswers } from './kept-answers.js';
import type { OrderWorker } from './order-worker.js';
import { unavailable, type Outcome } from './outcome.js';
import type { PaidCall } from './paid-call.js';
import { NO_SALE, PaidRequest, unfinished, type PaidRequestParts } from './paid-request.js';
import { pickUp, progressOf, type PickedUp, type Progress } from './pick-up.js';
import { Seller } from './seller.js';
import { SingleFlight } from './single-flight.js';
import { UnsoldWork, type PayerAllowance } from '../admission/unsold-work.js';

/** Shared by all payers that have never paid, because their wallets may be empty. */
const NEW_PAYERS = { rate: 50, burst: 500 };

export type ChargeParts = {
  ledger: Ledger;
  rail: Rail;
  methods: Methods;
  log: Log;
  observer?: Observer;
  maxUnsettledPerPayer: number;
  /** Without it, `upfront` operations answer 503. */
  orders?: OrderWorker;
  unknownPayers?: { rate: number; burst: number };
  /** How many calls an hour may end unsold beyond the share of their payers, for each backend. Default 1 000. */
  unsoldPerHour?: number | undefined;
  /** What a wallet may have done without a purchase; see `UnsoldWork`. */
  unsoldPerPayer?: PayerAllowance;
  /** How long the work may take. Default 20 s. */
  workDeadlineMs?: number;
  /** Longer than verify, work and settle may take together. Default 90 s. */
  leaseMs?: number;
  /** How long after the first settle request the second one may be sent. Default 5 s. */
  askAgainAfterMs?: number;
  now?: () => number;
};

/**
 * Exchanges payments for answers. The row in the ledger decides what comes next (`next-step.ts`). If nothing was sold for the payment
 * yet, it is claimed under the current offer (`seller.ts`) and one of the two flows runs (`flows.ts`). Each request is a caller of a
 * row (`waiting-callers.ts`) and gets the result of that row, whichever server works on it (`paid-request.ts`).
 */
export class Charge {
  readonly #ledger: Ledger;
  readonly #rail: Rail;
  readonly #log: Log;
  readonly #paymentChecker: PaymentChecker;
  readonly #parts: PaidRequestParts;

  constructor(parts: ChargeParts) {
    const { ledger, rail, log, now = Date.now, unknownPayers = NEW_PAYERS, observer = UNOBSERVED } = parts;
    this.#ledger = ledger;
    this.#rail = rail;
    this.#log = log;
    this.#paymentChecker = new PaymentChecker(parts);
    const callers = new WaitingCallers({ ledger, log, now, emptied: id => void this.#abandon(id) });
    const unsoldWork = new UnsoldWork({
      log,
      observer,
      now,
      perHour: parts.unsoldPerHour,
      perPayer: parts.unsoldPerPayer,
    });
    const flows = new Flows({
      ...parts,
      observer,
      now,
      callers,
      unsoldWork,
      newPayersWork: new SharedBucket(unknownPayers),
    });
    this.#parts = {
      ledger,
      rail,
      log,
      observer,
      now,
      callers,
      flows,
      seller: new Seller({
        ...parts,
        unsoldWork,
        newPayers: new SharedBucket(unknownPayers),
        leaseMs: flows.leaseMs,
      }),
      held: new HeldOrders(),
      answers: new KeptAnswers(ledger),
      runs: new SingleFlight(),
      polls: new SingleFlight(),
      claiming: new Set(),
      orders: parts.orders,
      askAgainAfterMs: parts.askAgainAfterMs,
    };
  }

  /** Reads and checks the payment of a request locally. Never rejects. */
  checkPayment(carrier: Carrier, operation: PricedOperation): Promise<PaymentCheck> {
    return this.#paymentChecker.check(carrier, operation);
  }

  /** Whether a payment that does not match the current offer was accepted under an earlier one. True if the ledger can't be read. */
  async isKnown({ checked }: Payment): Promise<boolean> {
    try {
      return (await this.#ledger.find(checked.id)) !== undefined;
    } catch {
      return true;
    }
  }

  /** What to say about the money when the body is invalid; see `moneyNote` in next-step.ts. Never rejects. */
  async moneyNote({ checked }: Payment): Promise<string> {
    try {
      return moneyNote(await this.#ledger.find(checked.id));
    } catch (error) {
      this.#log.warn({ error }, 'could not look up a payment in the ledger');
      return 'Correct the body and send it with the same payment.';
    }
  }

  /** Exchanges a payment for the answer of a call. Never rejects. */
  async process(call: PaidCall): Promise<Outcome> {
    this.#rail.arrived(call.payment.checked);
    return this.#useUp(call.payment, await new PaidRequest(this.#parts, call).outcome());
  }

  /**
   * Answers 503 to a readable payment whose call has not been read, with what the ledger knows about the money. `why` is a sentence
   * without its full stop. Never rejects.
   */
  async turnAway(payment: Payment, why: string, retryAfterSeconds: number): Promise<Outcome> {
    const { id, payer } = payment.checked;
    try {
      const { row, target } = await this.#ledger.lookUp(id, payer);
      const worth = row?.aliasOf ? target : row;
      if (!worth)
        return unavailable(`${why}. ${NOT_CHARGED}; send the same payment again`, retryAfterSeconds);
      await this.#parts.callers.turnAway(id, payer);
      if (worth.state === 'settling' || worth.state === 'owed') {
        // Nothing but the payment was compared with the ledger, and once it has landed anybody can send that: no key is given.
        return this.#useUp(payment, unfinished(worth)(NO_SALE));
      }
    } catch (error) {
      this.#log.warn({ error }, 'could not look up a payment in the ledger');
      await this.#parts.callers.turnAway(id, payer);
    }
    return unavailable(`${why}. Send the same payment again`, retryAfterSeconds);
  }

  /** What a payment is worth, for somebody who has the key of one of its callers instead of the payment (`pick-up.ts`). */
  pickUp(caller: Caller): Promise<PickedUp> {
    return pickUp(this.#parts, caller);
  }

  /** How far the order of a payment is (`pick-up.ts`). */
  progressOf(id: string): Promise<Progress | undefined> {
    return progressOf(this.#parts, id);
  }

  /** Resolves once nothing is in flight. */
  idle(): Promise<void> {
    return this.#parts.runs.idle();
  }

  /** A receipt says that the money moved or may have moved. */
  #useUp({ checked }: Payment, outcome: Outcome): Outcome {
    if ('receipt' in outcome && outcome.receipt) this.#rail.moved(checked);
    return outcome;
  }

  /** The last caller at this server has left: stops the work unless a caller waits at another server. */
  async #abandon(id: string): Promise<void> {
    const { runs, callers } = this.#parts;
    if (runs.get(id) === undefined) return;
    const row = this.#ledger.shared ? await this.#ledger.find(id).catch(() => undefined) : undefined;
    if (!row?.attended && callers.isEmpty(id)) runs.abandon(id);
  }
}
