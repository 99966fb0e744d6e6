import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Log } from '../net/log.js';
import type { Ledger } from '../ledger/store.js';
import type { SharedBucket, UnpaidWork } from './admission.js';
import type { BlockhashLife } from './blockhash-life.js';
import type { WaitingCallers } from './waiting-callers.js';
import type { Facilitator, VerifyResult } from './facilitator.js';
import {
  explain,
  failure,
  refused,
  tooManyNewPayers,
  tooMuchUnpaidWork,
  unavailable,
  type Answer,
  type Success,
} from './outcome.js';
import type { PaidCall } from './paid-call.js';
import { RunEnded, type Run, type RunCleanup } from './run.js';
import type { FacilitatorRequests } from './settlement.js';
import { sameForAll } from './shared-outcome.js';

const WORK_DEADLINE_MS = 20_000;
/** The number of blocks that the longest work takes. A transaction with fewer left may expire before it is settled. */
const WORK_BLOCKS = 50;

export type BlocksLeft = BlockhashLife['blocksLeft'];

const TOO_OLD = `the blockhash would expire before the work is done. ${NOT_CHARGED}; sign again with the blockhash in this challenge`;

/** The work was not done by its deadline. */
class TooLate extends Error {}

export type WorkParts = {
  ledger: Ledger;
  facilitator: Facilitator;
  requests: FacilitatorRequests;
  callers: Pick<WaitingCallers, 'removeAll'>;
  cleanup: RunCleanup;
  log: Log;
  now: () => number;
  /** Shared by all payers that have never paid, because their wallets may be empty. */
  newPayersWork: SharedBucket;
  unpaidWork: UnpaidWork;
  blocksLeft?: BlocksLeft;
  workDeadlineMs?: number;
  leaseMs: number;
};

/** The steps before settlement: verify and the work. A step that can't continue ends the run. */
export class Work {
  readonly #parts: WorkParts;
  readonly #deadlineMs: number;

  constructor(parts: WorkParts) {
    this.#parts = parts;
    this.#deadlineMs = parts.workDeadlineMs ?? WORK_DEADLINE_MS;
  }

