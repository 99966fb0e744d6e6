import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import { getMeta, noteKey, setMeta } from './queries/meta.js';
import { claimedAfter, removeRequestId, type Place, type RemovableRow } from './queries/removals.js';
import { isOver, removeContentsOf, removePayerOf, REMOVED_PAYER, type Anonymizer } from './removals.js';

const SLICE = 100;
const BEGINNING: Place = { at: 0, id: '' };

/** `place`: where the next slice begins. `again`: where the next round begins, if this one passed a payment that was not finished. */
type Progress = { place: Place; again?: Place };

export type PayersKept = {
  /** Payers that stay in the ledger: the operator's own addresses. */
  own: ReadonlySet<string>;
  anonymizer: Anonymizer;
};

/**
 * Removes data that the ledger keeps for a limited time. Each call handles one slice of the payments claimed before `before` (ms since 1970), in
 * the order of their claims. The next round starts with the first payment that was not finished in this one. The functions return whether
 * there may be more to remove now.
 */
export function retentionOf(connection: Connection) {
  const { engine } = connection;
  const next = (name: string, before: number, change: Change): Promise<boolean> =>
    engine.write(() => nextSlice(noteKey(`retained:${name}`), before, change));
  return {
    /** Removes requests, answers, what people wrote for them, and request ids. */
    removeOldTexts: (before: number): Promise<boolean> =>
      next('texts', before, row => removeTexts(connection, row)),
    /** Removes payers' addresses. */
    removeOldPayers: (before: number, kept: PayersKept): Promise<boolean> =>
      next('payers', before, row => removeOldPayer(row, kept)),
  };
}

/** @returns false if the payment is not finished */
type Change = (row: RemovableRow) => TransactionBody<boolean>;

function* nextSlice(key: string, before: number, change: Change): TransactionBody<boolean> {
  const [note] = yield* execute(getMeta({ key }));
  const { place, again } = note
    ? (JSON.parse(note.value) as Progress)
    : { place: BEGINNING, again: undefined };
  const rows = yield* execute(claimedAfter({ ...place, before, limit: SLICE }));
  let [passed, open] = [place, again];
  for (const row of rows) {
    if (!(yield* change(row))) open ??= passed;
    passed = { at: row.created_at, id: idOf(row.id) };
  }
  const isLast = rows.length < SLICE;
  const progress: Progress = isLast
    ? { place: open ?? passed }
    : { place: passed, ...(open ? { again: open } : {}) };
  yield* execute(setMeta({ key, value: JSON.stringify(progress) }));
  return !isLast;
}

function* removeTexts(connection: Connection, row: RemovableRow): TransactionBody<boolean> {
  const id = idOf(row.id);
  if (row.request_id !== null) yield* execute(removeRequestId({ id }));
  if (Number(row.asked) === 0) return true;
  // The buyer may fetch the answer until it expires.
  if (row.answer_expires_at !== null || !isOver(row)) return false;
  yield* removeContentsOf(connection, id);
  return true;
}

function* removeOldPayer(row: RemovableRow, { own, anonymizer }: PayersKept): TransactionBody<boolean> {
  if (row.payer === REMOVED_PAYER || own.has(row.payer)) return true;
  if (row.answer_expires_at !== null) return false;
  return yield* removePayerOf(idOf(row.id), anonymizer);
}
