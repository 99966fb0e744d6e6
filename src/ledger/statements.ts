import { sql, statement } from './kysely.js';
import type { Kysely } from './kysely.js';
import { OWNER_LOCK } from './engine.js';
import type { Dialect } from './engine.js';
import { bookStatements, metaStatements, sumOfAmounts } from './book-statements.js';
import { listStatements } from './list-statements.js';
import { orderStatements } from './order-statements.js';
import type { AnswerRow, PaymentRow, Tables } from './schema.js';
import { sourcesOf } from './states.js';
import type { Ground, State } from './states.js';

/** What every fenced change repeats: the row, and the claim that entitles to change it. */
export type Fence = { id: string; claim: number; owner: string };

type Id = { id: string };

/** A row as a claim makes it, or makes it anew. */
export type Claimed = Omit<
  PaymentRow,
  | 'state'
  | 'asks'
  | 'settlement'
  | 'reason'
  | 'alias_of'
  | 'settling_at'
  | 'settled_at'
  | 'decided_at'
  | 'written_at'
  | 'audited_at'
  | 'answer_expires_at'
>;

/** Of the statements that every paid call runs. */
const ONE_ROW = { single: true };

/** All queries of the ledger. What the program runs is made of them by `make generate`, as generated/ledger.ts. */
export type Statements = ReturnType<typeof compileStatements>;

export function compileStatements(db: Kysely<Tables>, dialect: Dialect) {
  return {
    ...rowStatements(db, dialect),
    ...countingStatements(db, dialect),
    ...claimStatements(db),
    ...moveStatements(db),
    ...endStatements(db),
    ...leaseStatements(db, dialect),
    ...aliasStatements(db, dialect),
    ...answerStatements(db, dialect),
    ...upkeepStatements(db, dialect),
    ...payerStatements(db),
    ...auditStatements(db),
    ...bookStatements(db),
    ...metaStatements(db),
    ...listStatements(db),
    ...orderStatements(db, dialect),
  };
}

function rowStatements(db: Kysely<Tables>, dialect: Dialect) {
  const locking = dialect.concurrentWriters;
  return {
    find: statement(({ id }: Id) => db.selectFrom('payments').selectAll().where('id', '=', id), ONE_ROW),
    findToChange: statement(
      ({ id }: Id) =>
        db
          .selectFrom('payments')
          .selectAll()
          .where('id', '=', id)
          .$if(locking, query => query.forUpdate()),
      ONE_ROW,
    ),
    /** Claims of one payer are counted one after the other. SQLite has one writer anyway. */
    lockPayer: statement(({ payer }: { payer: string }) =>
      db
        .selectNoFrom(sql<number>`1`.as('one'))
        .where(sql<boolean>`pg_advisory_xact_lock(hashtextextended(${payer}, 0)) is not null`),
    ),
  };
}

function countingStatements(db: Kysely<Tables>, dialect: Dialect) {
  return {
    sameIdentifier: statement(
      (p: { payer: string; identifier: string; id: string; now: number }) =>
        db
          .selectFrom('payments')
          .selectAll()
          .where('payer', '=', p.payer)
          .where('identifier', 'is not', null)
          .where('identifier', '=', p.identifier)
          .where('id', '<>', p.id)
          .where('alias_of', 'is', null)
          .where(eb =>
            eb.or([
              eb('state', 'in', ['settling', 'delivered', 'owed', 'refunded']),
              eb.and([eb('state', '=', 'claimed'), eb('lease_until', '>', p.now)]),
            ]),
          )
          .limit(1),
      ONE_ROW,
    ),
    /**
     * All that a claim is judged by, in one look: the payer's unsettled payments and standing, whether this payment was seen before,
     * and the earlier sale of the same call that a new signature redeems.
     */
    claimView: statement(
      (p: { id: string; payer: string; operation: string; request_hash: string; now: number }) =>
        db
          .selectFrom('payments')
          .select(eb => [
            eb.fn.countAll<number>().as('payments'),
            sumOfAmounts.as('amount'),
            eb.selectFrom('payers').select('known').where('payers.payer', '=', p.payer).as('known'),
            db.selectFrom('payments').select('id').where('id', '=', p.id).as('seen'),
            earlierSale(db, dialect, p).clearSelect().select('id').as('earlier'),
          ])
          .where('payer', '=', p.payer)
          .where('written_at', 'is', null)
          .where('state', 'in', ['claimed', 'settling'])
          .where(eb => eb.or([eb('state', '=', 'settling'), eb('lease_until', '>', p.now)])),
      ONE_ROW,
    ),
  };
}

