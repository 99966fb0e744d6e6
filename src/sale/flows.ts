import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Log } from '../net/log.js';
import type { Observer } from '../observe/observer.js';
import type { Ledger } from '../ledger/store.js';
import type { SharedBucket } from '../admission/admission.js';
import type { WaitingCallers } from './waiting-callers.js';
import { answerLifeMs, failedToProcess, failure, type Success } from './outcome.js';
import { partyOf, type PaidCall } from './paid-call.js';
import { tellSold } from './record-landed.js';
import { RunEnded, paidBy, RunCleanup, type RunResult, type Run } from './run.js';
import { Settlement } from './settlement.js';
import type { Rail } from '../rails/rail.js';
import { failedOwed, owedTooOften, pending, sold, sameForAll } from './shared-outcome.js';
import type { UnsoldWork, Working } from '../admission/unsold-work.js';
import { Verification } from './verification.js';
import { Work } from './work.js';

/** Longer than verify, work and settle may take together, so that a live claim never looks abandoned. */
const LEASE_MS = 90_000;
const STILL_OWED =
  'The backend failed. This call is paid and stays owed: send the same payment again to try again';

export type FlowParts = {
  ledger: Ledger;
  rail: Rail;
  callers: WaitingCallers;
  /** Without it, `upfront` operations are not sold. */
  orders?: object;
  log: Log;
  observer: Observer;
  now: () => number;
  newPayersWork: SharedBucket;
  unsoldWork: UnsoldWork;
  workDeadlineMs?: number;
  leaseMs?: number;
};

/** The two payment flows, step by step, and the cleanup of each after a failure. */
export class Flows {
  readonly leaseMs: number;
  readonly #ledger: Ledger;
  readonly #log: Log;
  readonly #observer: Observer;
  readonly #now: () => number;
  readonly #takesOrders: boolean;
  readonly #unsoldWork: UnsoldWork;
  readonly #cleanup: RunCleanup;
  readonly #verification: Verification;
  readonly #work: Work;
  readonly #settlement: Settlement;

  constructor(parts: FlowParts) {
    this.leaseMs = parts.leaseMs ?? LEASE_MS;
    this.#ledger = parts.ledger;
    this.#log = parts.log;
    this.#observer = parts.observer;
    this.#now = parts.now;
    this.#takesOrders = parts.orders !== undefined;
    this.#unsoldWork = parts.unsoldWork;
    this.#cleanup = new RunCleanup(parts);
    const { leaseMs } = this;
    const asking = { ...parts, cleanup: this.#cleanup, leaseMs };
    this.#verification = new Verification(asking);
    const shared = { ...asking, verification: this.#verification };
    this.#work = new Work(shared);
    this.#settlement = new Settlement(shared);
  }

  /** `authorization`: verify → work → settle → deliver; for known payers work → settle → deliver. */
  authorization(run: Run): Promise<RunResult> {
    return this.#run(run, async () => {
      const answer = await this.#work.verifyAndWork(run);
      const settlement = await this.#settlement.settle(run, answer);
      run.working?.sold();
      await this.#deliver(run, answer, settlement);
      return sold(paidBy(run, settlement), answer);
    });
  }

  /** `upfront`: verify, but for known payers → can the order be served now? → settle → seen on chain → owed. The order worker continues from there. */
  upfront(run: Run): Promise<RunResult> {
    return this.#run(run, async () => {
      if (!this.#verification.isSpared(run)) await this.#verification.verify(run);
      await this.#readyForOrder(run);
      const settlement = await this.#settlement.settle(run);
      const seen = await this.#settlement.confirmed(run.id, settlement);
      const owed = seen && (await this.#ledger.owe(run.id, run.claim, { settlement }));
      if (!owed) return this.#settlement.inDoubt(run, settlement);
      this.#sold(run, settlement);
      await this.#cleanup.endLease(run);
      return 'reread';
    });
  }

  /** The payment is in `settling` and its settlement is unresolved: sends a second settle request. */
  askAgain(id: string): Promise<RunResult> {
    return this.#settlement.askAgain(id);
  }

