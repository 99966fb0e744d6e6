import { answerRow } from './answer-store.js';
import type { AnswerStore, AnswerContent } from './answer-store.js';
import { CALLER_LIVE_MS, HANG_UP_MARGIN_MS } from './callers.js';
import type { Caller } from './callers.js';
import { MAX_ALIASES } from './claim.js';
import type { Now } from './clock.js';
import { execute, finish } from './engine.js';
import type { Dialect, TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import { holdForAnswer, saveAnswer } from './queries/answers.js';
import { watch } from './queries/callers.js';
import { createdAt, endLease, find, lockPayerOf } from './queries/claims.js';
import type { Call as CallColumns, Fence } from './queries/conditions.js';
import { bind, countAliases, identifierPaid, lockEqualCalls, lockRow } from './queries/equal-calls.js';
import type { LockedRow } from './queries/equal-calls.js';
import { settle } from './queries/transitions.js';
import type { ReceiverBinding } from './receiver-binding.js';

/**
 * The maximum number of equal payments (those for the same call) to consider. If there are more, someone is
 * attacking with many signatures for one call.
 */
const MAX_EQUAL = 512;

/** Two payments without an identifier are for the same call if these are equal. `requestHash`: hex sha256 of operation and body. */
export type CallKey = { payer: string; operation: string; requestHash: string };

/** A request to move a payment to `settling`. */
export type SettleRequest = {
  /**
   * The call that the payment is for; absent if the payment has an identifier, because then the identifier
   * decides whether this is a new sale.
   */
  call?: CallKey;
  /** The answer that is being paid for. It is stored as `saveAnswer` would store it. */
  answer?: AnswerContent;
  /** The number of the payment's newest caller at this server; 0 if there are none. */
  newestLocal: number;
  /** Only looks for an earlier sale to redeem; settles nothing, because the work is not done yet. */
  attachOnly?: boolean;
  /** The signature of the transaction, if known before it is sent. */
  settlement?: string;
  evidence?: string;
  /**
   * Set if the buyer has already sent the transfer: it landed after this position on the rail. The payment is then settled even if no
   * caller is waiting.
   */
  movedAfter?: number;
};

/**
 * - `settling`: the settle request may be sent.
 * - `attached`: the payment is now an alias of `target` and will never be settled; `caller` is the newest request that waited for it at
 *   this server, now a caller of `target`. All its other callers must get 503.
 * - `wait`: nothing has changed. Equal payments (`unseen`) have callers that have not been renewed since this payment arrived, so they may
 *   have left. Repeat the call later: within `CALLER_LIVE_MS + HANG_UP_MARGIN_MS` their server renews each of them, or it counts as gone.
 * - `gone`: no caller is waiting, or the payment is no longer claimed by this server, has become an alias, or its identifier was paid for
 *   with another payment. The lease was ended; the row stays.
 * - `sell`: `attachOnly` was set and there is no sale to attach to. Nothing has changed.
 * - `limit`: the earlier sale, or this one, would have too many aliases. Nothing has changed.
 */
export type SettleDecision =
  | { kind: 'settling' }
  | { kind: 'attached'; target: Payment; caller: Caller | undefined }
  | { kind: 'wait'; unseen: string[] }
  | { kind: 'gone' }
  | { kind: 'sell' }
  | { kind: 'limit' };

/** What `settlePayment` needs from the ledger. */
export type SettleContext = {
  readonly dialect: Dialect;
  readonly now: Now;
  readonly answers: AnswerStore;
  readonly receiver: ReceiverBinding;
};
type Settle = { fence: Fence; sent: SettleRequest; context: SettleContext };
type Result =
  Exclude<SettleDecision, { kind: 'settling' }> | { kind: 'settling'; grown: number } | { kind: 'full' };

/**
 * The only place that decides whether a payment is settled, in one transaction, after the answer was made. The engine has locked the payer
 * of `call`.
 */
export function* settlePayment(
  fence: Fence,
  sent: SettleRequest,
  context: SettleContext,
): TransactionBody<Result> {
  const { dialect, now } = context;
  const { id } = fence;
  const all = { fence, sent, context };
  if (maySettleAlone(all)) {
    const settled = yield* settleOwn(all, { alone: true });
    if (settled) return settled;
  }
  const rows = (yield* lockRows(id, sent, dialect, now)).map(locked);
  const own = rows.find(row => row.id === id);
  const moment = rows.at(-1)?.now ?? 0;
  const awaited = sent.movedAfter !== undefined || (own?.caller_until ?? 0) > moment;
  if (!own || !awaited || !isOurs(own, fence)) return yield* drop(fence);
  if (!sent.call && (yield* execute(identifierPaid({ id }))).length > 0) return yield* drop(fence);
  if (rows.length > MAX_EQUAL) return { kind: 'limit' };
  const equals = rows.filter(row => row !== own && isOpen(row) && !isWritten(row, own, moment));
  return yield* settleBeside(equals, own, moment, all);
}

function* settleBeside(
  equals: readonly Locked[],
  own: Locked,
  moment: number,
  all: Settle,
): TransactionBody<Result> {
  const unseen = equals.filter(row => isSole(row, moment) && !seenSince(row, own)).map(row => row.id);
  if (unseen.length > 0) return { kind: 'wait', unseen };
  const shared = equals.filter(row => !isSole(row, moment));
  const claimed = shared.filter(row => row.state === 'claimed');
  const [target] = shared.filter(row => row.state !== 'claimed').sort(byAge);
  if (target) return yield* attachTo(target, own, claimed, all);
  if (all.sent.attachOnly) return { kind: 'sell' };
  if (claimed.length > MAX_ALIASES) return { kind: 'limit' };
  const settled = yield* settleOwn(all, { binds: claimed.length > 0 });
  if (!settled) {
    yield* all.context.receiver.check();
    return yield* drop(all.fence);
  }
  // The answer store is full: nothing has changed.
  if (settled.kind !== 'settling') return settled;
  for (const other of claimed) yield* execute(bind({ id: other.id, alias_of: own.id }));
  return settled;
}

/** A row with its id in hex. */
type Locked = Omit<LockedRow, 'id'> & { id: string };

function locked(row: LockedRow): Locked {
  return { ...row, id: idOf(row.id) };
}

/**
 * Whether to try a single UPDATE that checks all conditions. It succeeds for nearly all payments, because they have no equal payments, and none can
 * be claimed while their payer is locked.
 */
function maySettleAlone({ sent }: Settle): boolean {
  return sent.call !== undefined && !sent.attachOnly;
}

/** Locks the row and its equal payments. No other payment by this payer can be claimed until the commit. */
function* lockRows(
  id: string,
  { call }: SettleRequest,
  dialect: Dialect,
  now: Now,
): TransactionBody<LockedRow[]> {
  const [came] = yield* execute(call || !dialect.concurrentWriters ? createdAt({ id }) : lockPayerOf({ id }));
  if (!came) return [];
  if (!call) return yield* execute(lockRow({ id, now: now() }));
  const { created_at } = came;
  // One more than the maximum, because the payment itself may be among the rows.
  const limit = MAX_EQUAL + 1;
  return yield* execute(lockEqualCalls({ id, ...equalTo(call), created_at, limit, now: now() }));
}

function equalTo({ payer, operation, requestHash }: CallKey): CallColumns {
  return { payer, operation, request_hash: requestHash };
}

/** Whether the claim belongs to this server. */
function isOurs(own: Locked, { claim, owner }: Fence): boolean {
  return own.state === 'claimed' && own.claim === claim && own.owner === owner && own.alias_of === null;
}

/** Whether the payment can still be redeemed. It may have changed between the read and the lock. */
function isOpen({ state, alias_of }: Locked): boolean {
  return alias_of === null && state !== 'released' && state !== 'refunded';
}

/** Whether the payment has had only one caller, who is still there. In that case it is a sale of its own. */
function isSole(row: Locked, moment: number): boolean {
  return row.callers === 1 && row.caller_until > moment;
}

/**
 * Whether the answer has expired or was written to the newest caller. If there were several callers, it must have been written before `own`
 * arrived.
 */
function isWritten(row: Locked, own: Locked, moment: number): boolean {
  if (row.state !== 'delivered') return false;
  if (row.answer_expires_at === null || row.answer_expires_at <= moment) return true;
  if (row.written_to !== row.callers || row.written_at === null) return false;
  return row.callers === 1 || row.written_at <= own.created_at;
}

/** Whether the caller of `row` was renewed after payment `own` arrived. If it had hung up before that, this would be recorded by now. */
function seenSince(row: Locked, own: Locked): boolean {
  return row.caller_until >= own.created_at + CALLER_LIVE_MS + HANG_UP_MARGIN_MS;
}

function byAge(a: Locked, b: Locked): number {
  return a.created_at - b.created_at || (a.id < b.id ? -1 : 1);
}

function* drop(fence: Fence): TransactionBody<Result> {
  yield* execute(endLease(fence));
  return { kind: 'gone' };
}

function* attachTo(
  target: Locked,
  own: Locked,
  claimed: readonly Locked[],
  { sent, context: { now } }: Settle,
): TransactionBody<Result> {
  const [count] = yield* execute(countAliases({ id: target.id }));
  if ((count?.aliases ?? 0) + claimed.length + 1 > MAX_ALIASES) return { kind: 'limit' };
  for (const { id } of [own, ...claimed]) yield* execute(bind({ id, alias_of: target.id }));
  const goesOver = sent.newestLocal === own.callers;
  const [row] = goesOver
    ? yield* execute(watch({ id: target.id, live_ms: CALLER_LIVE_MS, request_id: null, now: now() }))
    : yield* execute(find({ id: target.id, now: now() }));
  if (!row) throw new Error(`the payment ${target.id} vanished under its lock`);
  const caller = goesOver ? { id: target.id, number: row.callers } : undefined;
  return { kind: 'attached', target: paymentOf(row), caller };
}

/**
 * Moves the payment to `settling` and stores its answer. `alone`: only if it has no equal payments. `binds`: the transaction makes further
 * changes afterwards.
 * @returns undefined if the payment could not be moved
 * @throws LedgerFault if the ledger belongs to another receiver
 */
function* settleOwn(
  { fence, sent, context }: Settle,
  { alone = false, binds = false },
): TransactionBody<Result | undefined> {
  const { answer } = sent;
  // A payment that redeems an earlier sale needs no space, so one without space is refused only after a search for equal ones.
  if (answer && (yield* lacksSpace(fence, answer, context.answers)))
    return alone ? undefined : { kind: 'full' };
  const [row] = yield* execute(
    settle({
      ...fence,
      alone,
      settlement: sent.settlement ?? null,
      signed_transaction: sent.evidence ?? null,
      moved_after: sent.movedAfter ?? null,
      payTo: context.receiver.payTo,
      now: context.now(),
    }),
  );
  if (!row) return undefined;
  yield* context.receiver.bind();
  if (!answer) return { kind: 'settling', grown: 0 };
  yield* (binds ? execute : finish)(saveAnswer({ ...answerRow(fence.id, answer), now: context.now() }));
  return { kind: 'settling', grown: answer.body.byteLength - (row.answered ?? 0) };
}

/** Whether the store lacks space for an answer, even if it replaces the payment's stored answer. */
function* lacksSpace(fence: Fence, { body }: AnswerContent, answers: AnswerStore): TransactionBody<boolean> {
  if (!answers.isFull(body.byteLength)) return false;
  const [held] = yield* execute(holdForAnswer(fence));
  return held !== undefined && answers.isFull(body.byteLength - (held.size ?? 0));
}
