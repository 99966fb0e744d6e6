import type { Connection } from './connection.js';
import { execute } from './engine.js';
import { idOf } from './ids.js';
import * as queries from './queries/moved-money.js';

/** Each row contains a signed transaction. SQLite reads them on the server's only thread, which takes a few ms for this many. */
const SLICE = 200;

/** A period in ms since 1970, `from` included, `to` not. */
export type Within = { from: number; to: number };

/** A payment that was settled. Amounts in atomic units; `evidence`: the rail's evidence for its settlement. */
export type MovedSale = ReturnType<typeof saleOf>;

/** A refund. `source`: its sender, null if not recorded. `evidence`: the signed transaction, if this program sent it with a key. */
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

/** Reads the data for the accounting export (`src/books`). All functions reject with a LedgerFault. */
export function movedMoneyOf({ engine }: Connection) {
  return {
    /** The sales of a period in slices, oldest first. */
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
    /** The refunds of a period in slices, oldest first. */
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
    /** Refunds that earlier versions recorded, in a table of their own. */
    formerRefunds: async (within: Within): Promise<MovedRefund[]> => {
      const rows = await engine.read(() => execute(queries.formerRefunds(within)));
      return rows.map(({ payment, refunded_at: at, amount, ...row }) => ({
        ...{ at, payment: idOf(payment), amount: BigInt(amount), source: null, evidence: null },
        ...{ operation: row.operation, payer: row.payer, signature: row.signature },
      }));
    },
    /** The sum of all sales before a time, in atomic units. */
    soldBefore: async (before: number): Promise<bigint> => {
      const [row] = await engine.read(() => execute(queries.soldBefore({ before })));
      return BigInt(row?.amount ?? '0');
    },
    /** The sums of refunds by sender, in atomic units, without those of `formerRefunds`. */
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
