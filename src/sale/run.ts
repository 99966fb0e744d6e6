import type { Started, Working } from '../admission/unsold-work.js';
import type { Deps } from './deps.js';
import type { Paid, SharedOutcome } from './outcome.js';
import type { PaidCall } from './paid-call.js';

/** One run of a claimed payment, on behalf of all its callers. */
export type Run = {
  /** The call of the request that started the run. All callers of the run make the same call. */
  readonly call: PaidCall;
  readonly id: string;
  readonly claim: number;
  /** The number of runs of this payment, including this one. */
  readonly number: number;
  /** The payer has a delivered payment, and none of its payments was refused after that, so the work does not wait for verify. */
  readonly payerKnown: boolean;
  /** An equal call was sold before and its caller has left, so this payment probably redeems that sale. */
  readonly earlier: boolean;
  /** Aborts when no caller is waiting any longer. Has no effect once `settling` is written. */
  readonly abandoned: AbortSignal;
  /** The facilitator verified the payment. */
  verified?: boolean;
  /** The buyer sent the transfer before the request: the money has moved, however the call ends. */
  moved?: boolean;
  /** Set while the payment is settled without having been verified first. */
  unverified?: Started;
  /** The work of the call, once started. */
  working?: Working;
};

/** The result of a run: the outcome for all its callers, or `reread` if the row decides the next step. */
export type RunResult = SharedOutcome | 'reread';

/** Returned by a step that ends the run. The claim was freed or is left to the reconciler. */
export type EndOfRun = { ended: RunResult };

/** @param settlement base58 signature, or empty if unknown */
export function paidBy({ call }: Run, settlement: string): Paid {
  return { payer: call.payment.checked.payer, amount: call.operation.price.atomic, settlement };
}

/** Frees the claim and ends the run. `keepRun`: the run counts against the payment's limit of runs. */
export async function endRun(deps: Deps, run: Run, ended: RunResult, keepRun: boolean): Promise<EndOfRun> {
  await freeClaim(deps, run, keepRun);
  return { ended };
}

export async function freeClaim({ ledger, log }: Deps, { id, claim }: Run, keepRun: boolean): Promise<void> {
  if (keepRun)
    log.info(
      { payment: id },
      'a run of a payment ended without a sale; if the same payment is sent again, its work runs again',
    );
  try {
    await ledger.freeClaim(id, claim, { keepRun });
  } catch (error) {
    log.warn({ payment: id, error }, 'could not free a claim yet; its lease will expire');
  }
}

/**
 * Deletes a claim that verify refused.
 * @returns false if the claim is no longer this server's, or undefined if the ledger failed
 */
export async function deleteClaim({ ledger, log }: Deps, { id, claim }: Run): Promise<boolean | undefined> {
  try {
    return await ledger.deleteClaim(id, claim);
  } catch (error) {
    log.warn({ payment: id, error }, 'could not delete a refused claim; its lease will expire');
    return undefined;
  }
}

/** Ends the lease of a row beyond `claimed`, so that another worker can take it. */
export async function endLease(
  { ledger, log }: Deps,
  { id, claim }: { id: string; claim: number },
): Promise<void> {
  try {
    await ledger.extendLease(id, claim, 0);
  } catch (error) {
    log.warn({ payment: id, error }, 'could not end a lease; it will expire');
  }
}

/** From now on, this payer's payments are verified before their work starts. */
export async function distrust({ ledger, log }: Deps, { call }: Run): Promise<void> {
  const { payer } = call.payment.checked;
  try {
    await ledger.recordRefusal(payer);
  } catch (error) {
    log.warn({ payer, error }, 'could not record that a payer must be verified before its work');
  }
}
