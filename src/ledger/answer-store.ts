import type { StoredAnswer } from './reader.js';
import type { Connection } from './connection.js';
import { execute, finish } from './engine.js';
import type { TransactionBody } from './engine.js';
import { LedgerFault } from './fault.js';
import { idOf } from './ids.js';
import * as queries from './queries/answers.js';
import type { Fence, Id } from './queries/conditions.js';

/** An answer to be stored. Its expiry is set at delivery. */
export type AnswerContent = Omit<StoredAnswer, 'expiresAt'>;

/** Other servers store answers, too, so on PostgreSQL the size is read again after this time. */
const RECOUNT_MS = 10_000;
const SLICE = 100;
/** Once the store is half full, answers are not kept for longer than usual; otherwise a few buyers could fill it and stop all sales. */
const SHARE_OF_KEPT = 2;

/** The stored answers of a ledger, and their total size as far as this server knows. */
export class AnswerStore {
  readonly #connection: Connection;
  readonly #budget: number;
  #bytes = 0;
  #countedAt = 0;

  constructor(connection: Connection, budgetBytes: number) {
    this.#connection = connection;
    this.#budget = budgetBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the budget is used up. No new payment is then claimed. */
  get closed(): boolean {
    return this.#bytes >= this.#budget;
  }

  /** Claims that were accepted before the budget was used up may still store their answers, up to twice the budget. */
  isFull(more: number): boolean {
    return this.#bytes + more > 2 * this.#budget;
  }

  grow(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Reads the size of all stored answers, including those of other servers. */
  async recount(): Promise<void> {
    this.#countedAt = performance.now();
    const [row] = await this.#connection.engine.read(() => execute(queries.answerBytes()));
    this.#bytes = Number(row?.bytes ?? 0);
  }

  async recountWhenStale(): Promise<void> {
    if (!this.#connection.engine.dialect.concurrentWriters) return;
    if (performance.now() - this.#countedAt > RECOUNT_MS) await this.recount();
  }

  async save(fence: Fence, answer: AnswerContent): Promise<boolean> {
    const { engine } = this.#connection;
    const saved = await engine.write(() => this.#save(fence, answer), {
      bytes: answer.body.byteLength,
      payment: fence.id,
    });
    if (saved === 'full') throw fullFault();
    if (saved === false) return false;
    this.#bytes += saved;
    return true;
  }

  /**
   * Keeps a delivered answer at least until `until` (ms since 1970), unless the store is more than half full.
   * @returns its expiry; undefined if it has expired
   */
  async keep(id: string, until: number): Promise<number | undefined> {
    const { engine, now } = this.#connection;
    const kept = this.#bytes * SHARE_OF_KEPT <= this.#budget ? until : 0;
    const [row] = await engine.write(() => execute(queries.keepAnswer({ id, until: kept, now: now() })));
    return row?.answer_expires_at;
  }

  /** Deletes a slice of the expired answers. @returns how many */
  async prune(now: Connection['now']): Promise<number> {
    const { pruned, bytes } = await this.#connection.engine.write(() => prune(now));
    this.#bytes -= bytes;
    return pruned;
  }

  /** @returns the number of bytes by which the store grew; false if the claim is no longer this server's */
  *#save(fence: Fence, answer: AnswerContent): TransactionBody<false | 'full' | number> {
    const [held] = yield* execute(queries.holdForAnswer(fence));
    if (!held) return false;
    const grown = answer.body.byteLength - (held.size ?? 0);
    if (held.state === 'claimed' && this.isFull(grown)) return 'full';
    yield* finish(queries.saveAnswer({ ...answerRow(fence.id, answer), now: this.#connection.now() }));
    return grown;
  }
}

function* prune(now: Connection['now']): TransactionBody<{ pruned: number; bytes: number }> {
  const rows = yield* execute(queries.expired({ now: now(), limit: SLICE }));
  let bytes = 0;
  for (const row of rows) {
    const id = idOf(row.id);
    bytes += yield* dropAnswer({ id });
    yield* execute(queries.forgetAnswer({ id }));
  }
  return { pruned: rows.length, bytes };
}

/** Deletes the answer of a payment. @returns its size */
export function* dropAnswer({ id }: Id): TransactionBody<number> {
  const [dropped] = yield* execute(queries.dropAnswer({ id }));
  return dropped?.size ?? 0;
}

export function answerRow(payment: string, { status, headers, body }: AnswerContent): queries.NewAnswer {
  return { payment, status, headers: JSON.stringify(headers), body, size: body.byteLength };
}

export function fullFault(): LedgerFault {
  return new LedgerFault(
    'full',
    'The answer store is full. Space is freed as answers expire; try again later.',
  );
}