function claimStatements(db: Kysely<Tables>) {
  return {
    insert: statement(
      (p: Claimed) =>
        db
          .insertInto('payments')
          .values(claimed(p))
          .onConflict(conflict => conflict.doNothing())
          .returning('id'),
      ONE_ROW,
    ),
    /** A claim whose lease has ended is taken over whole: nothing of it was ever paid. */
    retake: statement((p: Claimed) =>
      db
        .updateTable('payments')
        .set({
          operation: p.operation,
          request_hash: p.request_hash,
          request: p.request,
          x402_version: p.x402_version,
          signed_transaction: p.signed_transaction,
          identifier: p.identifier,
          flow: p.flow,
          claim: p.claim,
          owner: p.owner,
          lease_until: p.lease_until,
          caller_until: p.caller_until,
          runs: p.runs,
          claim_height: p.claim_height,
        })
        .where('id', '=', p.id)
        .where('state', '=', 'claimed')
        .returning('id'),
    ),
  };
}

/** Names the columns that a claim fills, since the placeholders of a statement can't be enumerated. All others begin as null. */
function claimed(p: Claimed) {
  return {
    id: p.id,
    operation: p.operation,
    request_hash: p.request_hash,
    request: p.request,
    payer: p.payer,
    amount: p.amount,
    network: p.network,
    x402_version: p.x402_version,
    signed_transaction: p.signed_transaction,
    identifier: p.identifier,
    flow: p.flow,
    state: sql.lit('claimed' as const),
    claim: p.claim,
    owner: p.owner,
    lease_until: p.lease_until,
    caller_until: p.caller_until,
    runs: p.runs,
    asks: sql.lit(0),
    claim_slot: p.claim_slot,
    claim_height: p.claim_height,
    created_at: p.created_at,
  };
}

/** The table of legal moves decides which states a move starts from. */
function moveTo(db: Kysely<Tables>, to: State, ground: Ground) {
  return db.updateTable('payments').set({ state: to }).where('state', 'in', sourcesOf(to, ground));
}

function owe(db: Kysely<Tables>, ground: Ground) {
  return statement((p: Fence & { settlement: string; now: number }) =>
    moveTo(db, 'owed', ground)
      .set({
        settlement: p.settlement,
        settled_at: p.now,
        decided_at: null,
        reason: null,
        // A released payment's answer had expired; the one that is made now must not.
        answer_expires_at: null,
      })
      .where('id', '=', p.id)
      .where('claim', '=', p.claim)
      .where('owner', '=', p.owner)
      .returning('id'),
  );
}

function moveStatements(db: Kysely<Tables>) {
  type Settled = Fence & { settlement: string; now: number; answer_expires_at: number };
  const deliver = (ground: Ground) =>
    statement(
      (p: Settled) =>
        moveTo(db, 'delivered', ground)
          .set({
            settlement: p.settlement,
            settled_at: eb => eb.fn.coalesce('settled_at', eb.val(p.now)),
            decided_at: p.now,
            answer_expires_at: p.answer_expires_at,
          })
          .where('id', '=', p.id)
          .where('claim', '=', p.claim)
          .where('owner', '=', p.owner)
          .returning('payer'),
      ONE_ROW,
    );
  return {
    settle: statement(
      (p: Fence & { settlement: string | null; signed_transaction: string | null; now: number }) =>
        moveTo(db, 'settling', 'work')
          .set({
            asks: sql<number>`asks + 1`,
            settling_at: p.now,
            settlement: p.settlement,
            signed_transaction: eb => eb.fn.coalesce(eb.val(p.signed_transaction), 'signed_transaction'),
          })
          .where('id', '=', p.id)
          .where('claim', '=', p.claim)
          .where('owner', '=', p.owner)
          .where('alias_of', 'is', null)
          // Since it ended, the caller may have bought the same anew: what is only claimed can't be attached to.
          .where('lease_until', '>', p.now)
          .returning(eb =>
            eb.selectFrom('answers').select('size').where('payment', '=', p.id).as('answered'),
          ),
      ONE_ROW,
    ),
    askAgain: statement((p: Fence) =>
      db
        .updateTable('payments')
        .set({ asks: sql<number>`asks + 1` })
        .where('state', '=', 'settling')
        .where('id', '=', p.id)
        .where('claim', '=', p.claim)
        .where('owner', '=', p.owner)
        .returning('id'),
    ),
    deliverByWork: deliver('work'),
    deliverByChain: deliver('chain'),
    oweByWork: owe(db, 'work'),
    oweByChain: owe(db, 'chain'),
  };
}

