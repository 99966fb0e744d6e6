import { setTimeout as sleep } from 'node:timers/promises';
import type { Claim, Payment as Row } from '../ledger/store.js';
import type { Deps } from './deps.js';
import { redoOwedWork, runFlow } from './flows.js';
import type { HeldOrders } from './held-orders.js';
import { nextStep, nextStepForIdentifier, type RequestedCall, type NextStep } from './next-step.js';
import {
  failedToProcess,
  idleOrder,
  inProgress,
  isUnused,
  noLongerKept,
  overLimit,
  paidLess,
  pending,
  refused,
  sentTooOften,
  sold,
  stillOwed,
  unfinished,
  type Outcome,
  type Sale,
  type SharedOutcome,
  type Unsold,
} from './outcome.js';
import type { PaidCall } from './paid-call.js';
import type { RunResult } from './run.js';
import type { Seller } from './seller.js';
import { askAgain } from './settlement.js';
import type { SingleFlight } from './single-flight.js';
import type { WaitingCaller } from './waiting-callers.js';

/** How many callers of this server may wait for one payment. */
const MAX_CALLERS_PER_PAYMENT = 512;
/** The first interval, in ms, at which a row is polled while another server is working on it. The interval grows. */
const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 500;
const POLL_GROWTH = 2;
/** After this many consecutive changes of a row, polling slows down. */
const MAX_IMMEDIATE_POLLS = 8;
const MAX_ASKS = 2;

const NO_SALE: Sale = { written: () => {}, linked: async () => undefined, lost: async () => {} };

/** The state that all requests of a server share. */
export type Shared = {
  seller: Seller;
  held: HeldOrders;
  /** The runs of this server, by payment. Polls of rows that other servers are working on are shared, too. */
  runs: SingleFlight<RunResult>;
  polls: SingleFlight<void>;
  /** Payments that a request of this server is claiming. */
  claiming: Set<string>;
};

/** One request with a payment. */
export class PaidRequest {
  readonly #deps: Deps;
  readonly #shared: Shared;
  readonly #call: PaidCall;
  readonly #asked: RequestedCall;
  /** Until when (ms since 1970) the request waits for other workers. */
  readonly #until: number;
  /** Set while the ledger counts the request as a caller. */
  #waiting: WaitingCaller | undefined;
  /** Whether the ledger knows the payment and the payer. Until the ledger answers, the payment is assumed known. */
  #known = { payment: true, payer: false };
  #looked = false;
  #began = false;
  /** Whether the answer had been delivered before this request arrived. */
  #cameLate = false;
  #arrived = (): void => {};
  #nextPollMs = FIRST_POLL_MS;

  constructor(deps: Deps, shared: Shared, call: PaidCall) {
    const { operation, requestHash, payment } = call;
    this.#deps = deps;
    this.#shared = shared;
    this.#call = call;
    const { another } = deps.rail;
    const { identifier, challenge } = payment;
    this.#asked = { operation: operation.id, requestHash, identifier, challenge, another };
    this.#until = deps.now() + call.holdMs;
  }

  /** Never rejects. */
  async outcome(): Promise<Outcome> {
    try {
      this.#arrived = this.#deps.callers.announce(this.#call.payment.checked.id);
      return await this.#conclude(await this.#serve());
    } catch (error) {
      this.#deps.log.error({ error }, 'charge failed');
      return this.#conclude(failedToProcess(), true);
    }
  }

  /** Repeats the next step until there is an outcome. */
  async #serve(): Promise<SharedOutcome> {
    for (let polls = 0; ; polls++) {
      const ended = await this.#endOfRun();
      if (ended !== 'reread' && !this.#isOfAnother(ended)) return ended;
      const outcome = await this.#next(await this.#readNextStep());
      if (outcome) return outcome;
      if (polls >= MAX_IMMEDIATE_POLLS) await sleep(FIRST_POLL_MS);
    }
  }

