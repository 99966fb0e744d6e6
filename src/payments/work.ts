import type { Ledger } from '../ledger/store.js';
import type { SharedBucket, UnpaidWork } from './admission.js';
import type { BlockhashLife } from './blockhash-life.js';
import type { Callers } from './callers.js';
import type { Facilitator, Verdict } from './facilitator.js';
import {
  explain,
  failure,
  NOT_CHARGED,
  refused,
  tooManyNewPayers,
  tooMuchUnpaidWork,
  unavailable,
  type Answer,
  type Log,
  type Success,
} from './outcome.js';
import type { PaidCall } from './paid-call.js';
import { Over, type Run, type RunEnd } from './run.js';
import type { Asker } from './settlement.js';
import { tell } from './told.js';

const WORK_DEADLINE_MS = 20_000;
/** As many blocks as the longest work takes: a transaction with fewer left may be dead before its money is asked for. */
const WORK_BLOCKS = 50;

export type BlocksLeft = BlockhashLife['blocksLeft'];

const TOO_OLD = `the blockhash is too old to outlive the work. ${NOT_CHARGED}; sign again over the one in this challenge`;

/** The work was not done by its deadline. */
class TooLate extends Error {}

export type WorkParts = {
  ledger: Ledger;
  facilitator: Facilitator;
  asker: Asker;
  callers: Pick<Callers, 'deleted'>;
  end: RunEnd;
  log: Log;
  now: () => number;
  /** Shared by payers that never paid: their wallets may be empty. */
  newPayersWork: SharedBucket;
  unpaidWork: UnpaidWork;
  blocksLeft?: BlocksLeft;
  workDeadlineMs?: number;
  leaseMs: number;
};

/** The steps before the money is asked for: verify, and the work. Each ends the run where it can't go on. */
export class Work {
  readonly #parts: WorkParts;
  readonly #deadlineMs: number;

  constructor(parts: WorkParts) {
    this.#parts = parts;
    this.#deadlineMs = parts.workDeadlineMs ?? WORK_DEADLINE_MS;
  }

  /** Verify and work: beside each other for payers we know, else one after the other. */
  async verifyAndWork(run: Run): Promise<Success> {
    const { call, abandoned } = run;
    const { end, now } = this.#parts;
    const stop = new AbortController();
    abandoned.addEventListener('abort', () => stop.abort(abandoned.reason), { once: true });
    // A run that came to nothing because the facilitator was away must not use up the payment's runs one by one.
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
    // Work that takes too long costs the buyer nothing and us a lot.
    if (stop.signal.reason instanceof TooLate) await end.distrust(run);
    if (abandoned.aborted) {
      end.unpaid(run, began);
      await end.distrust(run);
      return end.over(run, 'look', true);
    }
    return answer.status === 200 ? answer : end.over(run, tell({ kind: 'answer', answer }), true);
  }

  /** Asks the facilitator whether the payment is good. `working`: its work goes on already. */
  async verify(run: Run, working = false): Promise<void> {
    const { end, log, now } = this.#parts;
    const givenUp = (): boolean => run.abandoned.aborted && !working;
    if (run.verified) return;
    if (givenUp()) return end.over(run, 'look', false);
    const began = now();
    const verdict = await this.#verdict(run);
    if (verdict.kind === 'refused') {
      await this.#delete(run, now() - began);
      return this.#refused(run, verdict.reason, working);
    }
    if (verdict.kind === 'unavailable') {
      log.warn({ detail: verdict.detail }, 'the facilitator did not verify');
      const error = `The payment facilitator can't be reached. ${NOT_CHARGED}; send the same payment again`;
      return end.over(run, tell(unavailable(error, 5)), working);
    }
    if (givenUp()) return end.over(run, 'look', false);
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

  async #verdict(run: Run): Promise<Verdict> {
    try {
      return await this.#parts.facilitator.verify(this.#parts.asker.ask(run));
    } catch (error) {
      return { kind: 'unavailable', detail: String(error) };
    }
  }

  /** Nobody need wait for the deletion of a claim that is ours for certain. `ms`: how long verify took. */
  async #delete(run: Run, ms: number): Promise<void> {
    const { ledger, callers, end, log, leaseMs } = this.#parts;
    const { id, claim } = run;
    if (ms > leaseMs / 2) {
      if (await ledger.forget(id, claim)) callers.deleted(id);
      return;
    }
    callers.deleted(id);
    ledger.forgetSoon(id, claim).catch(async (error: unknown) => {
      log.warn({ payment: id, error }, 'a refused claim could not be deleted');
      await end.free(run, true);
    });
  }

  async #refused(run: Run, reason: string, worked: boolean): Promise<never> {
    const { end, now } = this.#parts;
    if (worked) end.unpaid(run, now());
    if (run.payerKnown) await end.distrust(run);
    throw new Over(tell(refused(explain(reason))));
  }

  /** New payers share a budget of work, and none begins that their payment can't outlive. */
  async #mayBegin(run: Run): Promise<void> {
    const { newPayersWork, end, blocksLeft } = this.#parts;
    const { payment, source = '' } = run.call;
    const left = await blocksLeft?.(payment.checked.blockhash);
    // The row stays, free: a copy that is late must find what became of the call.
    if (left !== undefined && left < WORK_BLOCKS) return end.over(run, tell(refused(TOO_OLD)), false);
    if (!newPayersWork.take(source)) await end.over(run, tell(tooManyNewPayers()), false);
  }

  /** Bounded for each payer whose money was only looked at; a payer with standing is not held up. */
  async #work(run: Run, stop: AbortController): Promise<Answer> {
    const { unpaidWork, end } = this.#parts;
    const { payer } = run.call.payment.checked;
    if (run.payerKnown) return this.work(run.call, stop);
    if (!unpaidWork.begin(payer)) return end.over(run, tell(tooMuchUnpaidWork()), false);
    try {
      return await this.work(run.call, stop);
    } finally {
      unpaidWork.end(payer);
    }
  }
}
