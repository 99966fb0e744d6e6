import { setTimeout as sleep } from 'node:timers/promises';
import { CALLER_LIVE_MS, HANG_UP_MARGIN_MS } from '../ledger/store.js';
import type { Ledger, Payment as Row, Sent } from '../ledger/store.js';
import type { Callers } from './callers.js';
import type { Desk } from './desk.js';
import type { Ask, Facilitator, Settlement as Settled } from './facilitator.js';
import { recordLanded } from './landed.js';
import { requirementsOf } from './offer.js';
import { explain, inProgress, overLimit, type Log, type Success } from './outcome.js';
import { Over, paidBy, type Ended, type Run, type RunEnd } from './run.js';
import { pending, refusedSettlement, tell } from './told.js';
import { feePayerOf } from './transaction.js';
import type { Trust } from './trust.js';

/**
 * Sees for itself that a transfer took effect (commitment `confirmed`): true once it did, false when it did not within the time
 * that a confirmation may take.
 */
export type Confirm = (id: string, signature: string) => Promise<boolean>;

/** An equal payment was seen again by then, or its caller counts as gone. */
const EQUAL_SEEN_WITHIN_MS = CALLER_LIVE_MS + 2 * HANG_UP_MARGIN_MS;

/** What a facilitator is asked about a payment. */
export class Asker {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  ask({ call }: Run): Ask {
    const { transaction, feePayer } = call.payment.checked;
    return { transaction, requirements: this.#desk.requirements(call.operation, feePayer) };
  }

  /** As it was offered when it was claimed, whatever the price is now. */
  askAgain({ transaction, flow, amount }: Row): Ask {
    const offered = { flow, price: { atomic: amount } };
    return { transaction, requirements: requirementsOf(offered, this.#desk.terms, feePayerOf(transaction)) };
  }
}

export type SettlementParts = {
  ledger: Ledger;
  facilitator: Facilitator;
  asker: Asker;
  callers: Callers;
  end: RunEnd;
  confirm?: Confirm;
  trust?: Trust;
  log: Log;
  now: () => number;
};

/** Moves the money, once. Each step ends the run where it can't go on. */
export class Settlement {
  readonly #parts: SettlementParts;

  constructor(parts: SettlementParts) {
    this.#parts = parts;
  }

  /** Asks for the money while somebody waits, keeping the answer first. @returns the signature of the transfer */
  async settle(run: Run, answer?: Success): Promise<string> {
    const { facilitator, asker, trust, now } = this.#parts;
    const began = now();
    await this.#toSettling(run, answer ? { answer } : {});
    let settled: Settled;
    try {
      settled = await facilitator.settle(asker.ask(run));
    } catch (error) {
      settled = { kind: 'unknown', reason: String(error), signature: '' };
    }
    if (settled.kind !== 'settled') return this.#notSettled(run, settled, answer ? began : undefined);
    const { signature } = settled;
    if (trust?.facilitatorLied && !(await this.confirmed(run.id, signature)))
      return this.inDoubt(run, signature);
    return signature;
  }

  /** Redeems an equal sale that nobody waits for, if there still is one, before any work is done; returns where there is none. */
  redeemEarlier(run: Run): Promise<void> {
    return this.#toSettling(run, { attachOnly: true });
  }

  /** `settling`, and nobody knows: the facilitator is asked once more. Only a success counts, anything else may be about the first ask. */
  async askAgain(id: string, leaseMs: number): Promise<Ended> {
    const { ledger, facilitator, asker, end, now } = this.#parts;
    const row = await ledger.askAgain(id, leaseMs);
    if (!row) return 'look';
    try {
      const settled = await facilitator.settle(asker.askAgain(row));
      if (settled.kind !== 'settled') return pending(row);
      const { signature } = settled;
      if (!(await this.confirmed(id, signature))) return pending({ ...row, settlement: signature });
      return (await recordLanded(ledger, row, signature, now())) ? 'look' : pending(row);
    } finally {
      await end.endLease(row);
    }
  }

  async confirmed(id: string, signature: string): Promise<boolean> {
    return (await this.#parts.confirm?.(id, signature)) ?? false;
  }

  /** Leaves the row to the chain, to copies of this payment, and to newly signed payments for the same call. */
  async inDoubt(run: Run, signature: string): Promise<never> {
    await this.#parts.end.endLease(run);
    throw new Over(pending(paidBy(run, signature)));
  }

  /**
   * Moves the payment to `settling`, unless nobody waits for it any more or it redeems an equal call that was sold before. An equal call
   * whose caller may have hung up a moment ago is waited for until it was seen again.
   */
  async #toSettling(run: Run, sent: Partial<Sent>): Promise<void> {
    const { ledger, callers, end, now } = this.#parts;
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
          if (moved.caller) callers.goOver({ id: run.id, number: newestLocal }, moved.caller);
          throw new Over('look');
        case 'limit':
          return end.over(run, tell(overLimit('aliases')), sent.answer !== undefined);
        case 'gone':
          return this.#nobodyWaits(run, sent.answer !== undefined);
        case 'wait':
          if (now() >= until) return end.over(run, tell(inProgress()), true);
          await sleep(HANG_UP_MARGIN_MS);
          await callers.renew([run.id, ...moved.unseen]);
      }
    }
  }

  async #nobodyWaits(run: Run, worked: boolean): Promise<never> {
    const { callers, end, now } = this.#parts;
    if (worked && (run.abandoned.aborted || callers.count(run.id) === 0)) {
      end.unpaid(run, now());
      await end.distrust(run);
    }
    return end.over(run, 'look', worked);
  }

  /** `worked`: when the work began that is not paid for now, in ms. */
  async #notSettled(
    run: Run,
    settled: Exclude<Settled, { kind: 'settled' }>,
    worked: number | undefined,
  ): Promise<never> {
    const { ledger, log, end } = this.#parts;
    const { reason } = settled;
    if (worked !== undefined) end.unpaid(run, worked);
    await end.distrust(run);
    if (settled.kind === 'unknown') {
      log.warn({ payment: run.id, reason }, 'a settlement is unresolved');
      return this.inDoubt(run, settled.signature);
    }
    const released = await ledger.release(run.id, run.claim, reason);
    const paid = paidBy(run, '');
    throw new Over(released ? refusedSettlement(paid, explain(reason), reason) : pending(paid));
  }
}
