import type { Log } from '../net/log.js';
import type { Ledger } from '../ledger/store.js';
import type { PaidCall } from './paid-call.js';
import type { Paid, SharedOutcome } from './shared-outcome.js';
import type { Started, Working } from '../admission/unsold-work.js';

/** One run of a claimed payment, on behalf of all its callers. */
export type Run = {
  /** The call of the request that started it. All its callers ask for the same call. */
  readonly call: PaidCall;
  readonly id: string;
  readonly claim: number;
  /** The number of runs of this payment, including this one. */
  readonly number: number;
  /** The payer has a delivered payment and none refused since, so the work does not wait for verify. */
  readonly payerKnown: boolean;
  /** An equal call was sold before and its caller has left, so this payment probably redeems that one. */
  readonly earlier: boolean;
  /** Aborts when no caller waits any more. Has no effect once `settling` is written. */
  readonly abandoned: AbortSignal;
  /** The facilitator verified the payment. */
  verified?: boolean;
  /** Set while the payment is settled without being verified before. */
  unverified?: Started;
  /** Its work, once it has begun. */
  working?: Working;
};

/** The result of a run: the outcome for all its callers, or `reread` if the row decides the next step. */
export type RunResult = SharedOutcome | 'reread';

/** Thrown by a step that ends the run. The claim has been freed, or is left to the reconciler. */
export class RunEnded extends Error {
  readonly result: RunResult;

  constructor(result: RunResult) {
    super('the run is over');
    this.result = result;
  }
}

/** @param settlement base58 signature, or empty if unknown */
export function paidBy({ call }: Run, settlement: string): Paid {
  return { payer: call.payment.checked.payer, amount: call.operation.price.atomic, settlement };
}

/** Cleans up after a run without a sale: its claim, and the record of its payer. */
export class RunCleanup {
  readonly #ledger: Ledger;
  readonly #log: Log;

  constructor(parts: { ledger: Ledger; log: Log }) {
    this.#ledger = parts.ledger;
    this.#log = parts.log;
  }

  /** Frees the claim and ends the run. `keepRun`: the run counts against the payment's limit of runs. */
  async endRun(run: Run, ended: RunResult, keepRun: boolean): Promise<never> {
    await this.freeClaim(run, keepRun);
    throw new RunEnded(ended);
  }

  async freeClaim({ id, claim }: Run, keepRun: boolean): Promise<void> {
    try {
      await this.#ledger.freeClaim(id, claim, { keepRun });
    } catch (error) {
      this.#log.warn({ payment: id, error }, 'could not free a claim; its lease will expire');
    }
  }

  /** Deletes a claim that verify refused. @returns false if that failed or the claim is no longer this server's */
  async deleteClaim({ id, claim }: Run): Promise<boolean> {
    try {
      return await this.#ledger.deleteClaim(id, claim);
    } catch (error) {
      this.#log.warn({ payment: id, error }, 'could not delete a refused claim; its lease will expire');
      return false;
    }
  }

  /** Ends the lease of a row beyond `claimed`, so that another worker can take it. */
  async endLease({ id, claim }: { id: string; claim: number }): Promise<void> {
    try {
      await this.#ledger.extendLease(id, claim, 0);
    } catch (error) {
      this.#log.warn({ payment: id, error }, 'could not end a lease; it will expire');
    }
  }

  /** From now on, this payer's payments are verified before their work starts. */
  async distrust({ call }: Run): Promise<void> {
    const { payer } = call.payment.checked;
    try {
      await this.#ledger.recordRefusal(payer);
    } catch (error) {
      this.#log.warn({ payer, error }, 'could not record that a payer must be verified before its work');
    }
  }
}
