import type { Log } from '../net/log.js';
import type { Ledger } from '../ledger/store.js';
import type { UnpaidWork } from './admission.js';
import type { PaidCall } from './paid-call.js';
import type { Paid, SharedOutcome } from './shared-outcome.js';

/** One run of a payment that was claimed, for whoever waits for it. */
export type Run = {
  /** The call of the request that began it. All that wait for it ask for the same. */
  readonly call: PaidCall;
  readonly id: string;
  readonly claim: number;
  /** How many runs of its work this payment had, this one included. */
  readonly number: number;
  /** The payer has a delivered payment and none refused since: its work need not wait for verify. */
  readonly payerKnown: boolean;
  /** An equal call was sold before whose caller is gone: this payment probably redeems that one. */
  readonly earlier: boolean;
  /** Aborts when nobody waits any more. Has no effect once `settling` is written. */
  readonly abandoned: AbortSignal;
  /** The facilitator found the payment good. */
  verified?: boolean;
};

/** How a run ended: what everybody who waits for it is told, or that the row itself says what comes next. */
export type RunResult = SharedOutcome | 'reread';

/** Thrown by a step: the run is over, and its claim is free or left to the chain. */
export class RunEnded extends Error {
  readonly result: RunResult;

  constructor(result: RunResult) {
    super('the run is over');
    this.result = result;
  }
}

/** @param settlement base58 signature, or empty while it is unknown */
export function paidBy({ call }: Run, settlement: string): Paid {
  return { payer: call.payment.checked.payer, amount: call.operation.price.atomic, settlement };
}

/** What becomes of the claim, and of the payer's standing, when a run ends without a sale. */
export class RunCleanup {
  readonly #ledger: Ledger;
  readonly #log: Log;
  readonly #unpaidWork: UnpaidWork;
  readonly #now: () => number;

  constructor(parts: { ledger: Ledger; log: Log; unpaidWork: UnpaidWork; now: () => number }) {
    this.#ledger = parts.ledger;
    this.#log = parts.log;
    this.#unpaidWork = parts.unpaidWork;
    this.#now = parts.now;
  }

  /** Frees the claim and ends the run. `keepRun`: its work counts against the runs that one payment has. */
  async endRun(run: Run, ended: RunResult, keepRun: boolean): Promise<never> {
    await this.freeClaim(run, keepRun);
    throw new RunEnded(ended);
  }

  async freeClaim({ id, claim }: Run, keepRun: boolean): Promise<void> {
    try {
      await this.#ledger.freeClaim(id, claim, { keepRun });
    } catch (error) {
      this.#log.warn({ payment: id, error }, 'a claim could not be freed, its lease will end');
    }
  }

  /** Leaves a row beyond `claimed` to whoever looks at it next. */
  async endLease({ id, claim }: { id: string; claim: number }): Promise<void> {
    try {
      await this.#ledger.extendLease(id, claim, 0);
    } catch (error) {
      this.#log.warn({ payment: id, error }, 'a lease could not be ended, it will run out');
    }
  }

  /** Work that began at `began` (ms) was not paid for, and that is the payer's doing. */
  recordUnpaidWork({ call }: Run, began: number): void {
    this.#unpaidWork.add(call.payment.checked.payer, this.#now() - began);
  }

  /** From now on this payer's payments are verified before its work begins. */
  async distrust({ call }: Run): Promise<void> {
    const { payer } = call.payment.checked;
    try {
      await this.#ledger.recordRefusal(payer);
    } catch (error) {
      this.#log.warn({ payer, error }, 'could not record that a payer is to be verified first');
    }
  }
}
