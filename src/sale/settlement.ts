import { setTimeout as sleep } from 'node:timers/promises';
import { CALLER_LIVE_MS, HANG_UP_MARGIN_MS } from '../ledger/store.js';
import type { SettleRequest } from '../ledger/store.js';
import type { Fault } from '../net/failure.js';
import type { SettleResult as Settled, Sighting } from '../rails/rail.js';
import type { Deps } from './deps.js';
import {
  facilitatorDown,
  inProgress,
  overLimit,
  pending,
  refusedSettlement,
  type Success,
} from './outcome.js';
import { recordLanded } from './record-landed.js';
import { distrust, endLease, endRun, paidBy, type EndOfRun, type Run, type RunResult } from './run.js';
import { sign, type Stored } from './verification.js';

/** After this time, the ledger shows whether the caller of an equal payment is still there, because its record has been renewed or not. */
const EQUAL_SEEN_WITHIN_MS = CALLER_LIVE_MS + 2 * HANG_UP_MARGIN_MS;

/** The longest wait before a second settle request: well below the time for which a call is held, its lease, and the life of a payment. */
const MAX_ASK_LATER_MS = 20_000;

type Unknown = Settled & { kind: 'unknown' };

/**
 * Stores the answer, and settles the payment if a caller is still waiting for it. A settle request also verifies the payment.
 * @returns `settlement`, the rail's name for the transfer, or how the run ended
 */
export async function settle(
  deps: Deps,
  run: Run,
  answer?: Success,
): Promise<{ settlement: string } | EndOfRun> {
  const { rail, observer } = deps;
  const { checked } = run.call.payment;
  const outage = rail.outage(checked);
  if (outage) return endRun(deps, run, facilitatorDown(outage), answer !== undefined);
  const signed = await sign(deps, run);
  if (signed && 'ended' in signed) return signed;
  const ended = await toSettling(deps, run, { ...(answer ? { answer } : {}), ...signed?.stored });
  if (ended) {
    // Not called if the ledger failed, because it may have stored the signed transaction.
    signed?.withdraw();
    return ended;
  }
  const asked = await observer.step('settle', run.call, () => ask(deps, run, signed?.stored));
  const settled = await checkDenial(deps, run, asked);
  const later = settled.kind === 'unknown' ? await askLater(deps, run, settled) : undefined;
  if (later) return later;
  if (settled.kind !== 'settled') return notSettled(deps, run, settled);
  const { signature: settlement } = settled;
  if (rail.isDoubted(checked) && !(await isSeen(deps, run.id, settlement)))
    return inDoubt(deps, run, settlement);
  return { settlement };
}

/** Redeems an equal sale without a caller, if there still is one, before any work is done. @returns undefined if there is none */
export function redeemEarlier(deps: Deps, run: Run): Promise<EndOfRun | undefined> {
  return toSettling(deps, run, { attachOnly: true });
}

/** Sends a second settle request for an unresolved payment. Only a success counts; any other answer may be about the first request. */
export async function askAgain(deps: Deps, id: string): Promise<RunResult> {
  const { ledger, rail, leaseMs } = deps;
  const row = await ledger.askAgain(id, leaseMs);
  if (!row) return 'reread';
  try {
    const settled = await rail.settleAgain(row);
    if (settled.kind !== 'settled') return pending(row);
    const { signature: settlement } = settled;
    if (!(await isSeen(deps, id, settlement))) return pending({ ...row, settlement });
    return (await recordLanded(deps, row, settlement)) ? 'reread' : pending(row);
  } finally {
    await endLease(deps, row);
  }
}

/** Waits until the transfer can be seen. */
export async function isSeen({ ledger, rail }: Deps, id: string, settlement: string): Promise<boolean> {
  const row = await ledger.find(id);
  return row !== undefined && rail.confirm(row, settlement);
}

/** Leaves the row to the reconciler, to copies of this payment, and to newly signed payments for the same call. */
export async function inDoubt(deps: Deps, run: Run, settlement: string): Promise<EndOfRun> {
  await endLease(deps, run);
  return { ended: pending(paidBy(run, settlement)) };
}

/**
 * Ends the run with a second settle request, after the time that the facilitator asked to wait.
 * @returns undefined if it asked for no wait or too long a wait, or if nobody is waiting for the answer by then
 */
