import { NOT_CHARGED } from '../contract/not-charged.js';
import type { SignResult, VerifyResult } from '../rails/rail.js';
import type { Deps } from './deps.js';
import { facilitatorDown, refused, unavailable } from './outcome.js';
import { deleteClaim, distrust, endRun, type EndOfRun, type Run } from './run.js';

type No = Exclude<VerifyResult, { kind: 'valid' }>;

/** The signed transaction, stored in the ledger before it is sent, and a function to call if it is not sent. */
type Signed = { stored: Stored; withdraw(): void };
/** `movedAfter`: see `SignResult`. */
export type Stored = { evidence: string; settlement: string; movedAfter?: number };

/**
 * Whether the work need not wait for verify: the payer is known, this is the first run of the payment, and the facilitator's last answer
 * about a payment was usable.
 */
export function mayWorkFirst(
  { rail }: Deps,
  { call, payerKnown, number, verified, abandoned }: Run,
): boolean {
  if (!payerKnown || number !== 1 || verified || abandoned.aborted) return false;
  return rail.isHealthy(call.payment.checked);
}

/**
 * Whether to skip verify, because settle verifies the payment, too. True if the work need not wait for verify and few such runs of the
 * payer are under way.
 */
export function isSpared(deps: Deps, run: Run): boolean {
  if (!mayWorkFirst(deps, run)) return false;
  const started = deps.unsoldWork.beginUnverified(run.call.payment.checked.payer);
  if (started) run.unverified = started;
  return started !== undefined;
}

/**
 * Asks the facilitator to verify the payment. A refusal ends the run: nothing was charged, and nothing is stored. `working`: the work has
 * already started.
 */
export async function verify(deps: Deps, run: Run, working = false): Promise<EndOfRun | undefined> {
  const { rail, observer } = deps;
  const { payment } = run.call;
  const givenUp = (): boolean => run.abandoned.aborted && !working;
  if (run.verified) return undefined;
  if (givenUp()) return endRun(deps, run, 'reread', false);
  const asked = async (): Promise<VerifyResult> => rail.verify(payment.checked, run.call);
  const verdict = await orUnavailable(observer.step('verify', run.call, asked));
  if (verdict.kind !== 'valid') return refuse(deps, run, verdict, working);
  if (verdict.moved) run.moved = true;
  else if (givenUp()) return endRun(deps, run, 'reread', false);
  run.verified = true;
  return undefined;
}

/**
 * Gets the signed transaction, if it must be stored before it is sent.
 * @returns undefined if this payment's facilitator signs only when it settles
 */
export async function sign(deps: Deps, run: Run): Promise<Signed | EndOfRun | undefined> {
  const { rail } = deps;
  const { payment } = run.call;
  const signed: SignResult = await orUnavailable(rail.sign(payment.checked, run.call));
  if (signed.kind === 'not-needed') return undefined;
  if (signed.kind === 'signed') {
    const { transaction: evidence, signature: settlement, withdraw, movedAfter } = signed;
    const moved = movedAfter === undefined ? {} : { movedAfter };
    return { stored: { evidence, settlement, ...moved }, withdraw: () => withdraw?.() };
  }
  return refuse(deps, run, signed, run.working !== undefined);
}

async function refuse(deps: Deps, run: Run, no: No, working: boolean): Promise<EndOfRun> {
  const { rail, callers, log } = deps;
  // If the money has already moved, a refusal of a repeated check means nothing.
  if (no.kind === 'refused' && !run.moved) {
    const deleted = await deleteClaim(deps, run);
    if (deleted) callers.removeAll(run.id);
    run.working?.unsold('caller');
    if (run.payerKnown) await distrust(deps, run);
    // If the claim is no longer this server's, the row decides: another payment may have been sold for this call, or another server may
    // work on this one.
    return { ended: deleted === false ? 'reread' : refused(rail.explain(no.reason)) };
  }
  const detail = no.kind === 'refused' ? no.reason : no.detail;
  log.warn({ payment: run.id, error: detail }, 'no usable answer from the facilitator');
  if ('outage' in no && no.outage) return endRun(deps, run, facilitatorDown(no.outage), working);
  const error = `The payment facilitator can't be reached. ${NOT_CHARGED}; send the same payment again`;
  return endRun(deps, run, unavailable(error, 5), working);
}

async function orUnavailable<T>(answer: Promise<T>): Promise<T | (No & { kind: 'unavailable' })> {
  try {
    return await answer;
  } catch (error) {
    return { kind: 'unavailable', detail: String(error) };
  }
}
