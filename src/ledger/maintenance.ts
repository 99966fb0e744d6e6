import { dropAnswer } from './answer-store.js';
import type { AnswerStore } from './answer-store.js';
import type { Connection, ServerConnection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as claims from './queries/claims.js';
import { audited, unaudited } from './queries/transitions.js';
import { setMeta } from './queries/meta.js';
import { payerKnown, refusePayer } from './queries/payers.js';
import { sql } from './sql.js';

const SLICE = 100;
/** Maintenance by a server. All functions reject with a LedgerFault if the database fails. */
export type Maintenance = {
  /** Records that a payment of this payer was refused. The payer counts as unknown until the next delivery. */
  readonly recordRefusal: (payer: string) => Promise<void>;
  readonly payerKnown: (payer: string) => Promise<boolean>;
  /**
   * Deletes a slice of the rows that never reached `settling` and whose last claim was before a position of their rail.
   * @returns how many; call again while it is not 0
   */
  readonly deleteExpiredClaims: (claimed: { before: bigint | number }) => Promise<number>;
  /** Deletes a slice of the answers that have expired (by `now`). @returns how many; call again while it is not 0 */
  readonly prune: (now?: number) => Promise<number>;
  /** Settled payments that were not yet found on chain at `finalized`, oldest first, or those `after` one of them. */
  readonly unaudited: (
    limit: number,
    before?: number,
    after?: { settledAt: number; id: string },
  ) => Promise<Payment[]>;
  /**
   * Keeps a delivered answer at least until a time (ms since 1970), unless the store is half full.
   * @returns until when it is kept; undefined if it is not
   */
  readonly keepAnswer: (id: string, until: number) => Promise<number | undefined>;
  /** Records that the settlement was found at `finalized`. */
  readonly audited: (id: string) => Promise<boolean>;
  /** Rejects if the ledger can't be written, or belongs to another receiver. */
  readonly check: () => Promise<void>;
  /** Counts the stored answers again, to include those of other servers. */
  readonly recount: () => Promise<void>;
  /** Bytes of stored answers, as far as this server knows. */
  readonly answerBytes: () => number;
};

export function maintenanceOf(
  { engine, now, receiver }: ServerConnection,
  answers: AnswerStore,
): Maintenance {
  return {
    recordRefusal: async payer => {
      await engine.write(() => execute(refusePayer({ payer, now: now() })));
    },
    payerKnown: async payer => {
      const [row] = await engine.read(() => execute(payerKnown({ payer })));
      return row?.known === 1;
    },
    deleteExpiredClaims: async ({ before }) => {
      const { deleted, bytes } = await engine.write(() => removeDead(Number(before), now));
      answers.grow(-bytes);
      return deleted;
    },
    keepAnswer: (id, until) => answers.keep(id, until),
    prune: moment => answers.prune(moment === undefined ? now : () => sql`cast(${moment} as bigint)`),
    unaudited: async (limit, before, after = { settledAt: 0, id: '' }) => {
      const { settledAt: settled_at, id } = after;
      const query = (): ReturnType<typeof unaudited> =>
        unaudited({
          limit,
          before: before === undefined ? now() : sql`${before}`,
          settled_at,
          id,
          now: now(),
        });
      return (await engine.read(() => execute(query()))).map(paymentOf);
    },
    audited: async id => (await engine.write(() => execute(audited({ id, now: now() })))).length === 1,
    check: async () => {
      await engine.write(() => checked(receiver));
    },
    recount: () => answers.recount(),
    answerBytes: () => answers.bytes,
  };
}

/** A transaction that changes nothing succeeds on a full disk, too. */
function* checked(receiver: ServerConnection['receiver']): TransactionBody<void> {
  yield* receiver.check();
  yield* execute(setMeta({ key: 'note:checked', value: String(Date.now()) }));
}

function* removeDead(
  before: number,
  now: Connection['now'],
): TransactionBody<{ deleted: number; bytes: number }> {
  const rows = yield* execute(claims.dead({ before, now: now(), limit: SLICE }));
  let bytes = 0;
  for (const row of rows) {
    const id = idOf(row.id);
    bytes += yield* dropAnswer({ id });
    yield* execute(claims.remove({ id }));
  }
  return { deleted: rows.length, bytes };
}
