import { randomBytes } from 'node:crypto';
import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { Query, TransactionBody } from './engine.js';
import { LedgerFault } from './fault.js';
import { idOf } from './ids.js';
import { readMeta } from './migrate.js';
import { tellOf } from './outbox.js';
import { paymentOf, repaidOf, type Payment } from './payment.js';
import { findToChange, lockPayer } from './queries/claims.js';
import { finishOrder, givenUpOrder, givenUpOrders } from './queries/orders.js';
import { insertRefund } from './queries/refunds.js';
import * as queries from './queries/repayments.js';
import * as moves from './queries/transitions.js';
import type { PaymentRow, RefundRow, RepaymentRow } from './schema.js';
import type { RepaymentCause, RepaymentWay, State } from './states.js';

const ID_BYTES = 12;
const MAX_LISTED = 1_000;
const PAGE = 100;
const DAY_MS = 86_400_000;
const MAX_REASON_CHARACTERS = 500;
const BY_HAND = 'another transfer was recorded instead';

/** A refund of a payment or a part of it, from its request to its transfer. Amounts in atomic units, times in ms since 1970. */
export type Repayment = Readonly<ReturnType<typeof repaymentOf>>;

/**
 * The policy for automatic refunds of orders. `afterMs`: how long ago an order must have been given up. `dailyCap`: the most that all servers
 * together refund in 24 hours, in atomic units.
 */
export type RefundPolicy = { afterMs: number; dailyCap: bigint };

/**
 * A refund to start. `policy`: set for an automatic refund. `reason`: the operator's text. `after`: the rail's position; only a transfer after
 * it counts as this refund.
 */
export type NewRepayment = {
  payment: string;
  amount: bigint;
  way: RepaymentWay;
  policy?: RefundPolicy;
  reason?: string | undefined;
  after: number;
};

/**
 * Whether a refund was started.
 * - `too much`: the amount is more than what is left to refund (`left`).
 * - `under way`: another refund of the payment must end first.
 * - `not paid`: there is no such payment, or its money did not move.
 * - `not due`: the policy does not allow a refund of this payment yet.
 * - `over the cap`: the policy's limit for 24 hours is used up.
 */
export type StartedRepayment =
  | { kind: 'started'; repayment: Repayment }
  | { kind: 'too much'; left: bigint }
  | { kind: 'under way'; repayment: Repayment }
  | { kind: 'not paid'; state: State | undefined }
  | { kind: 'not due' | 'over the cap' };

/** A finalized transfer of a refund. `source`: its sender. */
export type LandedRepayment = { signature: string; slot: number; at: number; source: string };

/**
 * A transfer on chain that refunded a payment or a part of it. A transfer counts for one refund only. `amount`: what the payer received, in
 * atomic units. `refundedAt`: time of its block, in ms since 1970. `source`: its sender.
 */
export type Refund = { signature: string; amount: bigint; slot: number; refundedAt: number; source?: string };

export type RecordedRefund = 'refunded' | 'repaid' | 'not paid' | 'nothing left' | 'under way' | 'used';

/**
 * The outcome of recording a transfer as a repayment.
 * - `done`: it is recorded, now or earlier.
 * - `twice`: another transfer had already made this repayment, so the payer was repaid twice.
 * - `used`: the transfer already counts as another repayment.
 * - `unknown`: there is no such repayment.
 */
export type RepaymentOutcome = 'done' | 'twice' | 'used' | 'unknown';

function repaymentOf(row: RepaymentRow) {
  return {
    id: row.id,
    payment: idOf(row.payment),
    amount: BigInt(row.amount),
    /** The recipient: the payment's payer. */
    receiver: row.receiver,
    way: row.way,
    state: row.state,
    cause: row.cause,
    reason: row.reason,
    after: row.after,
    /** The signed transaction, in the rail's own form. It is stored before it is sent, and no other one is sent for this repayment. */
    evidence: row.evidence,
    /** The signature of the transaction that makes the repayment, once it is known. */
    signature: row.signature,
    /** The rail's position after which the signed transaction can't land. */
    position: row.position,
    createdAt: row.created_at,
    /** When the repayment became `done`, `failed` or `cancelled`. */
    decidedAt: row.decided_at,
    slot: row.slot,
    landedAt: row.landed_at,
    source: row.source,
    /** Why the repayment failed or was cancelled. */
    failure: row.failure,
  };
}