  /**
   * The payment is `owed` and its answer was deleted: repeats the work when the buyer asks, until there is an answer. Attempts that fail
   * are unsold work of the payer's.
   */
  async redoOwedWork(id: string, call: PaidCall): Promise<RunResult> {
    const row = await this.#ledger.adopt(id, this.leaseMs);
    if (!row) return 'reread';
    // Others can fill the accounts of its source and its backend, and this call is paid.
    const party = { ...partyOf(call, true), source: undefined, backend: undefined };
    let working: Working | undefined;
    try {
      if (row.state !== 'owed') return 'reread';
      const begun = this.#unsoldWork.begin(party);
      if ('whose' in begun) {
        this.#unsoldWork.turnedAway(party, begun);
        return owedTooOften(row, begun.seconds);
      }
      working = begun;
      const answer = await this.#work.work(call, new AbortController());
      if (answer.status !== 200) {
        working.unsold('caller');
        return failedOwed(row, STILL_OWED);
      }
      const how = {
        settlement: row.settlement ?? '',
        answerExpiresAt: this.#now() + answerLifeMs(row.identifier, answer.body.length),
      };
      const saved = await this.#ledger.saveAnswer(id, row.claim, answer);
      return saved && (await this.#ledger.deliver(id, row.claim, how)) ? sold(row, answer) : 'reread';
    } finally {
      working?.end();
      await this.#cleanup.endLease(row);
    }
  }

  /** A failure before `settling` frees the claim. A failure after it leaves the row to the reconciler. */
  async #run(run: Run, steps: () => Promise<RunResult>): Promise<RunResult> {
    try {
      if (run.earlier) await this.#redeemEarlier(run);
      return await steps();
    } catch (error) {
      if (error instanceof RunEnded) return error.result;
      this.#log.error({ payment: run.id, operation: run.call.operation.id, error }, 'charge failed');
      await this.#cleanup.freeClaim(run, true);
      const row = await this.#ledger.find(run.id).catch(() => undefined);
      if (row?.state !== 'settling') return sameForAll(failedToProcess());
      await this.#cleanup.endLease(run);
      return pending(row);
    } finally {
      run.unverified?.end();
      run.working?.end();
    }
  }

  /**
   * At claim time there was an equal sale without a caller: redeems that one, if still possible, before any work is done. It is verified
   * for every payer, because a payment that redeems another is never settled.
   */
  async #redeemEarlier(run: Run): Promise<void> {
    await this.#verification.verify(run);
    await this.#settlement.redeemEarlier(run);
  }

  async #readyForOrder(run: Run): Promise<void> {
    const { upfront } = run.call;
    const instead =
      this.#takesOrders && upfront
        ? await upfront.ready()
        : failure(503, `This operation is not available. ${NOT_CHARGED}; try again later`);
    if (instead) await this.#cleanup.endRun(run, sameForAll({ kind: 'answer', answer: instead }), false);
  }

  async #deliver(run: Run, answer: Success, settlement: string): Promise<void> {
    const { id, claim, payerKnown, call } = run;
    const answerExpiresAt = this.#now() + answerLifeMs(call.payment.identifier, answer.body.length);
    try {
      const moved = await this.#ledger.deliver(id, claim, { settlement, answerExpiresAt, payerKnown });
      if (moved) this.#sold(run, settlement);
      else this.#log.error({ payment: id, settlement }, 'could not mark a settled payment as delivered');
    } catch (error) {
      // The money moved, so the buyer gets the answer. The row is finished later.
      this.#log.error({ payment: id, error }, 'the ledger could not record a settlement');
    }
  }

  #sold({ id, call }: Run, settlement: string): void {
    const { operation, payment, requestId, spent } = call;
    tellSold(this.#observer, {
      payment: id,
      operation: operation.id,
      flow: operation.flow,
      payer: payment.checked.payer,
      amount: operation.price.atomic,
      settlement,
      requestId,
      spent,
    });
  }
}
