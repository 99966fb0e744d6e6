import { dropAnswer, fullFault } from './answer-store.js';
import type { AnswerStore, AnswerContent } from './answer-store.js';
import type { Caller } from './callers.js';
import { checkClaim, claimPayment } from './claim.js';
import type { ClaimResult, ClaimRequest } from './claim.js';
import type { ServerConnection } from './connection.js';
import { changes, execute, finish } from './engine.js';
import type { Query, Scope, TransactionBody } from './engine.js';
import { claimedForCertain, freedForCertain } from './freed-claims.js';
import { tellOf, wasSettled, type Telling } from './outbox.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as claims from './queries/claims.js';
import type { Fence } from './queries/conditions.js';
import * as moves from './queries/transitions.js';
import { knowPayer } from './queries/payers.js';
import type { PaymentView } from './schema.js';
import { settlePayment } from './settle.js';
import type { SettleRequest, SettleDecision } from './settle.js';

/** How a payment was settled. */
type SettlementRecord = {
  /** Signature of the transaction that moved the money. */
  settlement: string;
  /** The transfer was found on chain. Only this proof can revive a released payment. */
  foundOnChain?: boolean;
};

/** `payerKnown`: whether the payer was already known at the claim, so that it need not be recorded. */
type DeliveryRecord = SettlementRecord & { answerExpiresAt: number; payerKnown?: boolean };

/**
 * The transitions of payments. The claim number grows with every claim of a row, and every transition and every answer must present it.
 * This fences off a server whose lease has expired: its calls resolve to false. All functions reject with a LedgerFault if the database
 * fails.
 */
export function transitionsOf(connection: ServerConnection, answers: AnswerStore) {
  const { engine, now, nextClaim, receiver } = connection;
  const { owner, dialect } = engine;
  const claimant = () => ({ owner, now, asked: performance.now(), fresh: nextClaim() });
  const dropped = async (freed: Promise<number | undefined>): Promise<boolean> => {
    const bytes = await freed;
    answers.grow(-(bytes ?? 0));
    return bytes !== undefined;
  };
  const freeClaim = (fence: Fence, keepRun = false): Promise<boolean> =>
    dropped(engine.write(() => free(fence, keepRun)));
  const taken = async (query: () => Query<PaymentView>): Promise<Payment | undefined> => {
    const [row] = await engine.write(() => finish(query()));
    return row && paymentOf(row);
  };
  return {
    /** The owner of claims made through this object; new each time it is opened. */
    owner,
    /**
     * Reserves a payment before any work. A conflict is a result, not an error. A claim whose lease has ended can be taken again, even for
     * another call.
     * @param caller a request that already waits for this payment; it keeps its call and its number
     */
    claim: async (request: ClaimRequest, caller?: Caller): Promise<ClaimResult> => {
      checkClaim(request);
      receiver.refuseForeign();
      await answers.recountWhenStale();
      const context = { ...claimant(), answersFull: answers.closed, caller };
      const claimed = engine.write(() => claimPayment(request, context), claimScope(request));
      return claimedForCertain(claimed, () => freeClaim({ id: request.id, claim: context.fresh, owner }));
    },
    /**
     * Stores an answer, replacing an earlier one. It does not expire before its payment is delivered.
     * @returns false if the claim is no longer this server's
     * @throws LedgerFault `full` if nothing was paid yet and the store exceeds twice its budget
     */
    saveAnswer: (id: string, claim: number, answer: AnswerContent): Promise<boolean> =>
      answers.save({ id, claim, owner }, answer),
    /**
     * Moves a payment from `claimed` to `settling` before the settle request is sent, or makes it an alias of an earlier sale. Only proof
     * can undo `settling`; the passing of time never does.
     * @throws LedgerFault `full` in the same cases as `saveAnswer`, without changing anything
     */
    settle: async (id: string, claim: number, sent: SettleRequest): Promise<SettleDecision> => {
      const context = { dialect, now, answers, receiver };
      const settle = () => settlePayment({ id, claim, owner }, sent, context);
      const result = await engine.write(settle, settleScope(id, sent));
      if (result.kind === 'full') throw fullFault();
      if (result.kind !== 'settling') return result;
      receiver.committed();
      answers.grow(result.grown);
      return { kind: 'settling' };
    },
    /** Claims a `settling` payment that no worker holds, for its second settle request. @returns undefined if it can't be claimed */
    askAgain: (id: string, leaseMs: number): Promise<Payment | undefined> => {
      const by = { id, owner, fresh: nextClaim(), lease_ms: leaseMs };
      return taken(() => moves.askAgain({ ...by, now: now() }));
    },
    ...outcomesOf(connection),
    /** Ends a claim that was not settled, and deletes its answer. `keepRun`: whether the run counts towards the payment's limit of runs. */
    freeClaim: (id: string, claim: number, { keepRun }: { keepRun: boolean }): Promise<boolean> =>
      freedForCertain(() => freeClaim({ id, claim, owner }, keepRun)),
    /** Deletes a claim whose payment was refused at verification, so that `settle` does not consider it for equal payments. */
    deleteClaim: (id: string, claim: number): Promise<boolean> =>
      dropped(engine.write(() => removeClaim({ id, claim, owner }))),
    /** Extends the lease of a worker on its row, in any state. */
    extendLease: (id: string, claim: number, leaseMs: number): Promise<boolean> =>
      changes(engine, () => claims.hold({ id, claim, owner, lease_ms: leaseMs, now: now() }), {
        payment: id,
      }),
    /** Takes over a payment that is past `claimed`, under a new claim. @returns undefined if a worker still holds it */
    adopt: (id: string, leaseMs: number): Promise<Payment | undefined> => {
      const by = { id, owner, fresh: nextClaim(), lease_ms: leaseMs };
      return taken(() => claims.adopt({ ...by, now: now() }));
    },
  };
}

