import type { Fault } from '../net/failure.js';
import type { Log } from '../net/log.js';
import type { Observer } from '../observe/observer.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { CALLER_LIVE_MS, HANG_UP_MARGIN_MS } from '../ledger/store.js';
import type { Ledger, SettleRequest } from '../ledger/store.js';
import type { WaitingCallers } from './waiting-callers.js';
import type { Rail, SettleResult as Settled, Sighting } from '../rails/rail.js';
import { recordLanded } from './record-landed.js';
import { inProgress, overLimit, type Success } from './outcome.js';
import { RunEnded, paidBy, type RunResult, type Run, type RunCleanup } from './run.js';
import { pending, refusedSettlement, sameForAll } from './shared-outcome.js';
import type { Verification } from './verification.js';

/** Within this time the caller of an equal payment has been seen again, or counts as gone. */
const EQUAL_SEEN_WITHIN_MS = CALLER_LIVE_MS + 2 * HANG_UP_MARGIN_MS;

/** The longest wait before a second settle request: well within the hold of a call, its lease, and the life of a payment. */
const MAX_ASK_LATER_MS = 20_000;

type Unknown = Settled & { kind: 'unknown' };

export type SettlementParts = {
  ledger: Ledger;
  rail: Rail;
  verification: Verification;
  callers: WaitingCallers;
  cleanup: RunCleanup;
  log: Log;
  observer: Observer;
  now: () => number;
  leaseMs: number;
};

/** Settles a payment once. A step that can't continue ends the run. */
export class Settlement {
  readonly #parts: SettlementParts;

  constructor(parts: SettlementParts) {
    this.#parts = parts;
  }

  /** Stores the answer and settles while a caller waits. Settle verifies the payment again by itself. @returns the name of the transfer */
  async settle(run: Run, answer?: Success): Promise<string> {
    const { rail, verification, observer } = this.#parts;
    const { checked } = run.call.payment;
    await verification.mayAsk(run, answer !== undefined);
    const signed = await verification.sign(run);
    await this.#toSettlingSigned(run, { ...(answer ? { answer } : {}), ...signed?.stored }, signed);
    const asked = await observer.step('settle', run.call, () => this.#ask(run, signed?.stored.evidence));
    const settled = await this.#checkDenial(run, asked);
    if (settled.kind === 'unknown' && settled.trouble?.seconds) await this.#askLater(run, settled);
    if (settled.kind !== 'settled') return this.#notSettled(run, settled);
    const { signature } = settled;
    if (rail.isDoubted(checked) && !(await this.confirmed(run.id, signature)))
      return this.inDoubt(run, signature);
    return signature;
  }

  /** Redeems an equal sale without a caller, if there still is one, before any work is done; otherwise returns. */
  redeemEarlier(run: Run): Promise<void> {
    return this.#toSettling(run, { attachOnly: true });
  }

  /** Sends a second settle request for an unresolved payment. Only a success counts; any other answer may be about the first request. */
  async askAgain(id: string): Promise<RunResult> {
    const { ledger, rail, cleanup, now, observer, leaseMs } = this.#parts;
    const row = await ledger.askAgain(id, leaseMs);
    if (!row) return 'reread';
    try {
      const settled = await rail.settleAgain(row);
      if (settled.kind !== 'settled') return pending(row);
      const { signature } = settled;
      if (!(await this.confirmed(id, signature))) return pending({ ...row, settlement: signature });
      return (await recordLanded(ledger, row, signature, now(), observer)) ? 'reread' : pending(row);
    } finally {
      await cleanup.endLease(row);
    }
  }

  /**
   * Ends the run with a second settle request, after the time for which the facilitator asked to wait. Returns if that is too long, or if
   * nobody waits for the answer by then.
   */
  async #askLater(run: Run, { reason, trouble }: Unknown): Promise<void> {
    const { callers, cleanup, log } = this.#parts;
    const ms = (trouble?.seconds ?? 0) * 1_000;
    if (ms > MAX_ASK_LATER_MS) return;
    log.warn(
      { payment: run.id, error: reason, ms },
      'the facilitator asked to wait; asking it again to settle',
    );
    await sleep(ms, undefined, { signal: run.abandoned, ref: false }).catch(() => {});
    if (run.abandoned.aborted || callers.count(run.id) === 0) return;
    await cleanup.endLease(run);
    const ended = await this.askAgain(run.id);
    if (ended === 'reread') run.working?.sold();
    else await this.#countUnpaid(run, 'backend');
    throw new RunEnded(ended);
  }

  /** Waits until the transfer can be seen. */
  async confirmed(id: string, settlement: string): Promise<boolean> {
    const { ledger, rail } = this.#parts;
    const row = await ledger.find(id);
    return row !== undefined && rail.confirm(row, settlement);
  }

