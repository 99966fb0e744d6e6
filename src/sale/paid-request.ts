import type { Log } from '../net/log.js';
import type { Observer } from '../observe/observer.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Caller, Claim, Ledger, Payment as Row } from '../ledger/store.js';
import type { WaitingCallers, WaitingCaller } from './waiting-callers.js';
import type { Rail } from '../rails/rail.js';
import type { Flows } from './flows.js';
import type { HeldOrders } from './held-orders.js';
import { nextStep, nextStepForIdentifier, type RequestedCall, type NextStep } from './next-step.js';
import type { KeptAnswers } from './kept-answers.js';
import type { OrderWorker } from './order-worker.js';
import { failedToProcess, inProgress, overLimit, refused, type Outcome, type Sale } from './outcome.js';
import type { PaidCall } from './paid-call.js';
import type { RunResult } from './run.js';
import type { Seller } from './seller.js';
import type { SingleFlight } from './single-flight.js';
import {
  idleOrder,
  pending,
  refunded,
  sameForAll,
  sentTooOften,
  sold,
  stillOwed,
  type SharedOutcome,
} from './shared-outcome.js';

/** How many callers of this server may wait for one payment. */
const MAX_CALLERS_PER_PAYMENT = 512;
/** The first interval, in ms, at which a row that another server works on is polled. The interval grows. */
const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 500;
const POLL_GROWTH = 1.5;
/** After this many consecutive changes of a row, polling slows down. */
const MAX_IMMEDIATE_POLLS = 8;
const ASK_AGAIN_AFTER_MS = 5_000;
const MAX_ASKS = 2;

/** For outcomes without a sale. */
export const NO_SALE: Sale = { written: () => {}, linked: async () => undefined, lost: async () => {} };

export type PaidRequestParts = {
  ledger: Ledger;
  rail: Rail;
  seller: Seller;
  flows: Flows;
  callers: WaitingCallers;
  held: HeldOrders;
  answers: KeptAnswers;
  /** The runs of this server, by payment. Polls of rows that other servers work on are shared, too. */
  runs: SingleFlight<RunResult>;
  polls: SingleFlight<void>;
  /** Payments that a request of this server is claiming. */
  claiming: Set<string>;
  orders?: OrderWorker | undefined;
  log: Log;
  observer: Observer;
  now: () => number;
  askAgainAfterMs?: number | undefined;
};

/** One request with a payment. */
export class PaidRequest {
  readonly #parts: PaidRequestParts;
  readonly #call: PaidCall;
  readonly #asked: RequestedCall;
  /** How long (ms since 1970) it waits for other workers. */
  readonly #until: number;
  /** Set while the ledger has it as a caller. */
  #waiting: WaitingCaller | undefined;
  /** Whether the payment was looked up in the ledger. */
  #looked = false;
  /** False once the ledger has answered that it does not know the payment. */
  #mayBeKnown = true;
  #payerKnown = false;
  #began = false;
  /** Whether the answer had been delivered before it came. */
  #cameLate = false;
  #arrived = (): void => {};
  #nextPollMs = FIRST_POLL_MS;

  constructor(parts: PaidRequestParts, call: PaidCall) {
    const { operation, requestHash, payment } = call;
    this.#parts = parts;
    this.#call = call;
    const { another } = parts.rail;
    this.#asked = { operation: operation.id, requestHash, identifier: payment.identifier, another };
    this.#until = parts.now() + call.holdMs;
  }

  /** Never rejects. */
  async outcome(): Promise<Outcome> {
    try {
      this.#arrived = this.#parts.callers.announce(this.#call.payment.checked.id);
      return await this.#conclude(await this.#serve());
    } catch (error) {
      this.#parts.log.error({ error }, 'charge failed');
      return this.#conclude(sameForAll(failedToProcess()), true);
    }
  }

  /** Repeats the next step until there is an outcome. */
  async #serve(): Promise<SharedOutcome> {
    for (let polls = 0; ; polls++) {
      const ended = await this.#endOfRun();
      if (ended !== 'reread' && !this.#refusesAnother(ended)) return ended;
      const shared = await this.#next(await this.#readNextStep());
      if (shared) return shared;
      if (polls >= MAX_IMMEDIATE_POLLS) await sleep(FIRST_POLL_MS);
    }
  }