  /** Verify and work: in parallel for known payers, else one after the other. */
  async verifyAndWork(run: Run): Promise<Success> {
    const { call, abandoned } = run;
    const { cleanup, now } = this.#parts;
    const stop = new AbortController();
    abandoned.addEventListener('abort', () => stop.abort(abandoned.reason), { once: true });
    // Runs that failed because the facilitator was unavailable must not use up the payment's runs.
    const early = run.payerKnown && run.number === 1 && !run.verified && !abandoned.aborted;
    const began = now();
    const working = early ? this.work(call, stop) : undefined;
    try {
      await this.verify(run, early);
      if (!working && !run.payerKnown) await this.#mayBegin(run);
    } catch (error) {
      stop.abort(new Error('the payment was not valid'));
      throw error;
    }
    const answer = await (working ?? this.#work(run, stop));
    // Work that takes too long is expensive for the server and free for the buyer.
    if (stop.signal.reason instanceof TooLate) await cleanup.distrust(run);
    if (abandoned.aborted) {
      cleanup.recordUnpaidWork(run, began);
      await cleanup.distrust(run);
      return cleanup.endRun(run, 'reread', true);
    }
    return answer.status === 200 ? answer : cleanup.endRun(run, sameForAll({ kind: 'answer', answer }), true);
  }

  /** Has the facilitator verify the payment. `working`: the work has already started. */
  async verify(run: Run, working = false): Promise<void> {
    const { cleanup, log, now } = this.#parts;
    const givenUp = (): boolean => run.abandoned.aborted && !working;
    if (run.verified) return;
    if (givenUp()) return cleanup.endRun(run, 'reread', false);
    const began = now();
    const verdict = await this.#verdict(run);
    if (verdict.kind === 'refused') {
      await this.#delete(run, now() - began);
      return this.#refused(run, verdict.reason, working);
    }
    if (verdict.kind === 'unavailable') {
      log.warn({ detail: verdict.detail }, 'no usable verify answer from the facilitator');
      const error = `The payment facilitator can't be reached. ${NOT_CHARGED}; send the same payment again`;
      return cleanup.endRun(run, sameForAll(unavailable(error, 5)), working);
    }
    if (givenUp()) return cleanup.endRun(run, 'reread', false);
    run.verified = true;
  }

  /** Never rejects, and resolves at the deadline or when `stop` aborts even if the handler ignores its signal. */
  async work(call: PaidCall, stop: AbortController): Promise<Answer> {
    const ms = this.#deadlineMs;
    const timer = setTimeout(() => stop.abort(new TooLate()), ms);
    const { signal } = stop;
    const stopped = new Promise<Answer>(resolve => {
      const end = (): void =>
        resolve(failure(502, `The work took longer than ${ms / 1000} s. ${NOT_CHARGED}; try again`));
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
    try {
      return await Promise.race([call.work(signal), stopped]);
    } catch (error) {
      this.#parts.log.error({ operation: call.operation.id, error }, 'the work failed');
      return failure(502, `The backend failed. ${NOT_CHARGED}; try again`);
    } finally {
      clearTimeout(timer);
    }
  }

  async #verdict(run: Run): Promise<VerifyResult> {
    try {
      return await this.#parts.facilitator.verify(this.#parts.requests.request(run));
    } catch (error) {
      return { kind: 'unavailable', detail: String(error) };
    }
  }

  /**
   * Does not wait for the deletion if the claim is certainly still ours, unless another payment may use its payment-identifier on a ledger
   * where the deletion comes later. `ms`: how long verify took.
   */
  async #delete(run: Run, ms: number): Promise<void> {
    const { ledger, callers, cleanup, log, leaseMs } = this.#parts;
    const { id, claim } = run;
    if (ms > leaseMs / 2 || (ledger.shared && run.call.payment.identifier !== null)) {
      if (await ledger.deleteClaim(id, claim)) callers.removeAll(id);
      return;
    }
    callers.removeAll(id);
    ledger.deleteClaimSoon(id, claim).catch(async (error: unknown) => {
      log.warn({ payment: id, error }, 'could not delete a refused claim');
      await cleanup.freeClaim(run, true);
    });
  }

  async #refused(run: Run, reason: string, worked: boolean): Promise<never> {
    const { cleanup, now } = this.#parts;
    if (worked) cleanup.recordUnpaidWork(run, now());
    if (run.payerKnown) await cleanup.distrust(run);
    throw new RunEnded(sameForAll(refused(explain(reason))));
  }

  /** New payers share a budget of work. No work starts for a payment that may expire before it is done. */
  async #mayBegin(run: Run): Promise<void> {
    const { newPayersWork, cleanup, blocksLeft } = this.#parts;
    const { payment, source = '' } = run.call;
    const left = await blocksLeft?.(payment.checked.blockhash);
    // The freed row stays, so that a late copy finds what happened to the call.
    if (left !== undefined && left < WORK_BLOCKS)
      return cleanup.endRun(run, sameForAll(refused(TOO_OLD)), false);
    if (!newPayersWork.take(source)) await cleanup.endRun(run, sameForAll(tooManyNewPayers()), false);
  }

  /** Work is bounded for each payer that has not paid yet. A known payer is not held up. */
  async #work(run: Run, stop: AbortController): Promise<Answer> {
    const { unpaidWork, cleanup } = this.#parts;
    const { payer } = run.call.payment.checked;
    if (run.payerKnown) return this.work(run.call, stop);
    if (!unpaidWork.begin(payer)) return cleanup.endRun(run, sameForAll(tooMuchUnpaidWork()), false);
    try {
      return await this.work(run.call, stop);
    } finally {
      unpaidWork.end(payer);
    }
  }
}