async function askLater(deps: Deps, run: Run, { reason, trouble }: Unknown): Promise<EndOfRun | undefined> {
  const { callers, log } = deps;
  const ms = (trouble?.seconds ?? 0) * 1_000;
  if (ms === 0 || ms > MAX_ASK_LATER_MS) return undefined;
  log.warn(
    { payment: run.id, error: reason, ms },
    'the facilitator asked us to wait; the settle request will be sent again afterwards',
  );
  await sleep(ms, undefined, { signal: run.abandoned, ref: false }).catch(() => {});
  if (run.abandoned.aborted || callers.count(run.id) === 0) return undefined;
  await endLease(deps, run);
  const ended = await askAgain(deps, run.id);
  if (ended === 'reread') run.working?.sold();
  else await countUnpaid(deps, run, 'backend');
  return { ended };
}

async function ask({ rail }: Deps, { call }: Run, stored: Stored | undefined): Promise<Settled> {
  if (stored?.movedAfter !== undefined) return { kind: 'settled', signature: stored.settlement };
  try {
    return await rail.settle(call.payment.checked, call, stored?.evidence);
  } catch (error) {
    return { kind: 'unknown', reason: String(error), signature: '' };
  }
}

/** Facilitators may give some refusals even if the transfer has landed. Such a refusal counts only if the rail does not show the transfer. */
async function checkDenial(deps: Deps, run: Run, settled: Settled): Promise<Settled> {
  if (settled.kind !== 'refused' || !settled.mayHaveLanded) return settled;
  const sighting = await lookFor(deps, run.id).catch((): Sighting => ({ kind: 'unclear' }));
  if (sighting.kind === 'not-seen') return settled;
  if (sighting.kind === 'seen') return { kind: 'settled', signature: sighting.settlement };
  return { kind: 'unknown', reason: settled.reason, signature: '' };
}

async function lookFor({ ledger, rail }: Deps, id: string): Promise<Sighting> {
  const row = await ledger.find(id);
  return row ? rail.lookFor(row) : { kind: 'unclear' };
}

/**
 * Moves the payment to `settling`, unless no caller is waiting for it any more or it redeems an equal call that was sold before. If
 * the caller of an equal call may have just hung up, waits until that caller has been seen again.
 */
async function toSettling(deps: Deps, run: Run, sent: Partial<SettleRequest>): Promise<EndOfRun | undefined> {
  const { ledger, callers, now } = deps;
  const until = now() + EQUAL_SEEN_WITHIN_MS;
  const worked = sent.answer !== undefined;
  const { payment, operation, requestHash } = run.call;
  const call = { payer: payment.checked.payer, operation: operation.id, requestHash };
  // With an identifier, or a transfer that was already sent, the same call is a separate sale.
  const equal = payment.identifier === null && sent.movedAfter === undefined ? { call } : {};
  for (;;) {
    const newestLocal = callers.newest(run.id);
    const moved = await ledger.settle(run.id, run.claim, { ...equal, ...sent, newestLocal });
    switch (moved.kind) {
      case 'settling':
      case 'sell':
        return undefined;
      case 'attached':
        if (moved.caller) callers.reassign({ id: run.id, number: newestLocal }, moved.caller);
        return { ended: 'reread' };
      case 'limit':
        return endRun(deps, run, overLimit('aliases'), worked);
      case 'gone':
        return nobodyWaits(deps, run, worked);
      case 'wait':
        if (now() >= until) return endRun(deps, run, inProgress(), true);
        await sleep(HANG_UP_MARGIN_MS);
        await callers.renew([run.id, ...moved.unseen]);
    }
  }
}

async function nobodyWaits(deps: Deps, run: Run, worked: boolean): Promise<EndOfRun> {
  if (worked && (run.abandoned.aborted || deps.callers.count(run.id) === 0)) {
    run.working?.unsold('caller');
    await distrust(deps, run);
  }
  return endRun(deps, run, 'reread', worked);
}

async function notSettled(
  deps: Deps,
  run: Run,
  settled: Exclude<Settled, { kind: 'settled' }>,
): Promise<EndOfRun> {
  const { ledger, rail, log } = deps;
  const { reason } = settled;
  await countUnpaid(deps, run, settled.kind === 'unknown' ? 'backend' : 'caller');
  if (settled.kind === 'unknown') {
    log.warn({ payment: run.id, reason }, 'a settlement is unresolved');
    return inDoubt(deps, run, settled.signature);
  }
  const released = await ledger.release(run.id, run.claim, reason);
  const paid = paidBy(run, '');
  return { ended: released ? refusedSettlement(paid, rail.explain(reason), reason) : pending(paid) };
}

/** Counts the work as unsold. `fault` is the backend's if the outcome is unknown, because the caller is rarely to blame for that. */
async function countUnpaid(deps: Deps, run: Run, fault: Fault): Promise<void> {
  run.working?.unsold(fault);
  await distrust(deps, run);
}