  async #ask({ call }: Run, signed: string | undefined): Promise<Settled> {
    try {
      return await this.#parts.rail.settle(call.payment.checked, call.operation, signed);
    } catch (error) {
      return { kind: 'unknown', reason: String(error), signature: '' };
    }
  }

  /** A refusal that is also that of a landed transfer counts only if the rail does not show the transfer. */
  async #checkDenial(run: Run, settled: Settled): Promise<Settled> {
    if (settled.kind !== 'refused' || !settled.mayHaveLanded) return settled;
    const sighting = await this.#lookFor(run.id).catch((): Sighting => ({ kind: 'unclear' }));
    if (sighting.kind === 'not-seen') return settled;
    if (sighting.kind === 'seen') return { kind: 'settled', signature: sighting.settlement };
    return { kind: 'unknown', reason: settled.reason, signature: '' };
  }

  async #lookFor(id: string): Promise<Sighting> {
    const { ledger, rail } = this.#parts;
    const row = await ledger.find(id);
    return row ? rail.lookFor(row) : { kind: 'unclear' };
  }

  /** Leaves the row to the reconciler, to copies of this payment, and to newly signed payments for the same call. */
  async inDoubt(run: Run, signature: string): Promise<never> {
    await this.#parts.cleanup.endLease(run);
    throw new RunEnded(pending(paidBy(run, signature)));
  }

  /** Moves the payment to `settling` with what was signed for it. Otherwise that is never sent. */
  async #toSettlingSigned(
    run: Run,
    sent: Partial<SettleRequest>,
    signed: { withdraw(): void } | undefined,
  ): Promise<void> {
    try {
      await this.#toSettling(run, sent);
    } catch (error) {
      // Of a ledger that failed, nobody knows whether it has stored what was signed.
      if (error instanceof RunEnded) signed?.withdraw();
      throw error;
    }
  }

  /**
   * Moves the payment to `settling`, unless no caller waits for it any more or it redeems an equal call that was sold before. If the
   * caller of an equal call may have just hung up, waits until that caller has been seen again.
   */
  async #toSettling(run: Run, sent: Partial<SettleRequest>): Promise<void> {
    const { ledger, callers, cleanup, now } = this.#parts;
    const until = now() + EQUAL_SEEN_WITHIN_MS;
    const { payment, operation, requestHash } = run.call;
    const call = { payer: payment.checked.payer, operation: operation.id, requestHash };
    const equal = payment.identifier === null ? { call } : {};
    for (;;) {
      const newestLocal = callers.newest(run.id);
      const moved = await ledger.settle(run.id, run.claim, { ...equal, ...sent, newestLocal });
      switch (moved.kind) {
        case 'settling':
        case 'sell':
          return;
        case 'attached':
          if (moved.caller) callers.reassign({ id: run.id, number: newestLocal }, moved.caller);
          throw new RunEnded('reread');
        case 'limit':
          return cleanup.endRun(run, sameForAll(overLimit('aliases')), sent.answer !== undefined);
        case 'gone':
          return this.#nobodyWaits(run, sent.answer !== undefined);
        case 'wait':
          if (now() >= until) return cleanup.endRun(run, sameForAll(inProgress()), true);
          await sleep(HANG_UP_MARGIN_MS);
          await callers.renew([run.id, ...moved.unseen]);
      }
    }
  }

  async #nobodyWaits(run: Run, worked: boolean): Promise<never> {
    const { callers, cleanup } = this.#parts;
    if (worked && (run.abandoned.aborted || callers.count(run.id) === 0)) {
      run.working?.unsold('caller');
      await cleanup.distrust(run);
    }
    return cleanup.endRun(run, 'reread', worked);
  }

  async #notSettled(run: Run, settled: Exclude<Settled, { kind: 'settled' }>): Promise<never> {
    const { ledger, rail, log } = this.#parts;
    const { reason } = settled;
    await this.#countUnpaid(run, settled.kind === 'unknown' ? 'backend' : 'caller');
    if (settled.kind === 'unknown') {
      log.warn({ payment: run.id, reason }, 'a settlement is unresolved');
      return this.inDoubt(run, settled.signature);
    }
    const released = await ledger.release(run.id, run.claim, reason);
    const paid = paidBy(run, '');
    throw new RunEnded(released ? refusedSettlement(paid, rail.explain(reason), reason) : pending(paid));
  }

  /** A settlement that nobody knows may be there, and most often nobody who calls is to blame: it counts as a failure of the backend does. */
  async #countUnpaid(run: Run, fault: Fault): Promise<void> {
    run.working?.unsold(fault);
    await this.#parts.cleanup.distrust(run);
  }
}