  /** Waits for this server's run of the row. The caller that started it stays to the end, since a settlement requires a caller. */
  async #endOfRun(): Promise<RunResult> {
    const run = this.#waiting && this.#shared.runs.get(this.#waiting.caller.id);
    if (!run) return 'reread';
    if (this.#began) return run;
    const tooLong = new AbortController();
    const left = Math.max(0, this.#until - this.#deps.now());
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
    const { ledger, now } = this.#deps;
    if (this.#waiting) {
      const row = await ledger.find(this.#waiting.caller.id);
      if (!row) await this.#stopWaiting();
      if (row?.state === 'released' && this.#waitsForAnother) return { kind: 'sell' };
      // The payment became an alias of another one, and a newer copy of the request waits for that one.
      if (row && row.aliasOf !== null) return { kind: 'over', outcome: inProgress() };
      return nextStep({ row, target: undefined }, this.#asked, now());
    }
    const skips = !this.#looked && this.#shared.seller.maySkipLook(this.#call);
    this.#looked = true;
    if (skips) {
      this.#known.payer = true;
      return { kind: 'sell' };
    }
    const { id, payer } = this.#call.payment.checked;
    const seen = await ledger.lookUp(id, payer);
    this.#known = { payment: seen.row !== undefined, payer: seen.payerKnown };
    return nextStep(seen, this.#asked, now());
  }

  /** Carries out a step. @returns the outcome, or undefined to read the row again */
  async #next(step: NextStep): Promise<SharedOutcome | undefined> {
    const { requestId, payment } = this.#call;
    this.#deps.observer.tell({ kind: 'decided', requestId, payment: payment.checked.id, next: step.kind });
    if (step.kind === 'over') return step.outcome;
    if (step.kind === 'sell') {
      if (!this.#waitsForAnother) return this.#sell();
      // The other payment with the same payment-identifier bought nothing, so this request's own payment may buy the call.
      await this.#stopWaiting();
      return this.#isOver() ? inProgress() : undefined;
    }
    const { row, proven } = step;
    if (step.kind === 'found') return this.#giveCall(row);
    if (!this.#waiting) {
      this.#cameLate = step.kind === 'answer';
      return this.#wait(row, proven);
    }
    if (step.kind === 'answer') return this.#redeliver(row);
    if (step.kind === 'order') return this.#holdForOrder(row);
    if (this.#isOver()) return unfinished(row);
    if (step.kind === 'redo') this.#start(row.id, () => redoOwedWork(this.#deps, row.id, this.#call));
    else if (step.kind === 'ask') return this.#askAgain(row);
    else await this.#waitForChange(row.id);
    return undefined;
  }

  /**
   * The ledger had lost the payment and found it on chain, so the payment is known to be paid, but not for which call. It pays for the
   * call of this request if it covers the price.
   */
  async #giveCall({ id, amount }: Row): Promise<SharedOutcome | undefined> {
    const { operation, requestHash, payment, upfront } = this.#call;
    if (amount < operation.price.atomic) return paidLess();
    const { identifier, method, checked } = payment;
    await this.#deps.ledger.giveCall(id, {
      payer: checked.payer,
      operation: operation.id,
      requestHash,
      request: upfront?.request ?? null,
      flow: operation.flow,
      identifier,
      method: method.name,
    });
    return undefined;
  }

  /** Registers the request as a caller of a row. */
  async #wait({ id }: Row, proven: boolean): Promise<SharedOutcome | undefined> {
    const { ledger, callers } = this.#deps;
    const watched = await ledger.addCaller(id, { proven, requestId: this.#call.requestId });
    if (!watched) return this.#isOver() ? inProgress() : undefined;
    this.#waiting = callers.add(watched.caller, this.#call.gone);
    this.#arrived();
    return callers.count(id) > MAX_CALLERS_PER_PAYMENT ? inProgress() : undefined;
  }

  /** Whether the request waits for the answer of a payment other than its own. */
  get #waitsForAnother(): boolean {
    return this.#waiting !== undefined && this.#waiting.caller.id !== this.#call.payment.checked.id;
  }

  /** Whether the run of another payment ended without a sale, which says nothing about this request's own payment. */
  #isOfAnother(ended: SharedOutcome): boolean {
    return this.#waitsForAnother && (ended.kind === 'refused' || ended.receipt === undefined);
  }

  async #stopWaiting(): Promise<void> {
    await this.#waiting?.leave();
    this.#waiting = undefined;
  }

  /** Claims a payment that has bought nothing yet, under the current offer, and starts the run. */
  async #sell(): Promise<SharedOutcome | undefined> {
    const { rail, observer, now } = this.#deps;
    const { seller, claiming, runs } = this.#shared;
    const call = this.#call;
    const { id } = call.payment.checked;
    if (call.gone.aborted) return inProgress();
    // Waits for this server's earlier run, whose lease has ended or which has just freed its claim, before another one starts.
    if (claiming.has(id) || runs.get(id)) {
      await this.#waitForChange(id);
      return undefined;
    }
    const instead = seller.refusalBeforeClaim(call, this.#known.payer);
    if (instead) return instead;
    claiming.add(id);
    const claimed = await observer
      .step('claim', call, () => seller.claim(call, this.#waiting?.caller))
      .finally(() => claiming.delete(id));
    if (claimed.kind === 'limit') return overLimit(claimed.reason);
    if (claimed.kind === 'unoffered') return refused(rail.unoffered(call.payment.checked));
    if (claimed.kind === 'identifier') {
      await this.#stopWaiting();
      return this.#next(nextStepForIdentifier(claimed.payment, this.#asked, now()));
    }
    if (claimed.kind === 'known') {
      const { row } = claimed.seen;
      // No worker holds the row, and the newest copy of this request got a 503, so this older copy gets one, too.
      return this.#waiting && row?.state === 'claimed' && !row.leased ? inProgress() : undefined;
    }
    this.#begin(claimed);
    return undefined;
  }

  #begin({ claim, run: number, payerKnown, earlier, caller }: Claim): void {
    const call = this.#call;
    const { id } = call.payment.checked;
    this.#waiting ??= this.#deps.callers.add(caller, call.gone);
    this.#began = true;
    this.#start(id, abandoned =>
      runFlow(this.#deps, { call, id, claim, number, payerKnown, earlier, abandoned }),
    );
    this.#arrived();
  }

  /** Starts a run of a row, unless there is one. */
  #start(payment: string, run: (abandoned: AbortSignal) => Promise<RunResult>): void {
    this.#shared.runs.start(payment, abandoned =>
      run(abandoned).catch((error: unknown) => {
        this.#deps.log.error({ payment, error }, 'charge failed');
        return failedToProcess();
      }),
    );
  }

