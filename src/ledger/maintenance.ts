import { dropAnswer } from './answer-store.js';
import type { AnswerStore } from './answer-store.js';
import type { Connection, ServerConnection } from './connection.js';
import { changes, execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as claims from './queries/claims.js';
import { openFates } from './queries/open-fates.js';
import { audited } from './queries/transitions.js';
import { setMeta } from './queries/meta.js';
import { refusePayer } from './queries/payers.js';
import { sql } from './sql.js';

const SLICE = 100;
/** Maintenance by a server. All functions reject with a LedgerFault if the database fails. */
export function maintenanceOf({ engine, now, receiver }: ServerConnection, answers: AnswerStore) {
  return {
    /** Records that a payment by this payer was refused. The payer counts as unknown until the next delivery. */
    recordRefusal: async (payer: string): Promise<void> => {
      await engine.write(() => execute(refusePayer({ payer, now: now() })));
    },
    /**
     * Deletes a slice of the payments that never reached `settling` and were last claimed before the given
     * position of the rail: their transactions can no longer land.
     * @returns how many were deleted; call again until it is 0
     */
    deleteExpiredClaims: async ({ before }: { before: bigint | number }): Promise<number> => {
      const { deleted, bytes } = await engine.write(() => removeDead(Number(before), now));
      answers.grow(-bytes);
      return deleted;
    },
    /**
     * Keeps a delivered answer at least until a time (ms since 1970), unless the store is half full.
     * @returns until when it is kept; undefined if it is not
     */
    keepAnswer: (id: string, until: number): Promise<number | undefined> => answers.keep(id, until),
    /** Deletes a slice of the answers that have expired (by `now`). @returns how many were deleted; call again until it is 0 */
    prune: (moment?: number): Promise<number> =>
      answers.prune(moment === undefined ? now : () => sql`cast(${moment} as bigint)`),
    /**
     * Payments whose outcome is not yet final on chain: those that are `settling` and held by no worker, those that were released, and those that
     * were settled before `settledBefore` but not yet audited. At most `limit` of each kind, ordered by the time at which they were settled or sent
     * for settlement. The list begins after the payment `id` at the time `since`.
     */
    openFates: async (
      { since, id }: { since: number; id: string },
      { settledBefore: settled_before, limit }: { settledBefore: number; limit: number },
    ): Promise<Payment[]> => {
      const query = (): ReturnType<typeof openFates> =>
        openFates({ since, id, settled_before, limit, now: now() });
      return (await engine.read(() => execute(query()))).map(paymentOf);
    },
    /** Records that a payment's outcome is final on chain. `evidence`: the part of its evidence that is kept from now on. */
    audited: (id: string, evidence: string): Promise<boolean> =>
      changes(engine, () => audited({ id, signed_transaction: evidence, now: now() })),
    /** Rejects if the ledger can't be written, or belongs to another receiver. */
    check: (): Promise<void> => engine.write(() => checked(receiver)),
    /** Bytes of stored answers, as far as this server knows. */
    answerBytes: (): number => answers.bytes,
  };
}

/** Writes a row, because a transaction that changes nothing would succeed even on a full disk. */
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
