import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { Dialect, TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import * as queries from './queries/condensing.js';
import { getMeta, noteKey, setMeta } from './queries/meta.js';

const SLICE = 100;
const PLACE = noteKey('condensed');
const EVERYTHING = 'everything';

type Place = { settledAt: number; id: string };
const BEGINNING: Place = { settledAt: 0, id: '' };

/**
 * Condenses the evidence of sales that earlier versions stored in full, once per ledger. The evidence of later sales is condensed when they
 * are audited (see `audited`).
 */
export function condensingOf({ engine }: Pick<Connection, 'engine'>) {
  let isDone = false;
  return {
    /**
     * Handles the next slice of sales.
     * @returns whether there may be more
     */
    condenseSales: async (condense: (evidence: string) => string): Promise<boolean> => {
      if (isDone) return false;
      isDone = await engine.write(() => condenseSlice(engine.dialect, condense));
      return !isDone;
    },
  };
}

/** @returns whether nothing is left */
function* condenseSlice(dialect: Dialect, condense: (evidence: string) => string): TransactionBody<boolean> {
  const [note] = yield* execute(getMeta({ key: PLACE }));
  if (note?.value === EVERYTHING) return true;
  const { settledAt: settled_at, id } = note ? (JSON.parse(note.value) as Place) : BEGINNING;
  const rows = yield* execute(queries.evidenceAfter({ settled_at, id, limit: SLICE }));
  const kept = rows
    .filter(row => row.audited_at !== null)
    .map(row => ({ row, signed_transaction: condense(row.signed_transaction) }))
    .filter(({ row, signed_transaction }) => signed_transaction !== row.signed_transaction)
    .map(({ row, signed_transaction }) => ({ id: idOf(row.id), signed_transaction }));
  if (kept.length > 0) yield* execute(queries.setEvidence(kept, dialect));
  const last = rows.at(-1);
  const isLast = last === undefined || rows.length < SLICE;
  const place = isLast ? EVERYTHING : JSON.stringify({ settledAt: last.settled_at, id: idOf(last.id) });
  yield* execute(setMeta({ key: PLACE, value: place }));
  return isLast;
}
