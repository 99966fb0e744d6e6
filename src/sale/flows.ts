import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Working } from '../admission/unsold-work.js';
import type { Deps } from './deps.js';
import {
  answerLifeMs,
  failedOwed,
  failedToProcess,
  failure,
  isSuccess,
  moneyIsWith,
  owedTooOften,
  pending,
  sold,
  type Failure,
  type Success,
} from './outcome.js';
import { partyOf, type PaidCall } from './paid-call.js';
import { tellSold } from './record-landed.js';
import { endLease, endRun, freeClaim, paidBy, type EndOfRun, type Run, type RunResult } from './run.js';
import { inDoubt, isSeen, redeemEarlier, settle } from './settlement.js';
import { isSpared, mayWorkFirst, verify } from './verification.js';
import { verifyAndWork, work } from './work.js';

/** `authorization`: verify → work → settle → deliver; for known payers work → settle → deliver. */
async function authorization(deps: Deps, run: Run): Promise<EndOfRun> {
  const unfit = mayWorkFirst(deps, run) ? undefined : await verify(deps, run);
  if (unfit) return unfit;
  if (run.moved) return owePaid(deps, run);
  const answer = await verifyAndWork(deps, run);
  if ('ended' in answer) return answer;
  const settled = await settle(deps, run, answer);
  if ('ended' in settled) return settled;
  run.working?.sold();
  await deliver(deps, run, answer, settled.settlement);
  return { ended: sold(paidBy(run, settled.settlement), answer) };
}

/**
 * `upfront`: verify (not for known payers) → can the order be served now? → settle → seen on chain → owed. The order worker then
 * continues.
 */
async function upfront(deps: Deps, run: Run): Promise<EndOfRun> {
  const unfit = isSpared(deps, run) ? undefined : await verify(deps, run);
  if (unfit) return unfit;
  const answer = await whyNoOrder(deps, run.call);
  if (answer && !(run.moved && answer.status !== 400))
    return endRun(deps, run, { kind: 'failed', answer }, false);
  return owePaid(deps, run);
}

/**
 * Settles, unless the buyer already sent the transfer, and marks the answer as owed. Work on orders then continues without a caller; work
 * on other calls only while a caller waits.
 */
async function owePaid(deps: Deps, run: Run): Promise<EndOfRun> {
  const settled = await settle(deps, run);
  if ('ended' in settled) return settled;
  const seen = await isSeen(deps, run.id, settled.settlement);
  const owed = seen && (await deps.ledger.owe(run.id, run.claim, settled));
  if (!owed) return inDoubt(deps, run, settled.settlement);
  tellSoldBy(deps, run, settled.settlement);
  await endLease(deps, run);
  return { ended: 'reread' };
}

/** Runs a flow to its end. A failure before `settling` frees the claim. A failure after it leaves the row to the reconciler. */
export async function runFlow(deps: Deps, run: Run): Promise<RunResult> {
  try {
    const redeemed = run.earlier ? await verifyAndRedeem(deps, run) : undefined;
    const flow = run.call.operation.flow === 'upfront' ? upfront : authorization;
    const { ended } = redeemed ?? (await flow(deps, run));
    return ended === 'reread' ? ended : moneyIsWith(run, ended);
  } catch (error) {
    deps.log.error({ payment: run.id, operation: run.call.operation.id, error }, 'charge failed');
    await freeClaim(deps, run, true);
    const row = await deps.ledger.find(run.id).catch(() => undefined);
    if (row?.state !== 'settling') return failedToProcess();
    await endLease(deps, run);
    return pending(row);
  } finally {
    run.unverified?.end();
    run.working?.end();
  }
}

/**
 * For an `owed` payment whose answer was deleted. Repeats the work whenever the buyer asks, until there is an answer. Failed attempts count as the
 * payer's unsold work.
 */
export async function redoOwedWork(deps: Deps, id: string, call: PaidCall): Promise<RunResult> {
  const { ledger, now, unsoldWork, leaseMs } = deps;
  const row = await ledger.adopt(id, leaseMs);
  if (!row) return 'reread';
  // Only the payer's own limit applies. Other payers can use up the limits of the source and the backend, but this call is already paid.
  const party = { ...partyOf(call, true), source: undefined, backend: undefined };
  let working: Working | undefined;
  try {
    if (row.state !== 'owed') return 'reread';
    const begun = unsoldWork.begin(party);
    if ('whose' in begun) {
      unsoldWork.turnedAway(party, begun);
      return owedTooOften(row, begun);
    }
    working = begun;
    const answer = await work(deps, call, new AbortController());
    if (!isSuccess(answer)) {
      working.unsold('caller');
      return failedOwed(row);
    }
    const how = {
      settlement: row.settlement ?? '',
      answerExpiresAt: now() + answerLifeMs(row.identifier, answer.body.length),
    };
    const saved = await ledger.saveAnswer(id, row.claim, answer);
    return saved && (await ledger.deliver(id, row.claim, how)) ? sold(row, answer) : 'reread';
  } finally {
    working?.end();
    await endLease(deps, row);
  }
}

/**
 * At claim time there was an equal sale without a caller. Redeems that sale, if still possible, before any work is done. The payment is
 * verified even if its payer is known, because a payment that redeems another is never settled.
 */
async function verifyAndRedeem(deps: Deps, run: Run): Promise<EndOfRun | undefined> {
  return (await verify(deps, run)) ?? (run.moved ? undefined : redeemEarlier(deps, run));
}

async function whyNoOrder({ orders }: Deps, { upfront }: PaidCall): Promise<Failure | undefined> {
  if (orders && upfront) return upfront.ready();
  return failure(503, `This operation is not available. ${NOT_CHARGED}; try again later`);
}

async function deliver(deps: Deps, run: Run, answer: Success, settlement: string): Promise<void> {
  const { ledger, log, now } = deps;
  const { id, claim, payerKnown, call } = run;
  const answerExpiresAt = now() + answerLifeMs(call.payment.identifier, answer.body.length);
  try {
    const moved = await ledger.deliver(id, claim, { settlement, answerExpiresAt, payerKnown });
    if (moved) tellSoldBy(deps, run, settlement);
    else log.error({ payment: id, settlement }, 'could not mark a settled payment as delivered');
  } catch (error) {
    // The money moved, so the buyer gets the answer even though the ledger failed. The row is updated later.
    log.error({ payment: id, error }, 'the ledger could not record a settlement');
  }
}

function tellSoldBy({ observer }: Deps, { id, call }: Run, settlement: string): void {
  const { operation, payment, requestId, spent } = call;
  tellSold(observer, {
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
