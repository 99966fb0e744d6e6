import type { Connection } from './connection.js';
import { execute } from './engine.js';
import { idOf } from './ids.js';
import * as queries from './queries/moved-money.js';

/** With the bytes of a transaction each; SQLite reads them in the thread of the server: some ms. */
const SLICE = 200;

/** Times in ms since 1970, `from` included, `to` not. */
export type Within = { from: number; to: number };

/** Money that came in. Amounts in atomic units; `evidence`: the rail's evidence for its settlement. */
export type MovedSale = ReturnType<typeof saleOf>;

/** A refund. `source`: the sender, null if that is not recorded. `evidence`: the signed transaction, if it was sent with a key. */
export type MovedRefund = {
  at: number;
  payment: string;
  operation: string;
  payer: string;
  amount: bigint;
  signature: string | null;
  source: string | null;
  evidence: string | null;
};

/** The data for the books. Every function rejects with a LedgerFault. */
export function movedMoneyOf({ engine }: Connection) {
  return {
    /** Slice by slice, the oldest first. */
    movedSales: async function* (within: Within, limit = SLICE): AsyncGenerator<MovedSale[]> {
      let place = { at: 0, id: '' };
      for (;;) {
        const page = { ...within, ...place, limit };
        const slice = (await engine.read(() => execute(queries.movedSales(page)))).map(saleOf);
        if (slice.length > 0) yield slice;
        const last = slice.at(-1);
        if (!last || slice.length < limit) return;
        place = { at: last.at, id: last.payment };
      }
    },
    /** Slice by slice, the oldest first. */
    movedRefunds: async function* (within: Within, limit = SLICE): AsyncGenerator<MovedRefund[]> {
      let place = { at: 0, id: '' };
      for (;;) {
        const page = { ...within, ...place, limit };
        const rows = await engine.read(() => execute(queries.movedRefunds(page)));
        if (rows.length > 0) yield rows.map(refundOf);
        const last = rows.at(-1);
        if (!last || rows.length < limit) return;
        place = { at: last.landed_at, id: last.id };
      }
    },
    /** Those of earlier versions, which this one does not have. */
    formerRefunds: async (within: Within): Promise<MovedRefund[]> => {
      const rows = await engine.read(() => execute(queries.formerRefunds(within)));
      return rows.map(({ payment, refunded_at: at, amount, ...row }) => ({
        ...{ at, payment: idOf(payment), amount: BigInt(amount), source: null, evidence: null },
        ...{ operation: row.operation, payer: row.payer, signature: row.signature },
      }));
    },
    /** All that came in before a time, in atomic units. */
    soldBefore: async (before: number): Promise<bigint> => {
      const [row] = await engine.read(() => execute(queries.soldBefore({ before })));
      return BigInt(row?.amount ?? '0');
    },
    /** The refunds that this version recorded, by sender, in atomic units. */
    refundedBetween: async (within: Within): Promise<{ source: string | null; amount: bigint }[]> => {
      const rows = await engine.read(() => execute(queries.refundedBetween(within)));
      return rows.map(({ source, amount }) => ({ source, amount: BigInt(amount) }));
    },
  };
}

function saleOf({ id, settled_at: at, amount, signed_transaction: evidence, ...row }: queries.MovedSaleRow) {
  return { at, payment: idOf(id), amount: BigInt(amount), evidence, ...row };
}

function refundOf(row: queries.MovedRefundRow): MovedRefund {
  const { landed_at: at, receiver: payer, operation, signature, source, evidence } = row;
  const [payment, amount] = [idOf(row.payment), BigInt(row.amount)];
  return { at, payment, operation, payer, amount, signature, source: source || null, evidence };
}