function endStatements(db: Kysely<Tables>) {
  return {
    release: statement((p: Fence & { reason: string; now: number }) =>
      moveTo(db, 'released', 'work')
        .set({
          reason: p.reason,
          decided_at: p.now,
          lease_until: 0,
          caller_until: 0,
          answer_expires_at: p.now,
        })
        .where('id', '=', p.id)
        .where('claim', '=', p.claim)
        .where('owner', '=', p.owner)
        .returning('id'),
    ),
    /** The claim number grows, so that a worker of this order moves nothing any more. */
    refund: statement((p: Id & { reason: string; now: number }) =>
      moveTo(db, 'refunded', 'operator')
        .set({
          reason: p.reason,
          decided_at: p.now,
          lease_until: 0,
          caller_until: 0,
          answer_expires_at: p.now,
          claim: sql<number>`claim + 1`,
        })
        .where('id', '=', p.id)
        .returning('id'),
    ),
  };
}

/**
 * True when the server that owns the row is gone. A server on PostgreSQL holds this lock as long as it is connected; on SQLite
 * former owners end with the next opening.
 */
function ownerGone(dialect: Dialect) {
  return dialect.concurrentWriters
    ? sql<boolean>`pg_try_advisory_xact_lock_shared(${sql.lit(OWNER_LOCK)}, hashtext(owner))`
    : sql<boolean>`1 = 0`;
}

function leaseStatements(db: Kysely<Tables>, dialect: Dialect) {
  return {
    lease: statement((p: Fence & { lease_until: number }) =>
      db
        .updateTable('payments')
        .set({ lease_until: p.lease_until, caller_until: p.lease_until })
        .where('id', '=', p.id)
        .where('claim', '=', p.claim)
        .where('owner', '=', p.owner)
        .where('alias_of', 'is', null)
        .returning('id'),
    ),
    /** The lease of a worker, who is no caller. */
    hold: statement((p: Fence & { lease_until: number }) =>
      db
        .updateTable('payments')
        .set({ lease_until: p.lease_until })
        .where('id', '=', p.id)
        .where('claim', '=', p.claim)
        .where('owner', '=', p.owner)
        .where('alias_of', 'is', null)
        .returning('id'),
    ),
    /** Ends a claim; `runs` is the number of runs that still count. */
    endClaim: statement((p: Fence & { runs: number }) =>
      db
        .updateTable('payments')
        .set({ lease_until: 0, caller_until: 0, runs: p.runs, claim: sql<number>`claim + 1` })
        .where('state', '=', 'claimed')
        .where('id', '=', p.id)
        .where('claim', '=', p.claim)
        .where('owner', '=', p.owner)
        .returning('id'),
    ),
    /** The caller stays as gone, or as present, as it was, unless the server is gone that it waited at. */
    adopt: statement((p: Fence & { lease_until: number }) =>
      db
        .updateTable('payments')
        .set({
          claim: p.claim,
          owner: p.owner,
          lease_until: p.lease_until,
          caller_until: eb => eb.case().when(ownerGone(dialect)).then(0).else(eb.ref('caller_until')).end(),
        })
        .where('id', '=', p.id)
        .where('state', '<>', 'claimed')
        .returning('id'),
    ),
  };
}