  /** Sends a second settle request for a payment whose settlement is unresolved, while it can still land. */
  #askAgain(row: Row): SharedOutcome | undefined {
    const { rail, now, askAgainAfterMs } = this.#deps;
    const due = now() - (row.settlingAt ?? 0) >= askAgainAfterMs;
    if (row.asks >= MAX_ASKS || !due || !rail.maySettleAgain(row)) return pending(row);
    this.#start(row.id, () => askAgain(this.#deps, row.id));
    return undefined;
  }

  async #redeliver(row: Row): Promise<SharedOutcome> {
    const kept = await this.#deps.answers.get(row.id);
    if (!kept) return noLongerKept();
    const wait = this.#cameLate ? this.#call.again?.(row.id, kept.body.length) : 0;
    return wait ? sentTooOften(row, wait) : sold(row, kept);
  }

  /** Waits for an order for as long as the caller asked. After that, the caller can come back with the same payment. */
  async #holdForOrder(row: Row): Promise<SharedOutcome | undefined> {
    const { orders, now } = this.#deps;
    const { held } = this.#shared;
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
    const { polls } = this.#shared;
    const ms = this.#nextPollMs;
    polls.start(id, () => this.#deps.ledger.changeOf(id, ms));
    await polls.get(id);
    this.#nextPollMs = Math.min(ms * POLL_GROWTH, LONGEST_POLL_MS);
  }

  /** Whether the request has stopped waiting for other workers. */
  #isOver(): boolean {
    const { gone, closing } = this.#call;
    return gone.aborted || closing?.aborted === true || this.#deps.now() >= this.#until;
  }

  /**
   * A caller that gets a sold answer leaves once the answer is written out; any other caller leaves now. Only an outcome with a receipt has an answer
   * that can be fetched later, because the money then moved or may have moved.
   */
  async #conclude(outcome: SharedOutcome, failed = false): Promise<Outcome> {
    this.#arrived();
    const waiting = this.#waiting;
    const isRefused = outcome.kind === 'refused';
    const kept = waiting && outcome.receipt && !isRefused ? { kept: waiting.caller } : {};
    if (outcome.kind === 'sold') {
      const { operation, requestHash } = this.#call;
      const call = { operation: operation.id, requestHash };
      return { ...outcome, ...kept, call, sale: waiting ?? NO_SALE };
    }
    await this.#leave(outcome, failed);
    return { ...outcome, ...kept };
  }

  /** Records in the ledger that the caller is leaving, before it gets its answer. */
  async #leave(outcome: Unsold, failed: boolean): Promise<void> {
    const isRefused = outcome.kind === 'refused';
    const sentAway = outcome.kind === 'unavailable' || (isRefused && isUnused(outcome));
    if (!this.#waiting && sentAway && (this.#known.payment || failed)) {
      const { id, payer } = this.#call.payment.checked;
      await this.#deps.callers.turnAway(id, payer);
    }
    // A released row has no callers to record.
    if (isRefused && outcome.receipt) this.#waiting?.close();
    else await this.#waiting?.leave();
  }
}