/**
 * Refunds to payers. An amount is reserved before anything is signed, and stays reserved until the transfer
 * has landed or provably never can. The refunds of a payment, reserved and landed, never add up to more than
 * was paid. All functions reject with a LedgerFault.
 */
export function repaymentsOf(connection: Connection) {
  const { engine, now } = connection;
  const written = async (
    operation: () => TransactionBody<RepaymentRow | undefined>,
  ): Promise<Repayment | undefined> => {
    const row = await engine.write(operation);
    return row && repaymentOf(row);
  };
  return {
    /** The repayments of a payment, oldest first. */
    repaymentsOf: async (payment: string): Promise<Repayment[]> =>
      (await engine.read(() => execute(queries.repaymentsOf({ id: payment })))).map(repaymentOf),
    repayment: async (id: string): Promise<Repayment | undefined> => {
      const [row] = await engine.read(() => execute(queries.findRepayment({ id })));
      return row && repaymentOf(row);
    },
    /** The repayments that are `asked` or `sending`, oldest first, at most 1 000 after the given one. */
    openRepayments: async (after?: Repayment, limit = MAX_LISTED): Promise<Repayment[]> => {
      const page = {
        created_at: after?.createdAt ?? 0,
        id: after?.id ?? '',
        limit: Math.min(limit, MAX_LISTED),
      };
      return (await engine.read(() => execute(queries.openRepayments(page)))).map(repaymentOf);
    },
    /** Owed payments whose orders were given up at least `afterMs` ago, oldest first, at most 100 after the given one. */
    givenUpOrders: async (afterMs: number, after?: Payment): Promise<Payment[]> => {
      const page = { afterMs, created_at: after?.createdAt ?? 0, id: after?.id ?? '' };
      const rows = await engine.read(() => execute(givenUpOrders({ ...page, limit: PAGE, now: now() })));
      return rows.map(paymentOf);
    },
    /**
     * Reserves an amount of a payment that is owed or delivered. A payment has at most one repayment under way. If an owed payment is to be
     * repaid in full, work on it ends.
     */
    startRepayment: (request: NewRepayment): Promise<StartedRepayment> => {
      const id = randomBytes(ID_BYTES).toString('hex');
      return engine.write(() => start(connection, id, request));
    },
    /**
     * Stores the signed transaction before it is sent.
     * @returns the stored transaction, which is another process's if that process was faster
     */
    writeDownRepayment: (
      id: string,
      signed: { evidence: string; signature: string; position: number },
    ): Promise<Repayment | undefined> =>
      written(function* () {
        const [row] = yield* execute(queries.writeDownRepayment({ id, ...signed }));
        if (row) return row;
        const [stored] = yield* execute(queries.findRepayment({ id }));
        return stored;
      }),
    /** Records the transfer that made a repayment, whatever the repayment's state. An owed payment that is now repaid in full becomes `refunded`. */
    landRepayment: (id: string, landed: LandedRepayment): Promise<RepaymentOutcome> =>
      engine.write(() => land(connection, id, landed)),
    /**
     * Records a refund that was sent by hand and found on chain. Cancels an unpaid payment link for the same
     * refund.
     * @returns `refunded`: an owed payment was repaid in full; `repaid`: a part of an owed payment was
     * repaid, or a payment whose answer had been delivered
     */
    refund: (payment: string, paidBack: Refund): Promise<RecordedRefund> => {
      const id = randomBytes(ID_BYTES).toString('hex');
      return engine.write(() => record(connection, id, payment, paidBack));
    },
    /** Records that the signed transaction can provably never land, which frees the amount. @returns false if another one is stored */
    failRepayment: async (id: string, signature: string, failure: string): Promise<boolean> =>
      engine.write(() => end(connection, id, { state: 'failed', signature, failure })),
    /** Cancels a repayment. @returns false if it has ended, or if a signed transaction may still land */
    cancelRepayment: async (id: string, failure: string): Promise<boolean> =>
      engine.write(() => end(connection, id, { state: 'cancelled', signature: null, failure })),
  };
}

