import { archiveOf, booksOf } from './books.js';
import type { Archive, Books, Connection, Refund, StoredAnswer } from './books.js';
import { checkClaim, claimPayment, MAX_ALIASES } from './claim.js';
import type { Claim, Claimed, ClaimRequest, Limit } from './claim.js';
import { ask } from './engine.js';
import { engineOf, opening } from './connect.js';
import type { Operation, Query } from './engine.js';
import { LedgerFault } from './fault.js';
import { feePayersOf } from './fee-payers.js';
import type { FeePayers, OfferedFeePayer } from './fee-payers.js';
import { checkReadable, migrate } from './migrate.js';
import { ordersOf } from './orders.js';
import type { Order, Orders, Reply } from './orders.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as aliases from './queries/aliases.js';
import * as answers from './queries/answers.js';
import * as claims from './queries/claims.js';
import type { Fence } from './queries/conditions.js';
import { ownMeta } from './queries/meta.js';
import * as moves from './queries/moves.js';
import * as payers from './queries/payers.js';
import type { AnswerRow } from './schema.js';

export type {
  Archive,
  Books,
  Claim,
  Claimed,
  ClaimRequest,
  Limit,
  OfferedFeePayer,
  Order,
  Payment,
  Refund,
  Reply,
  StoredAnswer,
};

const DEFAULT_ANSWER_BUDGET = 256 * 1024 * 1024;
const SLICE = 100;
/** Blocks after which a payment signed before the claim can't land any more, with room to spare. */
const DEAD_AFTER_BLOCKS = 300;
/** How long another server's answers may go uncounted. */
const RECOUNT_MS = 10_000;

export type LedgerOptions = {
  /** `file:/path/ledger.db` or `postgres://…` */
  url: string;
  payTo: string;
  network: string;
  now?: () => number;
  /** Bytes of stored answers beyond which nothing new is claimed. Default 256 MB. */
  answerBudgetBytes?: number;
};

/** An answer as it is given to the ledger; when it expires is decided at its delivery. */
type Kept = Omit<StoredAnswer, 'expiresAt'>;

/** What makes two payments without identifier payments for the same call. `requestHash`: hex sha256 of operation and body. */
export type Call = { payer: string; operation: string; requestHash: string };

/**
 * What goes with a payment that is about to be settled. `call` is looked for among earlier sales, and `wanted` is asked, at the last
 * moment before it is written and while nobody else can claim a payment of this payer: whoever hung up until then may have bought the
 * same anew, and could not attach to what was only claimed.
 */
export type Sent = {
  answer?: Kept;
  settlement?: string;
  transaction?: string;
  call?: Call;
  wanted?: () => boolean;
};

/** How a payment came to be settled. */
export type Settlement = {
  /** Signature of the transaction that moved the money. */
  settlement: string;
  /** The transfer was found on chain; only this proof may revive a released payment. */
  foundOnChain?: boolean;
};

/** `payerKnown`: the claim found the payer known, so there is nothing to note about it. */
export type Delivery = Settlement & { answerExpiresAt: number; payerKnown?: boolean };

