import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Log } from '../net/log.js';
import type { Observer } from '../observe/observer.js';
import type { SharedBucket } from '../admission/admission.js';
import type { Rail } from '../rails/rail.js';
import {
  failure,
  refused,
  tooManyNewPayers,
  tooMuchUnsoldWork,
  type Answer,
  type Success,
} from './outcome.js';
import { partyOf, type PaidCall } from './paid-call.js';
import type { Run, RunCleanup } from './run.js';
import { sameForAll } from './shared-outcome.js';
import type { UnsoldWork } from '../admission/unsold-work.js';
import type { Verification } from './verification.js';

const WORK_DEADLINE_MS = 20_000;

/** The work was not done by its deadline. */
export class TooLate extends Error {}

export type WorkParts = {
  verification: Verification;
  cleanup: RunCleanup;
  log: Log;
  observer: Observer;
  now: () => number;
  /** Shared by all payers that have never paid, because their wallets may be empty. */
  newPayersWork: SharedBucket;
  unsoldWork: UnsoldWork;
  rail: Rail;
  workDeadlineMs?: number;
};

/** Verify and the work, before the settlement. A step that can't continue ends the run. */
export class Work {
  readonly #parts: WorkParts;
  readonly #deadlineMs: number;

  constructor(parts: WorkParts) {
    this.#parts = parts;
    this.#deadlineMs = parts.workDeadlineMs ?? WORK_DEADLINE_MS;
  }

  /** Verify and work: for known payers only the work, or both in parallel; else one after the other. */
  async verifyAndWork(run: Run): Promise<Success> {
    const { call, abandoned } = run;
    const { cleanup, verification } = this.#parts;
    const stop = new AbortController();
    abandoned.addEventListener('abort', () => stop.abort(abandoned.reason), { once: true });
    const early = verification.mayWorkFirst(run);
    const spared = verification.isSpared(run);
    if (early) await this.#begin(run);
    const working = early ? this.work(call, stop) : undefined;
    try {
      if (!spared) await verification.verify(run, early);
      if (!working) await this.#mayBegin(run);
    } catch (error) {
      stop.abort(new Error('the payment was not valid'));
      throw error;
    }
    const answer = await (working ?? this.work(call, stop));
    run.working?.done();
    // Work that takes too long is expensive for the server and free for the buyer.
    if (stop.signal.reason instanceof TooLate) await cleanup.distrust(run);
    if (abandoned.aborted) {
      run.working?.unsold('caller');
      await cleanup.distrust(run);
      return cleanup.endRun(run, 'reread', true);
    }
    if (answer.status === 200) return answer;
    run.working?.unsold(answer.fault ?? (answer.status === 400 ? 'caller' : 'backend'));
    return cleanup.endRun(run, sameForAll({ kind: 'answer', answer }), true);
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
      return await this.#parts.observer.step('work', call, () => Promise.race([call.work(signal), stopped]));
    } catch (error) {
      this.#parts.log.error({ operation: call.operation.id, error }, 'the work failed');
      return failure(502, `The backend failed. ${NOT_CHARGED}; try again`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** New payers share a budget of work. None of theirs starts for a payment that may expire before it is done. */
  async #mayBegin(run: Run): Promise<void> {
    if (!run.payerKnown) await this.#mayBeginNew(run);
    await this.#begin(run);
  }

  async #mayBeginNew(run: Run): Promise<void> {
    const { newPayersWork, cleanup, rail } = this.#parts;
    const { payment, source = '' } = run.call;
    const tooOld = await rail.tooOld(payment.checked);
    // The freed row stays, so that a late copy finds what happened to the call.
    if (tooOld !== undefined) return cleanup.endRun(run, sameForAll(refused(tooOld)), false);
    if (!newPayersWork.take(source)) await cleanup.endRun(run, sameForAll(tooManyNewPayers()), false);
  }

  /** Ends the run if too much work of its payer, its source or this backend was not sold. */
  async #begin(run: Run): Promise<void> {
    const { unsoldWork, cleanup } = this.#parts;
    const party = partyOf(run.call, run.payerKnown);
    const begun = unsoldWork.begin(party);
    if ('end' in begun) {
      run.working = begun;
      return;
    }
    unsoldWork.turnedAway(party, begun);
    return cleanup.endRun(run, sameForAll(tooMuchUnsoldWork(begun)), false);
  }
}
