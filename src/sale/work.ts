import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Deps } from './deps.js';
import {
  failure,
  isSuccess,
  refused,
  tooManyNewPayers,
  tooMuchUnsoldWork,
  type Answer,
  type Success,
} from './outcome.js';
import { partyOf, type PaidCall } from './paid-call.js';
import { distrust, endRun, type EndOfRun, type Run } from './run.js';
import { isSpared, mayWorkFirst, verify } from './verification.js';

/** The work was not done by its deadline. */
export class TooLate extends Error {}

/**
 * Verifies the payment and does the work, before the settlement. For known payers, both run in parallel, or verify is skipped; for others, verify
 * runs first.
 */
export async function verifyAndWork(deps: Deps, run: Run): Promise<Success | EndOfRun> {
  const { call, abandoned } = run;
  const stop = new AbortController();
  abandoned.addEventListener('abort', () => stop.abort(abandoned.reason), { once: true });
  const early = mayWorkFirst(deps, run);
  const spared = isSpared(deps, run);
  const barred = early ? await begin(deps, run) : undefined;
  if (barred) return barred;
  const working = early ? work(deps, call, stop) : undefined;
  const unfit = spared ? undefined : await verify(deps, run, early);
  const ended = unfit ?? (early ? undefined : await mayBegin(deps, run));
  if (ended) {
    stop.abort(new Error('the payment was not valid'));
    return ended;
  }
  const answer = await (working ?? work(deps, call, stop));
  run.working?.done();
  // Work that takes too long is expensive for the server and free for the buyer.
  if (stop.signal.reason instanceof TooLate) await distrust(deps, run);
  return isSuccess(answer) && !abandoned.aborted ? answer : notToSettle(deps, run, answer);
}

/** Ends a run that is not settled, because nobody is waiting for the answer any more or because the answer is a failure. */
async function notToSettle(deps: Deps, run: Run, answer: Answer): Promise<EndOfRun> {
  if (run.abandoned.aborted || isSuccess(answer)) {
    run.working?.unsold('caller');
    await distrust(deps, run);
    return endRun(deps, run, 'reread', true);
  }
  run.working?.unsold(answer.fault ?? (answer.status === 400 ? 'caller' : 'backend'));
  return endRun(deps, run, { kind: 'failed', answer }, true);
}

/** Never rejects. Resolves at the deadline or when `stop` aborts, even if the handler ignores its signal. */
export async function work(
  { observer, log, workDeadlineMs: ms }: Deps,
  call: PaidCall,
  stop: AbortController,
): Promise<Answer> {
  const timer = setTimeout(() => stop.abort(new TooLate()), ms);
  const { signal } = stop;
  const stopped = new Promise<Answer>(resolve => {
    const end = (): void =>
      resolve(failure(502, `The work took longer than ${ms / 1000} s. ${NOT_CHARGED}; try again`));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
  try {
    return await observer.step('work', call, () => Promise.race([call.work(signal), stopped]));
  } catch (error) {
    log.error({ operation: call.operation.id, error }, 'the work failed');
    return failure(502, `The backend failed. ${NOT_CHARGED}; try again`);
  } finally {
    clearTimeout(timer);
  }
}

/** New payers share a budget of work. Their work does not start for a payment that may expire before the work is done. */
async function mayBegin(deps: Deps, run: Run): Promise<EndOfRun | undefined> {
  const { payment, source = '' } = run.call;
  if (!run.payerKnown) {
    const tooOld = await deps.rail.tooOld(payment.checked);
    // The freed row is kept, so that a later copy of the request finds out what happened.
    if (tooOld !== undefined) return endRun(deps, run, refused(tooOld), false);
    if (!deps.newPayersWork.take(source)) return endRun(deps, run, tooManyNewPayers(), false);
  }
  return begin(deps, run);
}

/** Ends the run if too much work for its payer, for its source or by this backend has gone unsold. */
async function begin(deps: Deps, run: Run): Promise<EndOfRun | undefined> {
  const party = partyOf(run.call, run.payerKnown);
  const begun = deps.unsoldWork.begin(party);
  if ('whose' in begun) {
    deps.unsoldWork.turnedAway(party, begun);
    return endRun(deps, run, tooMuchUnsoldWork(begun), false);
  }
  run.working = begun;
  return undefined;
}