/**
 * Opens the ledger of one receiver for a server. On SQLite it must be the only server; claims of former owners are free
 * at once.
 * @throws LedgerFault `open` when the ledger is locked, somebody else's, retired, newer than this program or unreachable
 */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const engine = await engineOf(options.url, 'server');
  const now = options.now ?? Date.now;
  try {
    await opening(engine.write(() => migrate(engine.dialect, options)));
    if (!engine.dialect.concurrentWriters) await opening(engine.write(() => ask(claims.endLeases())));
    const connection = { engine, now };
    const store = new Store(connection, options.answerBudgetBytes ?? DEFAULT_ANSWER_BUDGET);
    const ledger = Object.assign(store, booksOf(connection), ordersOf(connection), feePayersOf(connection));
    await opening(ledger.recount());
    return ledger;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/**
 * Opens a ledger beside a running server, to read it and to record refunds.
 * @throws LedgerFault `open`
 */
export async function openBooks(options: { url: string; now?: () => number }): Promise<Books & Archive> {
  const engine = await engineOf(options.url, 'beside');
  try {
    await opening(engine.read(() => checkReadable()));
    const connection: Connection = { engine, now: options.now ?? Date.now };
    return { ...booksOf(connection), ...archiveOf(connection) };
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** An open ledger; see `Store`, `Books` and `Orders`. */
export type Ledger = Books & Orders & FeePayers & { [Name in keyof Store]: Store[Name] };

/**
 * The payments of one receiver. A claim is a number that grows with every claim of a row; every move and every answer
 * repeats it, so a server that slept through its lease changes nothing: its calls resolve to false. All methods reject
 * with a LedgerFault when the database fails.
 */
class Store {
  /** Who claims through this object; new with every opening. */
  readonly owner: string;
  readonly #engine: Connection['engine'];
  readonly #now: Connection['now'];
  readonly #budget: number;
  #answerBytes = 0;
  #countedAt = 0;
  #claims = 0;

  constructor(connection: Connection, answerBudgetBytes: number) {
    this.#engine = connection.engine;
    this.owner = connection.engine.owner;
    this.#now = connection.now;
    this.#budget = answerBudgetBytes;
  }

  /** Reserves a payment before any work. A conflict is a result, never an error. */
  async claim(request: ClaimRequest): Promise<Claimed> {
    checkClaim(request);
    if (this.#engine.dialect.concurrentWriters && this.#now() - this.#countedAt > RECOUNT_MS)
      await this.recount();
    const fresh = (this.#claims += 1);
    return this.#engine.write(() =>
      claimPayment(request, {
        dialect: this.#engine.dialect,
        owner: this.owner,
        now: this.#now(),
        fresh,
        answersFull: this.#answerBytes >= this.#budget,
      }),
    );
  }

  /**
   * Keeps an answer, replacing an earlier one. It does not expire before its payment is delivered.
   * @returns false when the claim is no longer ours
   * @throws LedgerFault `full` when nothing was paid yet and the store exceeds twice its budget
   */
  async saveAnswer(id: string, claim: number, answer: Kept): Promise<boolean> {
    const size = answer.body.byteLength;
    const saved = await this.#engine.write(() => this.#saveAnswer(id, claim, answer), size);
    if (saved === false) return false;
    if (saved === 'full') throw fullFault();
    this.#answerBytes += saved;
    return true;
  }

  /**
   * claimed → settling, before a facilitator is asked and before the lease has ended. Never undone by time, only by proof.
   * @param sent the answer that is being paid, kept as `saveAnswer` keeps it; the signature, and the completed transaction in base64,
   *   where they are known before it is sent
   * @returns false when the claim is no longer ours, or its caller is gone; the earlier sale of the same call that this payment is to
   *   redeem instead (see `Claim`)
   * @throws LedgerFault `full` as `saveAnswer`; nothing has changed then
   */
  async settling(id: string, claim: number, sent: Sent = {}): Promise<boolean | { earlier: Payment }> {
    const size = sent.answer?.body.byteLength ?? 0;
    const moved = await this.#engine.write(() => this.#settling(id, claim, sent), size);
    if (moved === 'full') throw fullFault();
    if (typeof moved !== 'number') return moved;
    this.#answerBytes += moved;
    return true;
  }

  /** Counts another ask of a payment that is settling. */
  async askAgain(id: string, claim: number): Promise<boolean> {
    return this.#one(() => moves.askAgain(this.#fence(id, claim)));
  }

  /** settling or owed → delivered. The payer is known from now on, unless the claim found it known: then a refusal since stands. */
  async deliver(id: string, claim: number, how: Delivery): Promise<boolean> {
    return this.#engine.write(() => this.#deliver(id, claim, how));
  }

  /** settling → owed: the money moved and the answer is still to be made. */
  async owe(id: string, claim: number, how: Settlement): Promise<boolean> {
    const { settlement } = how;
    return this.#one(() =>
      moves.owe({ ...this.#fence(id, claim), by: proofOf(how), settlement, now: this.#now() }),
    );
  }

  /** settling → released: the money did not move (a refusal that precedes signing, failure or absence proven). */
  async release(id: string, claim: number, reason: string): Promise<boolean> {
    return this.#one(() => moves.release({ ...this.#fence(id, claim), reason, now: this.#now() }));
  }

  /**
   * Ends a claim that was not settled. With `keepRun` the run counts against the payment's runs; without, it never
   * happened (the row is deleted unless earlier runs count).
   */
  async free(id: string, claim: number, { keepRun }: { keepRun: boolean }): Promise<boolean> {
    const { freed, bytes } = await this.#engine.write(() => this.#free(id, claim, keepRun));
    this.#answerBytes -= bytes;
    return freed;
  }

  /** Extends the lease on a row of ours, in any state, for as long as its caller waits. */
  async renew(id: string, claim: number, leaseMs: number): Promise<boolean> {
    const lease_until = this.#now() + leaseMs;
    return this.#one(() => claims.lease({ ...this.#fence(id, claim), lease_until }));
  }

  /** Extends the lease of a worker on an adopted row; that no caller waits stays as it is. */
  async hold(id: string, claim: number, leaseMs: number): Promise<boolean> {
    const lease_until = this.#now() + leaseMs;
    return this.#one(() => claims.hold({ ...this.#fence(id, claim), lease_until }));
  }

  /** Ends our lease on a row beyond `claimed`: its caller is gone or was told to come back. */
  async leave(id: string, claim: number): Promise<boolean> {
    return this.#engine.write(() => this.#leave(id, claim));
  }

  /**
   * Its caller is gone or was told to come back, so a newly signed payment for the same call may attach to it from now on.
   * Whoever works on it keeps the lease. @returns false if that was known before
   */
  async callerGone(id: string): Promise<boolean> {
    return this.#one(() => aliases.callerGone({ id }));
  }

  /**
   * Takes over a row beyond `claimed` that nobody holds, under a new claim number.
   * @returns the payment as it is now, or undefined when somebody holds it
   */
  async adopt(id: string, leaseMs: number): Promise<Payment | undefined> {
    const fresh = (this.#claims += 1);
    return this.#engine.write(() => this.#adopt(id, leaseMs, fresh));
  }

  /**
   * Makes a claim of ours the alias of `target`, never to be settled.
   * @returns false when the claim is not ours any more or `target` can't be redeemed this way (any more)
   */
  async attach(id: string, claim: number, target: string): Promise<boolean> {
    return this.#engine.write(() => this.#attach(id, claim, target));
  }

  /** The answer of a delivered payment was written out with the socket intact. @returns false if it was before */
  async written(id: string): Promise<boolean> {
    return this.#one(() => aliases.written({ id, now: this.#now() }));
  }

  /** A payment of this payer was refused: the payer is unknown until the next delivery. */
  async refused(payer: string): Promise<void> {
    await this.#engine.write(() => ask(payers.refusePayer({ payer, now: this.#now() })));
  }

  async payerKnown(payer: string): Promise<boolean> {
    const [row] = await this.#engine.read(() => ask(payers.payerKnown({ payer })));
    return row?.known === 1;
  }

  /**
   * Deletes a slice of the rows that never reached `settling` and whose blockhash is dead at this finalized height.
   * @returns how many; call again while it is not 0
   */
  async dead({ height }: { height: bigint | number }): Promise<number> {
    const { deleted, bytes } = await this.#engine.write(() => this.#dead(Number(height) - DEAD_AFTER_BLOCKS));
    this.#answerBytes -= bytes;
    return deleted;
  }

  /** Deletes a slice of the expired answers. @returns how many; call again while it is not 0 */
  async prune(now: number = this.#now()): Promise<number> {
    const { pruned, bytes } = await this.#engine.write(() => this.#prune(now));
    this.#answerBytes -= bytes;
    return pruned;
  }

  /** Settled payments that were not yet looked up on chain at `finalized`, the oldest first, or those `after` one of them. */
  async unaudited(
    limit: number,
    before: number = this.#now(),
    after: { settledAt: number; id: string } = { settledAt: 0, id: '' },
  ): Promise<Payment[]> {
    const { settledAt: settled_at, id } = after;
    const rows = await this.#engine.read(() => ask(moves.unaudited({ limit, before, settled_at, id })));
    return rows.map(paymentOf);
  }

  /** The settlement was seen at `finalized`. */
  async audited(id: string): Promise<boolean> {
    return this.#one(() => moves.audited({ id, now: this.#now() }));
  }

  /** Rejects when nothing can be written. */
  async check(): Promise<void> {
    await this.#engine.write(() => ask(ownMeta()));
  }

  /** Bytes of stored answers, as far as this server knows. */
  get answerBytes(): number {
    return this.#answerBytes;
  }

  /** Counts the stored answers anew; several servers on one database need it now and then. */
  async recount(): Promise<void> {
    this.#countedAt = this.#now();
    const [row] = await this.#engine.read(() => ask(answers.answerBytes()));
    this.#answerBytes = Number(row?.bytes ?? 0);
  }

  #fence(id: string, claim: number): Fence {
    return { id, claim, owner: this.owner };
  }

  async #one(query: () => Query): Promise<boolean> {
    return (await this.#engine.write(() => ask(query()))).length === 1;
  }

  /** Resolves to the bytes by which the store of answers grew. */
  *#saveAnswer(id: string, claim: number, answer: Kept): Operation<false | 'full' | number> {
    const [held] = yield* ask(answers.holdForAnswer(this.#fence(id, claim)));
    if (!held) return false;
    const grown = answer.body.byteLength - (held.size ?? 0);
    if (held.state === 'claimed' && this.#isFull(grown)) return 'full';
    yield* ask(answers.saveAnswer(answerRow(id, answer, this.#now())));
    return grown;
  }

  *#settling(
    id: string,
    claim: number,
    { answer, wanted, call, ...sent }: Sent,
  ): Operation<false | 'full' | number | { earlier: Payment }> {
    const now = this.#now();
    const earlier = call && (yield* this.#earlierSale(call, now));
    if (wanted?.() === false) return false;
    if (earlier) return { earlier };
    const fence = this.#fence(id, claim);
    if (answer && this.#isFull(answer.body.byteLength)) {
      const [held] = yield* ask(answers.holdForAnswer(fence));
      if (held && this.#isFull(answer.body.byteLength - (held.size ?? 0))) return 'full';
    }
    const [row] = yield* ask(
      moves.settle({
        ...fence,
        settlement: sent.settlement ?? null,
        signed_transaction: sent.transaction ?? null,
        now,
      }),
    );
    if (!row) return false;
    if (!answer) return 0;
    yield* ask(answers.saveAnswer(answerRow(id, answer, now)));
    return answer.body.byteLength - (row.answered ?? 0);
  }

  *#earlierSale({ payer, operation, requestHash }: Call, now: number): Operation<Payment | undefined> {
    if (this.#engine.dialect.concurrentWriters) yield* ask(claims.lockPayer({ payer }));
    const [row] = yield* ask(aliases.attachable({ payer, operation, request_hash: requestHash, now }));
    return row && paymentOf(row);
  }

  /** The claim checked the budget; what was claimed since may overshoot it, but not without end. */
  #isFull(more: number): boolean {
    return this.#answerBytes + more > 2 * this.#budget;
  }

  *#deliver(id: string, claim: number, how: Delivery): Operation<boolean> {
    const now = this.#now();
    const { settlement, answerExpiresAt: answer_expires_at } = how;
    const move = { ...this.#fence(id, claim), by: proofOf(how), settlement, now, answer_expires_at };
    const [row] = yield* ask(moves.deliver(move));
    if (!row) return false;
    if (!how.payerKnown) yield* ask(payers.knowPayer({ payer: row.payer, now }));
    return true;
  }

  *#free(id: string, claim: number, keepRun: boolean): Operation<{ freed: boolean; bytes: number }> {
    const [row] = yield* ask(claims.findToChange({ id }));
    const ours = row?.claim === claim && row.owner === this.owner && row.state === 'claimed' && !row.alias_of;
    if (!ours) return { freed: false, bytes: 0 };
    const runs = keepRun ? row.runs : row.runs - 1;
    const dropped = yield* ask(answers.dropAnswer({ id }));
    yield* ask(runs > 0 ? claims.endClaim({ ...this.#fence(id, claim), runs }) : claims.remove({ id }));
    return { freed: true, bytes: sizeOf(dropped) };
  }

  *#leave(id: string, claim: number): Operation<boolean> {
    const [row] = yield* ask(claims.findToChange({ id }));
    if (!row || row.state === 'claimed') return false;
    return (yield* ask(claims.lease({ ...this.#fence(id, claim), lease_until: 0 }))).length === 1;
  }

  *#adopt(id: string, leaseMs: number, fresh: number): Operation<Payment | undefined> {
    const [row] = yield* ask(claims.findToChange({ id }));
    const now = this.#now();
    if (!row || row.state === 'claimed' || row.lease_until > now) return undefined;
    const claim = Math.max(row.claim + 1, fresh);
    const lease_until = now + leaseMs;
    yield* ask(claims.adopt({ ...this.#fence(id, claim), lease_until }));
    return paymentOf({ ...row, claim, owner: this.owner, lease_until });
  }

  *#attach(id: string, claim: number, target: string): Operation<boolean> {
    const [original] = yield* ask(aliases.findToAttach({ id: target, now: this.#now() }));
    const [row] = yield* ask(claims.findToChange({ id }));
    if (!original || !row || !sameCall(original, row)) return false;
    const [count] = yield* ask(aliases.countAliases({ id: target }));
    if (count && count.aliases >= MAX_ALIASES) return false;
    return (yield* ask(aliases.attach({ ...this.#fence(id, claim), alias_of: target }))).length === 1;
  }

  *#dead(height: number): Operation<{ deleted: number; bytes: number }> {
    const rows = yield* ask(claims.dead({ height, now: this.#now(), limit: SLICE }));
    let bytes = 0;
    for (const { id } of rows) {
      bytes += sizeOf(yield* ask(answers.dropAnswer({ id })));
      yield* ask(claims.remove({ id }));
    }
    return { deleted: rows.length, bytes };
  }

  *#prune(now: number): Operation<{ pruned: number; bytes: number }> {
    const rows = yield* ask(answers.expired({ now, limit: SLICE }));
    let bytes = 0;
    for (const { id } of rows) {
      bytes += sizeOf(yield* ask(answers.dropAnswer({ id })));
      yield* ask(answers.forgetAnswer({ id }));
    }
    return { pruned: rows.length, bytes };
  }
}

function proofOf({ foundOnChain }: Settlement): 'work' | 'chain' {
  return foundOnChain ? 'chain' : 'work';
}

function fullFault(): LedgerFault {
  return new LedgerFault(
    'full',
    'The store of answers is full. It empties as answers expire; try again later.',
  );
}

function answerRow(payment: string, { status, headers, body }: Kept, saved_at: number): AnswerRow {
  return { payment, status, headers: JSON.stringify(headers), body, size: body.byteLength, saved_at };
}

type Row = { payer: string; operation: string; request_hash: string; identifier: string | null };

/** A payment with an identifier is always a sale of its own. */
function sameCall(one: Row, other: Row): boolean {
  return (
    one.payer === other.payer &&
    one.operation === other.operation &&
    one.request_hash === other.request_hash &&
    one.identifier === null &&
    other.identifier === null
  );
}

function sizeOf(dropped: readonly { size: number }[]): number {
  return dropped.reduce((sum, { size }) => sum + size, 0);
}