  /** Waits for this server's run of the row. The caller that started it stays to the end, since a settlement requires a caller. */
  async #endOfRun(): Promise<RunResult> {
    const run = this.#waiting && this.#parts.runs.get(this.#waiting.caller.id);
    if (!run) return 'reread';
    if (this.#began) return run;
    const tooLong = new AbortController();
    const left = Math.max(0, this.#until - this.#parts.now());
    const late = sleep(left, 'reread' as const, { signal: tooLong.signal, ref: false });
    try {
      return await Promise.race([run, late]);
    } finally {
      tooLong.abort();
      late.catch(() => {});
    }
  }

  /** Reads the row that the request waits for, or the row of its payment, and decides the next step. */
  async #readNextStep(): Promise<NextStep> {
    const { ledger, seller, now } = this.#parts;
    if (this.#waiting) {
      const row = await ledger.find(this.#waiting.caller.id);
      if (!row) this.#stopWaiting();
      if (row?.state === 'released' && this.#waitsForAnother) return { kind: 'sell' };
      // Its payment became an alias of another one, and a newer copy of the request waits for that one.
      if (row && row.aliasOf !== null) return { kind: 'over', outcome: inProgress() };
      return nextStep({ row, target: undefined }, this.#asked, now());
    }
    if (!this.#looked && seller.maySkipLook(this.#call)) {
      this.#looked = true;
      this.#payerKnown = true;
      return { kind: 'sell' };
    }
    const { id, payer } = this.#call.payment.checked;
    const seen = await ledger.lookUp(id, payer);
    this.#looked = true;
    this.#payerKnown = seen.payerKnown;
    this.#mayBeKnown = seen.row !== undefined;
    return nextStep(seen, this.#asked, now());
  }

  /** Carries out a step. @returns the outcome, or undefined to read the row again */
  async #next(step: NextStep): Promise<SharedOutcome | undefined> {
    const { requestId, payment } = this.#call;
    this.#parts.observer.tell({ kind: 'decided', requestId, payment: payment.checked.id, next: step.kind });
    if (step.kind === 'over') return sameForAll(step.outcome);
    if (step.kind === 'refunded') return refunded(step.row);
    if (step.kind === 'sell') {
      if (!(await this.#returned())) return this.#sell();
      return this.#isOver() ? sameForAll(inProgress()) : undefined;
    }
    const { row, proven } = step;
    if (!this.#waiting) {
      this.#cameLate = step.kind === 'answer';
      return this.#wait(row, proven);
    }
    if (step.kind === 'answer') return this.#redeliver(row);
    if (step.kind === 'order') return this.#holdForOrder(row);
    if (this.#isOver()) return unfinished(row);
    const { runs, flows } = this.#parts;
    if (step.kind === 'redo') runs.start(row.id, () => this.#safely(flows.redoOwedWork(row.id, this.#call)));
    else if (step.kind === 'ask') return this.#askAgain(row);
    else await this.#waitForChange(row.id);
    return undefined;
  }

  /** Becomes a caller of a row. */
  async #wait({ id }: Row, proven: boolean): Promise<SharedOutcome | undefined> {
    const { ledger, callers } = this.#parts;
    const watched = await ledger.addCaller(id, { proven });
    if (!watched) return this.#isOver() ? sameForAll(inProgress()) : undefined;
    this.#waiting = callers.add(watched.caller, this.#call.gone);
    this.#arrived();
    return callers.count(id) > MAX_CALLERS_PER_PAYMENT ? sameForAll(inProgress()) : undefined;
  }

  /** If the other payment with the same payment-identifier was not sold: stops waiting for it, so that its own may be sold. */
  async #returned(): Promise<boolean> {
    if (!this.#waiting || !this.#waitsForAnother) return false;
    await this.#waiting.leave();
    this.#waiting = undefined;
    return true;
  }

  /** Whether it waits for the answer of another payment than its own. */
  get #waitsForAnother(): boolean {
    return this.#waiting !== undefined && this.#waiting.caller.id !== this.#call.payment.checked.id;
  }

  /** Whether a run ended with a refusal of another payment, which says nothing about its own. */
  #refusesAnother(ended: SharedOutcome): boolean {
    return this.#waitsForAnother && ended(NO_SALE).kind === 'refused';
  }

  #stopWaiting(): void {
    this.#waiting?.close();
    this.#waiting = undefined;
  }

  /** Nothing was sold for this payment: claims it under the current offer and starts the run. */
  async #sell(): Promise<SharedOutcome | undefined> {
    const { rail, seller, claiming, runs, now, observer } = this.#parts;
    const call = this.#call;
    const { id } = call.payment.checked;
    if (call.gone.aborted) return sameForAll(inProgress());
    // A run whose lease has ended, or that has just freed its claim, must be over before another one starts.
    if (claiming.has(id) || runs.get(id)) {
      await this.#waitForChange(id);
      return undefined;
    }
    const instead = seller.refusalBeforeClaim(call, this.#payerKnown);
    if (instead) return sameForAll(instead);
    claiming.add(id);
    const claimed = await observer
      .step('claim', call, () => seller.claim(call, this.#waiting?.caller))
      .finally(() => claiming.delete(id));
    if (claimed.kind === 'limit') return sameForAll(overLimit(claimed.reason));
    if (claimed.kind === 'unoffered') return sameForAll(refused(rail.unoffered(call.payment.checked)));
    if (claimed.kind === 'identifier') {
      await this.#waiting?.leave();
      this.#waiting = undefined;
      return this.#next(nextStepForIdentifier(claimed.payment, this.#asked, now()));
    }
    if (claimed.kind === 'known') {
      const { row } = claimed.seen;
      // The row is idle and its newest copy was answered with 503, so this older one is, too.
      return this.#waiting && row?.state === 'claimed' && !row.leased ? sameForAll(inProgress()) : undefined;
    }
    this.#begin(claimed);
    return undefined;
  }

  #begin({ claim, run: number, payerKnown, earlier, caller }: Claim): void {
    const { callers, runs, flows } = this.#parts;
    const call = this.#call;
    const { id } = call.payment.checked;
    this.#waiting ??= callers.add(caller, call.gone);
    this.#began = true;
    runs.start(id, abandoned => {
      const run = { call, id, claim, number, payerKnown, earlier, abandoned };
      return this.#safely(call.operation.flow === 'upfront' ? flows.upfront(run) : flows.authorization(run));
    });
    this.#arrived();
  }

  /** The settlement is unresolved: sends a second settle request while the payment can still land. */
  #askAgain(row: Row): SharedOutcome | undefined {
    const { rail, flows, runs, now, askAgainAfterMs = ASK_AGAIN_AFTER_MS } = this.#parts;
    const due = now() - (row.settlingAt ?? 0) >= askAgainAfterMs;
    if (row.asks >= MAX_ASKS || !due || !rail.maySettleAgain(row)) return pending(row);
    runs.start(row.id, () => this.#safely(flows.askAgain(row.id)));
    return undefined;
  }

  async #redeliver(row: Row): Promise<SharedOutcome> {
    const kept = await this.#parts.answers.get(row.id);
    if (kept) {
      const wait = this.#cameLate ? this.#call.again?.(row.id, kept.body.length) : 0;
      return wait ? sentTooOften(row, wait) : sold(row, kept);
    }
    return sameForAll(
      refused('this payment was used and its answer is no longer kept: sign a new one', false),
    );
  }

  /** Waits for an order for as long as the caller asked; after that it can come back with the same payment. */
  async #holdForOrder(row: Row): Promise<SharedOutcome | undefined> {
    const { orders, held, now } = this.#parts;
    const { gone, closing, requestId } = this.#call;
    const instead = await orders?.take(row, requestId);
    if (instead) return idleOrder(row, instead);
    if (!orders || this.#isOver() || !held.hold(row.id)) return stillOwed(row);
    try {
      const leaving = closing ? AbortSignal.any([gone, closing]) : gone;
      const ended = await orders.wait(row.id, this.#until - now(), leaving);
      return ended && idleOrder(row, ended);
    } finally {
      held.release(row.id);
    }
  }

  /** All callers of one row share one poll. */
  async #waitForChange(id: string): Promise<void> {
    const { polls } = this.#parts;
    const ms = this.#nextPollMs;
    polls.start(id, () => sleep(ms));
    await polls.get(id);
    this.#nextPollMs = Math.min(ms * POLL_GROWTH, LONGEST_POLL_MS);
  }

  /** Whether it has stopped waiting for other workers. */
  #isOver(): boolean {
    const { gone, closing } = this.#call;
    return gone.aborted || closing?.aborted === true || this.#parts.now() >= this.#until;
  }

  async #safely(flow: Promise<RunResult>): Promise<RunResult> {
    try {
      return await flow;
    } catch (error) {
      this.#parts.log.error({ payment: this.#call.payment.checked.id, error }, 'charge failed');
      return sameForAll(failedToProcess());
    }
  }

  /** Records in the ledger that the caller leaves before it is answered. A caller with a sold answer waits until it is written out. */
  async #conclude(shared: SharedOutcome, failed = false): Promise<Outcome> {
    const { callers } = this.#parts;
    this.#arrived();
    const outcome = withKept(shared(this.#waiting ?? NO_SALE), this.#waiting?.caller);
    if ('sale' in outcome) return outcome;
    const sentAway = outcome.kind === 'unavailable' || (outcome.kind === 'refused' && outcome.fresh);
    if (sentAway && !this.#waiting && (this.#mayBeKnown || failed)) {
      const { id, payer } = this.#call.payment.checked;
      await callers.turnAway(id, payer);
    }
    // The row is released, so there is nothing to record.
    if (outcome.kind === 'refused' && outcome.receipt !== undefined) this.#stopWaiting();
    else await this.#waiting?.leave();
    return outcome;
  }
}

/** A receipt says that the money has moved or may have: only then something is kept for the payment, or will be. */
function withKept(outcome: Outcome, kept: Caller | undefined): Outcome {
  if (!kept || (outcome.kind !== 'answer' && outcome.kind !== 'unavailable')) return outcome;
  return outcome.receipt === undefined ? outcome : { ...outcome, kept };
}

/** The outcome for a caller whose wait has ended. */
export function unfinished(row: Row): SharedOutcome {
  if (row.state === 'settling') return pending(row);
  return row.state === 'owed' ? stillOwed(row) : sameForAll(inProgress());
}