/** Payments a newly signed one may attach to: paid or possibly paid, not written out, and nobody waits for the answer. */
function redeemable(db: Kysely<Tables>, dialect: Dialect, now: number) {
  return db
    .selectFrom('payments')
    .selectAll()
    .where('written_at', 'is', null)
    .where('state', 'in', ['settling', 'owed', 'delivered'])
    .where('identifier', 'is', null)
    .where(eb => eb.or([eb('caller_until', '<=', now), ownerGone(dialect)]))
    .where(eb => eb.or([eb('state', '<>', 'delivered'), eb('answer_expires_at', '>', now)]));
}

/** What a newly signed payment for the same call redeems. */
function earlierSale(
  db: Kysely<Tables>,
  dialect: Dialect,
  p: { payer: string; operation: string; request_hash: string; now: number },
) {
  return redeemable(db, dialect, p.now)
    .where('payer', '=', p.payer)
    .where('request_hash', '=', p.request_hash)
    .where('operation', '=', p.operation)
    .orderBy('created_at')
    .limit(1);
}

function aliasStatements(db: Kysely<Tables>, dialect: Dialect) {
  return {
    attach: statement((p: Fence & { alias_of: string }) =>
      db
        .updateTable('payments')
        .set({ alias_of: p.alias_of, lease_until: 0, caller_until: 0 })
        .where('state', '=', 'claimed')
        .where('id', '=', p.id)
        .where('claim', '=', p.claim)
        .where('owner', '=', p.owner)
        .returning('id'),
    ),
    attachable: statement(
      (p: { payer: string; operation: string; request_hash: string; now: number }) =>
        earlierSale(db, dialect, p),
      ONE_ROW,
    ),
    findToAttach: statement(
      (p: Id & { now: number }) =>
        redeemable(db, dialect, p.now)
          .where('id', '=', p.id)
          .$if(dialect.concurrentWriters, query => query.forUpdate()),
      ONE_ROW,
    ),
    written: statement(
      (p: Id & { now: number }) =>
        db
          .updateTable('payments')
          .set({ written_at: p.now, lease_until: 0, caller_until: 0 })
          .where('id', '=', p.id)
          .where('state', '=', 'delivered')
          .where('written_at', 'is', null)
          .returning('id'),
      ONE_ROW,
    ),
    callerGone: statement(({ id }: Id) =>
      db
        .updateTable('payments')
        .set({ caller_until: 0 })
        .where('id', '=', id)
        .where('caller_until', '>', 0)
        .where('alias_of', 'is', null)
        .returning('id'),
    ),
    /** Only the one server of a SQLite file may do this: it knows that all former owners are gone. */
    endLeases: statement((_: object) =>
      db
        .updateTable('payments')
        .set({ lease_until: 0, caller_until: 0 })
        .where('written_at', 'is', null)
        .where(eb => eb.or([eb('lease_until', '>', 0), eb('caller_until', '>', 0)])),
    ),
  };
}

function answerStatements(db: Kysely<Tables>, dialect: Dialect) {
  return {
    /** The claim, held until the commit, so that nobody takes it over while its answer is written. */
    holdForAnswer: statement(
      (p: Fence) =>
        db
          .selectFrom('payments')
          .leftJoin('answers', 'answers.payment', 'payments.id')
          .select(['payments.state', 'answers.size'])
          .where('payments.id', '=', p.id)
          .where('claim', '=', p.claim)
          .where('owner', '=', p.owner)
          .where('state', 'in', ['claimed', 'settling', 'released', 'owed'])
          .$if(dialect.concurrentWriters, query => query.forUpdate('payments')),
      ONE_ROW,
    ),
    saveAnswer: statement((p: AnswerRow) =>
      db
        .insertInto('answers')
        .values({
          payment: p.payment,
          status: p.status,
          headers: p.headers,
          size: p.size,
          saved_at: p.saved_at,
          body: p.body,
        })
        .onConflict(conflict =>
          conflict.column('payment').doUpdateSet(eb => ({
            status: eb.ref('excluded.status'),
            headers: eb.ref('excluded.headers'),
            size: eb.ref('excluded.size'),
            saved_at: eb.ref('excluded.saved_at'),
            body: eb.ref('excluded.body'),
          })),
        ),
    ),
    answer: statement(
      ({ id }: Id) =>
        db
          .selectFrom('answers')
          .innerJoin('payments', 'payments.id', 'answers.payment')
          .select(['status', 'headers', 'body', 'answer_expires_at'])
          .where('answers.payment', '=', id),
      ONE_ROW,
    ),
    dropAnswer: statement(({ id }: Id) =>
      db.deleteFrom('answers').where('payment', '=', id).returning('size'),
    ),
    answerBytes: statement((_: object) =>
      db.selectFrom('answers').select(sql<string>`cast(coalesce(sum(size), 0) as text)`.as('bytes')),
    ),
  };
}

