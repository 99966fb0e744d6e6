import { dropAnswer } from './queries/answers.js';
import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import { removeStoredTexts } from './operation-store.js';
import { tellOf } from './outbox.js';
import { findToChange } from './queries/claims.js';
import { findOrderToChange, rejectOrder, removeOrderRequest } from './queries/orders.js';
import * as queries from './queries/removals.js';
import type { Place, RemovableRow } from './queries/removals.js';
import { fenceOff } from './queries/repayments.js';
import { removeRequest } from './queries/transitions.js';
import type { PaymentRow } from './schema.js';

const MAX_REASON_CHARACTERS = 500;
const SLICE = 100;
/** Unpaid payments are not indexed by payer, so all payments are searched for them, this many at a time. */
const SEARCHED = 1_000;
const BEGINNING: Place = { at: 0, id: '' };

/** Stored in place of a removed payer's address. */
export const REMOVED_PAYER = 'removed';

/** `open`: nothing was removed, because the payment is not finished and its buyer would lose what it paid for. */
export type Removal = 'removed' | 'open' | 'unknown';

/** Reduces the evidence of a payment or a refund to what the accounting export needs, without the payer. */
export type Anonymizer = {
  sale: (evidence: string) => string;
  refund: (evidence: string, signature: string | null) => string | null;
};

/** Removes personal data from the ledger. Amounts paid and refunded stay. All functions reject with a LedgerFault. */
export function removalsOf(connection: Connection) {
  const { engine } = connection;
  return {
    /** Removes the request and the answer of a payment. */
    removeContents: (id: string): Promise<Removal> => engine.write(() => remove(connection, id)),
    /**
     * Removes a payer's address from all its finished payments, together with their requests and answers.
     * @returns the number of payments changed, and of those that are not finished
     */
    removePayer: (payer: string, anonymizer: Anonymizer) => removePayer(connection, payer, anonymizer),
    /**
     * Ends the work on an order permanently, and removes its request and its answer. The payment stays owed until it is refunded.
     * @returns false if there is no order, or its payment is not owed
     */
    rejectOrder: (id: string, reason: string): Promise<boolean> =>
      engine.write(() => reject(connection, id, reason.slice(0, MAX_REASON_CHARACTERS))),
  };
}

function* remove(connection: Connection, id: string): TransactionBody<Removal> {
  const [row] = yield* execute(findToChange({ id }));
  if (!row) return 'unknown';
  const [order] = yield* execute(findOrderToChange({ payment: id }));
  const isRejected = row.state === 'owed' && order?.request === '';
  if (!isOver(row) && !isRejected) return 'open';
  yield* removeContentsOf(connection, id);
  return 'removed';
}

/** Whether a payment is finished. A released payment that is not audited may still be found on chain and become owed. */
export function isOver({ state, audited_at }: Pick<PaymentRow, 'state' | 'audited_at'>): boolean {
  return state === 'delivered' || state === 'refunded' || (state === 'released' && audited_at !== null);
}

async function removePayer(
  connection: Connection,
  payer: string,
  anonymizer: Anonymizer,
): Promise<{ removed: number; open: number }> {
  const counts = { removed: 0, open: 0 };
  for await (const ids of paymentsOf(connection, payer)) {
    const removed = await connection.engine.write(() => removeAll(connection, ids, anonymizer));
    counts.removed += removed;
    counts.open += ids.length - removed;
  }
  return counts;
}

/** The ids of a payer's payments, in slices: first the sales, which are indexed by payer, then the unpaid ones. */
async function* paymentsOf({ engine }: Connection, payer: string): AsyncGenerator<string[]> {
  const sales = (place: Place) => queries.soldAfter({ ...place, payer, limit: SLICE });
  const all = (place: Place) =>
    queries.claimedAfter({ ...place, before: Number.MAX_SAFE_INTEGER, limit: SEARCHED });
  for await (const rows of slices(engine, sales, row => row.settled_at ?? 0))
    yield rows.map(row => idOf(row.id));
  for await (const rows of slices(engine, all, row => row.created_at)) {
    const unpaid = rows.filter(row => row.payer === payer && row.settled_at === null);
    if (unpaid.length > 0) yield unpaid.map(row => idOf(row.id));
  }
}

async function* slices(
  engine: Connection['engine'],
  query: (place: Place) => ReturnType<typeof queries.soldAfter>,
  timeOf: (row: RemovableRow) => number,
): AsyncGenerator<RemovableRow[]> {
  let place = BEGINNING;
  for (;;) {
    const from = place;
    const rows = await engine.read(() => execute(query(from)));
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    place = { at: timeOf(last), id: idOf(last.id) };
  }
}

/** @returns the number of payments changed */
function* removeAll(
  connection: Connection,
  ids: readonly string[],
  anonymizer: Anonymizer,
): TransactionBody<number> {
  let removed = 0;
  for (const id of ids) {
    if (!(yield* removePayerOf(id, anonymizer))) continue;
    yield* removeContentsOf(connection, id);
    removed += 1;
  }
  return removed;
}

/**
 * Removes the payer from a payment, unless the payment is unfinished, not audited, or being refunded.
 * @returns whether the payer was removed
 */
export function* removePayerOf(id: string, anonymizer: Anonymizer): TransactionBody<boolean> {
  const [row] = yield* execute(findToChange({ id }));
  if (!row || !isOver(row) || row.audited_at === null || row.repaying !== '0') return false;
  const [payer, signed_transaction] = [REMOVED_PAYER, anonymizer.sale(row.signed_transaction)];
  yield* execute(queries.removePayer({ id, payer, signed_transaction }));
  for (const each of yield* execute(queries.endedRepayments({ id }))) {
    const evidence = each.evidence === null ? null : anonymizer.refund(each.evidence, each.signature);
    yield* execute(queries.removeReceiver({ id: each.id, receiver: payer, evidence }));
  }
  yield* execute(queries.dropPayer({ payer: row.payer }));
  return true;
}

function* reject(connection: Connection, id: string, reason: string): TransactionBody<boolean> {
  const [row] = yield* execute(findToChange({ id }));
  if (row?.state !== 'owed' || row.flow !== 'upfront') return false;
  const [order] = yield* execute(findOrderToChange({ payment: id }));
  if (!order) return false;
  // A worker on the order loses its claim.
  yield* execute(fenceOff({ id }));
  yield* execute(rejectOrder({ payment: id, failure: reason, now: connection.now() }));
  yield* removeContentsOf(connection, id);
  const more = { attempt: order.attempts, failure: reason, final: true };
  yield* tellOf(connection, { kind: 'payment.owed', id, once: 'rejected' }, more);
  return true;
}

/** Removes a payment's request, its answer, and what people wrote for it. */
export function* removeContentsOf(
  { engine, now }: Pick<Connection, 'engine' | 'now'>,
  id: string,
): TransactionBody<void> {
  yield* execute(dropAnswer({ id }));
  yield* execute(removeRequest({ id, now: now() }));
  yield* execute(removeOrderRequest({ payment: id }));
  yield* removeStoredTexts(engine.dialect, id);
}
