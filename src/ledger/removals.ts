import { dropAnswer } from './queries/answers.js';
import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { removeStoredTexts } from './operation-store.js';
import { tellOf } from './outbox.js';
import { findToChange } from './queries/claims.js';
import { findOrderToChange, rejectOrder, removeOrderRequest } from './queries/orders.js';
import { fenceOff } from './queries/repayments.js';
import { removeRequest } from './queries/transitions.js';

const MAX_REASON_CHARACTERS = 500;

/** `open`: it is being worked on or settled, or owed and not rejected: its buyer would lose what it paid for. */
export type Removal = 'removed' | 'open' | 'unknown';

/** Contents that the operator does not keep. What was paid, by whom, and what went back stays. All functions reject with a LedgerFault. */
export function removalsOf(connection: Connection) {
  const { engine } = connection;
  return {
    /** Removes what was asked and what was answered. */
    removeContents: (id: string): Promise<Removal> => engine.write(() => remove(connection, id)),
    /**
     * Ends the work on an owed order for good, and removes what was asked. It stays owed, to be refunded.
     * @returns false if it is no order that is owed
     */
    rejectOrder: (id: string, reason: string): Promise<boolean> =>
      engine.write(() => reject(connection, id, reason.slice(0, MAX_REASON_CHARACTERS))),
  };
}

function* remove({ engine, now }: Connection, id: string): TransactionBody<Removal> {
  const [row] = yield* execute(findToChange({ id }));
  if (!row) return 'unknown';
  const [order] = yield* execute(findOrderToChange({ payment: id }));
  // A released payment that is not audited yet may be found on chain, and be owed then.
  const isOver =
    row.state === 'delivered' ||
    row.state === 'refunded' ||
    (row.state === 'released' && row.audited_at !== null);
  const isRejected = row.state === 'owed' && order?.request === '';
  if (!isOver && !isRejected) return 'open';
  yield* forget({ engine, now }, id);
  return 'removed';
}

function* reject(connection: Connection, id: string, reason: string): TransactionBody<boolean> {
  const { engine, now } = connection;
  const [row] = yield* execute(findToChange({ id }));
  if (row?.state !== 'owed' || row.flow !== 'upfront') return false;
  const [order] = yield* execute(findOrderToChange({ payment: id }));
  if (!order) return false;
  // Whoever works on it loses its claim.
  yield* execute(fenceOff({ id }));
  yield* execute(rejectOrder({ payment: id, failure: reason, now: now() }));
  yield* forget({ engine, now }, id);
  const more = { attempt: order.attempts, failure: reason, final: true };
  yield* tellOf(connection, { kind: 'payment.owed', id, once: 'rejected' }, more);
  return true;
}

function* forget({ engine, now }: Pick<Connection, 'engine' | 'now'>, id: string): TransactionBody<void> {
  yield* execute(dropAnswer({ id }));
  yield* execute(removeRequest({ id, now: now() }));
  yield* execute(removeOrderRequest({ payment: id }));
  yield* removeStoredTexts(engine.dialect, id);
}