/** The transitions that decide a payment. */
function outcomesOf(connection: ServerConnection) {
  const { engine, now } = connection;
  const { owner } = engine;
  /**
   * Notifies the other servers, so that those with callers of the payment need not wait for their next poll.
   */
  const decided = async (id: string, change: Promise<number | undefined>): Promise<boolean> => {
    const callers = await change;
    if (callers !== undefined && callers > 1) engine.notifyChange(id);
    return callers !== undefined;
  };
  return {
    /**
     * settling or owed → delivered. Marks the payer as known, unless the payer was already known at the claim. In that case, a refusal that was
     * recorded since the claim stays in force.
     */
    deliver: (id: string, claim: number, how: DeliveryRecord): Promise<boolean> =>
      decided(
        id,
        engine.write(() => deliver({ id, claim, owner }, how, connection), { payment: id }),
      ),
    /** settling → owed: the money moved, but there is no answer yet. */
    owe: (id: string, claim: number, how: SettlementRecord): Promise<boolean> =>
      decided(
        id,
        engine.write(() => owe({ id, claim, owner }, how, connection)),
      ),
    /**
     * settling → released: the money did not move, because the payment was refused before it was signed, or
     * because its failure or absence was proven.
     */
    release: (id: string, claim: number, reason: string): Promise<boolean> =>
      decided(
        id,
        engine.write(() => release({ id, claim, owner, reason, now: now() })),
      ),
  };
}

const claimScope = ({ id, payer }: ClaimRequest): Scope => ({ payment: id, payer });

/** A request without `call` reads other payments with the same identifier, so it can't share a transaction. */
function settleScope(id: string, { answer, call }: SettleRequest): Scope {
  const bytes = answer?.body.byteLength ?? 0;
  return call ? { bytes, payment: id, payer: call.payer } : { bytes };
}

/** Like `owe` and `release`, returns the number of callers; undefined if the claim is not this server's. */
function* deliver(fence: Fence, how: DeliveryRecord, telling: Telling): TransactionBody<number | undefined> {
  const { now } = telling;
  const known = yield* wasSettled(telling, fence.id);
  const { settlement, answerExpiresAt: answer_expires_at } = how;
  const tells = telling.audience.listens && !known;
  const move = moves.deliver({ ...fence, by: proofOf(how), settlement, answer_expires_at, now: now() });
  const [row] = yield* (how.payerKnown && !tells ? finish : execute)(move);
  if (!row) return undefined;
  if (!how.payerKnown) yield* (tells ? execute : finish)(knowPayer({ payer: row.payer, now: now() }));
  if (tells) yield* tellOf(telling, { kind: 'sale.paid', id: fence.id });
  return row.callers;
}

/** For work that follows payment (`upfront`), being owed is normal: `order.opened` is written when it starts, `payment.owed` when it fails. */
function* owe(fence: Fence, how: SettlementRecord, telling: Telling): TransactionBody<number | undefined> {
  const { id } = fence;
  const { settlement } = how;
  const [row] = yield* execute(moves.owe({ ...fence, by: proofOf(how), settlement, now: telling.now() }));
  if (!row) return undefined;
  yield* tellOf(telling, { kind: 'sale.paid', id });
  if (row.flow === 'authorization') yield* tellOf(telling, { kind: 'payment.owed', id });
  return row.callers;
}

function* release(change: Parameters<typeof moves.release>[0]): TransactionBody<number | undefined> {
  const [row] = yield* finish(moves.release(change));
  return row?.callers;
}

/** Resolves to the size of the deleted answer; undefined if the claim is not this server's. */
function* free(fence: Fence, keepRun: boolean): TransactionBody<number | undefined> {
  const freed = yield* execute(claims.free({ ...fence, uncounted: keepRun ? 0 : 1 }));
  return freed.length === 1 ? yield* dropAnswer(fence) : undefined;
}

/** Deletes the row as well. `free` locks it before the answer is deleted. */
function* removeClaim(fence: Fence): TransactionBody<number | undefined> {
  const bytes = yield* free(fence, true);
  if (bytes === undefined) return undefined;
  yield* execute(claims.remove(fence));
  return bytes;
}

function proofOf({ foundOnChain }: SettlementRecord): 'work' | 'chain' {
  return foundOnChain ? 'chain' : 'work';
}