function* start(
  connection: Connection,
  id: string,
  request: NewRepayment,
): TransactionBody<StartedRepayment> {
  const { now } = connection;
  const { payment, amount, policy } = request;
  yield* refuseRetired();
  // The row lock makes other refunds of this payment wait.
  const [row] = yield* execute(findToChange({ id: payment }));
  if (!row || !isPaid(row)) return { kind: 'not paid', state: row?.state };
  const open = yield* underWay(payment);
  if (open) return { kind: 'under way', repayment: repaymentOf(open) };
  const left = BigInt(row.amount) - repaidOf(row);
  if (amount <= 0n || amount > left) return { kind: 'too much', left };
  const refusal = policy && (yield* policyRefusal(connection, policy, payment, amount));
  if (refusal) return { kind: refusal };
  const repayment = yield* reserve(row, id, request, now());
  if (row.state === 'owed' && amount === left) yield* execute(queries.fenceOff({ id: payment }));
  return { kind: 'started', repayment };
}

function* reserve(
  row: PaymentRow,
  id: string,
  { payment, amount, way, policy, reason, after }: NewRepayment,
  now: Query,
): TransactionBody<Repayment> {
  const cause: RepaymentCause = policy ? 'policy' : 'operator';
  const values = { id, payment, amount: String(amount), receiver: row.payer, way, cause, after };
  const state = way === 'key' ? 'sending' : 'asked';
  const text = reason?.slice(0, MAX_REASON_CHARACTERS) ?? null;
  const [made] = yield* execute(queries.insertRepayment({ ...values, state, reason: text, now }));
  if (!made) throw new LedgerFault('failed', 'The refund could not be stored. Nothing was changed.');
  yield* setSums(row, { repaying: BigInt(row.repaying) + amount });
  return repaymentOf(made);
}

/**
 * Why the policy does not allow a refund; undefined if it does. Only one server at a time can check, so that
 * all servers together stay within the cap.
 */
function* policyRefusal(
  { engine, now }: Connection,
  { afterMs, dailyCap }: RefundPolicy,
  payment: string,
  amount: bigint,
): TransactionBody<'not due' | 'over the cap' | undefined> {
  const [order] = yield* execute(givenUpOrder({ payment, afterMs, now: now() }));
  if (!order) return 'not due';
  if (engine.dialect.concurrentWriters) yield* execute(lockPayer({ payer: 'refunds by policy' }));
  const [sum] = yield* execute(queries.repaidWithin({ cause: 'policy', ms: DAY_MS, now: now() }));
  return BigInt(sum?.amount ?? '0') + amount > dailyCap ? 'over the cap' : undefined;
}

function* record(
  connection: Connection,
  id: string,
  payment: string,
  { signature, amount, slot, refundedAt: at, source = '' }: Refund,
): TransactionBody<RecordedRefund> {
  const { now } = connection;
  yield* refuseRetired();
  const [row] = yield* execute(findToChange({ id: payment }));
  if (!row || !isPaid(row)) return 'not paid';
  if (yield* isUsed(connection, signature, { id, payment })) return 'used';
  if (repaidOf(row) >= BigInt(row.amount)) return 'nothing left';
  const open = yield* underWay(payment);
  if (open?.state === 'sending') return 'under way';
  if (open) yield* end(connection, open.id, { state: 'cancelled', signature: null, failure: BY_HAND });
  const values = { id, payment, amount: String(amount), receiver: row.payer, after: row.claim_slot };
  const as = { way: 'recorded', state: 'asked', cause: 'operator', reason: null } as const;
  yield* execute(queries.insertRepayment({ ...values, ...as, now: now() }));
  yield* setSums(row, { repaying: amount });
  yield* land(connection, id, { signature, slot, at, source });
  return row.state === 'owed' && repaidOf(row) + amount >= BigInt(row.amount) ? 'refunded' : 'repaid';
}

function isPaid({ alias_of, state }: PaymentRow): boolean {
  return alias_of === null && (state === 'owed' || state === 'delivered');
}