function upkeepStatements(db: Kysely<Tables>, dialect: Dialect) {
  return {
    /**
     * Claims that can't be settled any more. An alias stays as long as what it stands for can still be answered.
     */
    dead: statement((p: { height: number; now: number; limit: number }) =>
      db
        .selectFrom('payments as p')
        .select('p.id')
        .where('p.state', '=', 'claimed')
        .where('p.decided_at', 'is', null)
        .where('p.lease_until', '<=', p.now)
        .where('p.claim_height', '<', p.height)
        .where(eb =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('payments as target')
                .select('target.id')
                .whereRef('target.id', '=', 'p.alias_of')
                .where(target =>
                  target.or([
                    target('target.state', 'in', ['settling', 'owed']),
                    target('target.answer_expires_at', 'is not', null),
                  ]),
                ),
            ),
          ),
        )
        .limit(p.limit)
        .$if(dialect.concurrentWriters, query => query.forUpdate('p').skipLocked()),
    ),
    remove: statement(({ id }: Id) =>
      db.deleteFrom('payments').where('id', '=', id).where('state', '=', 'claimed').returning('id'),
    ),
    expired: statement((p: { now: number; limit: number }) =>
      db
        .selectFrom('payments')
        .select('id')
        .where('answer_expires_at', 'is not', null)
        .where('answer_expires_at', '<=', p.now)
        .limit(p.limit)
        .$if(dialect.concurrentWriters, query => query.forUpdate().skipLocked()),
    ),
    forgetAnswer: statement(({ id }: Id) =>
      db.updateTable('payments').set({ answer_expires_at: null }).where('id', '=', id),
    ),
  };
}

function payerStatements(db: Kysely<Tables>) {
  return {
    knowPayer: statement((p: { payer: string; now: number }) =>
      db
        .insertInto('payers')
        .values({ payer: p.payer, known: 1, delivered_at: p.now, refused_at: null })
        .onConflict(conflict =>
          conflict
            .column('payer')
            .doUpdateSet(eb => ({ known: 1, delivered_at: eb.ref('excluded.delivered_at') }))
            .where('payers.known', '=', 0),
        ),
    ),
    refusePayer: statement((p: { payer: string; now: number }) =>
      db.updateTable('payers').set({ known: 0, refused_at: p.now }).where('payer', '=', p.payer),
    ),
    payerKnown: statement((p: { payer: string }) =>
      db.selectFrom('payers').select('known').where('payer', '=', p.payer),
    ),
  };
}

function auditStatements(db: Kysely<Tables>) {
  return {
    audited: statement((p: Id & { now: number }) =>
      db.updateTable('payments').set({ audited_at: p.now }).where('id', '=', p.id).returning('id'),
    ),
    unaudited: statement((p: { limit: number; before: number; settled_at: number; id: string }) =>
      db
        .selectFrom('payments')
        .selectAll()
        .where('settled_at', 'is not', null)
        .where('audited_at', 'is', null)
        .where('settled_at', '<=', p.before)
        .where('settled_at', '>=', p.settled_at)
        .where(eb => eb.or([eb('settled_at', '>', p.settled_at), eb('id', '>', p.id)]))
        .orderBy('settled_at')
        .orderBy('id')
        .limit(p.limit),
    ),
  };
}
