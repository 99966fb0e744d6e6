import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Log } from '../net/log.js';
import type { Observer } from '../observe/observer.js';
import type { Rail, SignResult, VerifyResult } from '../rails/rail.js';
import { facilitatorDown, refused, unavailable } from './outcome.js';
import { RunEnded, type Run, type RunCleanup } from './run.js';
import { sameForAll } from './shared-outcome.js';
import type { UnsoldWork } from '../admission/unsold-work.js';
import type { WaitingCallers } from './waiting-callers.js';

export type VerificationParts = {
  rail: Rail;
  unsoldWork: UnsoldWork;
  callers: Pick<WaitingCallers, 'removeAll'>;
  cleanup: RunCleanup;
  log: Log;
  observer: Observer;
};

type No = Exclude<VerifyResult, { kind: 'valid' }>;

/** What the ledger stores before it is sent, and what to do if it is not sent. */
type Signed = { stored: { evidence: string; settlement: string }; withdraw(): void };

/** What the facilitator is asked before anything is stored as `settling`. A no ends the run: nothing was charged, nothing is kept. */
export class Verification {
  readonly #parts: VerificationParts;

  constructor(parts: VerificationParts) {
    this.#parts = parts;
  }

  /**
   * Whether the work need not wait for verify: the payer is known, this is the first run of the payment, and the last answer of its
   * facilitator about a payment was a good one.
   */
  mayWorkFirst({ call, payerKnown, number, verified, abandoned }: Run): boolean {
    if (!payerKnown || number !== 1 || verified || abandoned.aborted) return false;
    return this.#parts.rail.isHealthy(call.payment.checked);
  }

  /**
   * Whether the payment is settled without being verified before, because settle verifies by itself: the work need not wait for verify,
   * and few such runs of the payer are under way.
   */
  isSpared(run: Run): boolean {
    if (!this.mayWorkFirst(run)) return false;
    const started = this.#parts.unsoldWork.beginUnverified(run.call.payment.checked.payer);
    if (started) run.unverified = started;
    return started !== undefined;
  }

  /** Ends the run if the payment's facilitator is known to be down. Nothing has been asked for then. */
  async mayAsk(run: Run, worked: boolean): Promise<void> {
    const { rail, cleanup } = this.#parts;
    const outage = rail.outage(run.call.payment.checked);
    if (outage) return cleanup.endRun(run, sameForAll(facilitatorDown(outage)), worked);
  }

  /** Has the facilitator verify the payment. `working`: the work has already started. */
  async verify(run: Run, working = false): Promise<void> {
    const { cleanup, rail, observer } = this.#parts;
    const { payment, operation } = run.call;
    const givenUp = (): boolean => run.abandoned.aborted && !working;
    if (run.verified) return;
    if (givenUp()) return cleanup.endRun(run, 'reread', false);
    const asked = async (): Promise<VerifyResult> => rail.verify(payment.checked, operation);
    const verdict = await orUnavailable(observer.step('verify', run.call, asked));
    if (verdict.kind !== 'valid') return this.#end(run, verdict, working);
    if (givenUp()) return cleanup.endRun(run, 'reread', false);
    run.verified = true;
  }

  /** Has a facilitator that sends transactions itself sign. @returns undefined if this payment's facilitator is not of that kind */
  async sign(run: Run): Promise<Signed | undefined> {
    const { rail } = this.#parts;
    const { payment, operation } = run.call;
    const signed: SignResult = await orUnavailable(rail.sign(payment.checked, operation));
    if (signed.kind === 'not-needed') return undefined;
    if (signed.kind === 'signed') {
      const { transaction: evidence, signature: settlement, withdraw } = signed;
      return { stored: { evidence, settlement }, withdraw: () => withdraw?.() };
    }
    return this.#end(run, signed, run.working !== undefined);
  }

  async #end(run: Run, no: No, working: boolean): Promise<never> {
    const { callers, cleanup, log } = this.#parts;
    if (no.kind === 'refused') {
      if (await cleanup.deleteClaim(run)) callers.removeAll(run.id);
      run.working?.unsold('caller');
      if (run.payerKnown) await cleanup.distrust(run);
      throw new RunEnded(sameForAll(refused(this.#parts.rail.explain(no.reason))));
    }
    log.warn({ payment: run.id, error: no.detail }, 'no usable answer from the facilitator');
    const error = `The payment facilitator can't be reached. ${NOT_CHARGED}; send the same payment again`;
    return cleanup.endRun(run, sameForAll(unavailable(error, 5)), working);
  }
}

async function orUnavailable<T>(answer: Promise<T>): Promise<T | (No & { kind: 'unavailable' })> {
  try {
    return await answer;
  } catch (error) {
    return { kind: 'unavailable', detail: String(error) };
  }
}