function* underWay(payment: string): TransactionBody<RepaymentRow | undefined> {
  const rows = yield* execute(queries.repaymentsOf({ id: payment }));
  return rows.find(each => each.decided_at === null);
}

function* land(
  connection: Connection,
  id: string,
  { signature, slot, at, source }: LandedRepayment,
): TransactionBody<RepaymentOutcome> {
  const { now } = connection;
  yield* refuseRetired();
  const found = yield* lockBoth(id);
  if (!found) return 'unknown';
  const { row, repayment } = found;
  if (repayment.state === 'done') return repayment.signature === signature ? 'done' : 'twice';
  const own = { id, payment: idOf(repayment.payment) };
  if (yield* isUsed(connection, signature, own)) return 'used';
  yield* execute(queries.landRepayment({ id, signature, slot, landed_at: at, source, now: now() }));
  const amount = BigInt(repayment.amount);
  const repaid = repaidOf(row) + amount;
  const reserved = repayment.decided_at === null ? amount : 0n;
  yield* setSums(row, { repaid, repaying: BigInt(row.repaying) - reserved, by: signature });
  const told = { kind: 'payment.refunded', id: own.payment, once: signature } as const;
  yield* tellOf(connection, told, { refund: signature, refunded: String(amount) });
  if (row.state !== 'owed' || repaid < BigInt(row.amount)) return 'done';
  yield* refundWhole(row, { signature, amount: String(repaid), slot, refunded_at: at }, now());
  return 'done';
}

/** Records the full refund of an owed payment, also in the table that servers of earlier versions read. */
function* refundWhole(
  row: PaymentRow,
  refund: Omit<RefundRow, 'payment'>,
  now: ReturnType<Connection['now']>,
): TransactionBody<void> {
  const payment = idOf(row.id);
  yield* execute(insertRefund({ ...refund, payment }));
  yield* execute(moves.refund({ id: payment, reason: `transaction ${refund.signature}`, now }));
  yield* execute(finishOrder({ payment, now }));
}

function* end(
  { now }: Connection,
  id: string,
  how: { state: 'failed' | 'cancelled'; signature: string | null; failure: string },
): TransactionBody<boolean> {
  yield* refuseRetired();
  const found = yield* lockBoth(id);
  if (!found) return false;
  const [ended] = yield* execute(queries.endRepayment({ id, ...how, now: now() }));
  if (!ended) return false;
  yield* setSums(found.row, { repaying: BigInt(found.row.repaying) - BigInt(ended.amount) });
  return true;
}

/** Locks the payment before its repayment. All transactions use this order, so that they can't deadlock. */
function* lockBoth(id: string): TransactionBody<{ row: PaymentRow; repayment: RepaymentRow } | undefined> {
  const [known] = yield* execute(queries.findRepayment({ id }));
  if (!known) return undefined;
  const [row] = yield* execute(findToChange({ id: idOf(known.payment) }));
  const [repayment] = yield* execute(queries.findRepaymentToChange({ id }));
  return row && repayment ? { row, repayment } : undefined;
}

/** Whether a transaction already counts as another repayment. Concurrent checks of the same transaction wait for each other. */
function* isUsed(
  { engine }: Connection,
  signature: string,
  { id, payment }: { id: string; payment: string },
): TransactionBody<boolean> {
  if (engine.dialect.concurrentWriters) yield* execute(lockPayer({ payer: signature }));
  const [other] = yield* execute(queries.repaymentBy({ signature }));
  if (other && other.id !== id) return true;
  const [recorded] = yield* execute(queries.refundBy({ signature }));
  return recorded !== undefined && idOf(recorded.payment) !== payment;
}

function* setSums(
  row: PaymentRow,
  { repaid, repaying, by }: { repaid?: bigint; repaying: bigint; by?: string },
): TransactionBody<void> {
  const sums = { repaid: String(repaid ?? row.repaid), repaying: String(repaying) };
  yield* execute(queries.setRepaid({ id: idOf(row.id), ...sums, repaid_by: by ?? row.repaid_by }));
}

function* refuseRetired(): TransactionBody<void> {
  if ((yield* readMeta()).has('retired'))
    throw new LedgerFault('failed', 'This ledger is retired. Record the refund in the one it was copied to.');
}
