import { execute } from './engine.js';
import type { Connection } from './connection.js';
import type { Query, TransactionBody } from './engine.js';
import { sql } from './sql.js';
import { bytesOf, idOf } from './ids.js';
import { readMeta } from './migrate.js';
import { ordersOf } from './orders.js';
import { storedRows, type StoredRow } from './operation-store.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import { formerReceiversOf } from './receiver-binding.js';
import type { PaymentView } from './schema.js';
import { STATES } from './states.js';
import type { State } from './states.js';
import * as answers from './queries/answers.js';
import { find } from './queries/claims.js';
import { deleteMeta, getMeta, keepMeta, metaOf, noteKey, setMeta } from './queries/meta.js';
import { findRefund } from './queries/refunds.js';
import { walPosition } from './queries/replica.js';
import { named } from './look-up.js';
import { movedMoneyOf } from './moved-money.js';
import { bySettlement } from './queries/look-up.js';
import { repaidOf } from './payment.js';
import { repaymentsOf, type Refund } from './repayments.js';
import { removalsOf } from './removals.js';
import * as reports from './queries/reports.js';
import { salesOf } from './sales.js';

const MAX_LISTED = 1_000;

export type StoredAnswer = {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** Milliseconds since 1970; Infinity while the payment is not delivered. */
  expiresAt: number;
};

/** Which payments to list; oldest first, unless `newest` is set. */
export type Listing = {
  newest?: boolean;
  state?: State;
  /** Only payments that no worker holds. */
  idle?: boolean;
  payer?: string;
  operation?: string;
  /**
   * Only payments that were or may have been settled, by the time of settlement (or, if that is unknown, of the claim): `from` is included and `to`
   * is not, in ms since 1970. Can't be combined with `newest`.
   */
  booked?: { from?: number; to?: number };
  /** Only payments after this one. Can't be combined with `newest`. */
  after?: { createdAt: number; id: string };
  /** The maximum number of payments: 1 000 or less, by default 1 000. */
  limit?: number;
};

/**
 * The payments that may have been paid and whose answer was not delivered. `since`: the time of the oldest, in ms since 1970; undefined if
 * there are none.
 */
export type Undecided = Record<
  'settling' | 'owed',
  { payments: number; amount: bigint; since: number | undefined }
>;

type Counts = Record<State, { payments: number; amount: bigint }>;

/** A payment that was settled. Amount in atomic units; `settledAt`: when the server learned of it, in ms since 1970. */
export type Sale = ReturnType<typeof saleOf>;

/** The ledger's receivers and network, and the URL to which it was moved if it is retired. */
export type Identity = Awaited<ReturnType<LedgerReports['identity']>>;

/** The functions that commands may use while servers are running. All of them reject with a LedgerFault. */
export type LedgerReader = ReturnType<typeof readerOf>;

export function readerOf(connection: Connection) {
  const { engine, now } = connection;
  const { order, retryOrder } = ordersOf(connection);
  return {
    ...repaymentsOf(connection),
    ...removalsOf(connection),
    order,
    retryOrder,
    find: async (id: string): Promise<Payment | undefined> => {
      const [row] = await engine.read(() => execute(find({ id, now: now() })));
      return row && paymentOf(row);
    },
    /** @returns the saved answer, byte for byte, unless it has expired */
    answer: async (id: string): Promise<StoredAnswer | undefined> => {
      const [row] = await engine.read(() => execute(answers.answer({ id, now: now() })));
      return row && answerOf(row);
    },
    list: (listing?: Listing): Promise<Payment[]> => list(connection, listing),
    /** @returns the number and total amount of the payments in each state, without aliases */
    counts: async (): Promise<Counts> => {
      const rows = await engine.read(() => execute(reports.counts()));
      const counts = Object.fromEntries(STATES.map(state => [state, { payments: 0, amount: 0n }])) as Counts;
      for (const row of rows) counts[row.state] = { payments: row.payments, amount: BigInt(row.amount) };
      return counts;
    },
    /** @returns the number, total amount and age of the payments that are settling or owed, on any server */
    undecided: async (): Promise<Undecided> => {
      const none = { payments: 0, amount: 0n, since: undefined };
      const found: Undecided = { settling: none, owed: none };
      for (const { state, payments, amount, since } of await engine.read(() => execute(reports.undecided())))
        found[state] = { payments: Number(payments), amount: BigInt(amount), since: Number(since) };
      return found;
    },
    /** Reads a note, which is a text stored under a key, such as the greatest block height seen. */
    getMeta: async (key: string): Promise<string | undefined> => {
      const [row] = await engine.read(() => execute(getMeta({ key: noteKey(key) })));
      return row?.value;
    },
    setMeta: async (key: string, value: string): Promise<void> => {
      await engine.write(() => execute(setMeta({ key: noteKey(key), value })));
    },
    /** Stores a note unless there is one under this key. @returns the stored note, which is the same for all servers */
    keepMeta: async (key: string, value: string): Promise<string> => {
      const [row] = await engine.write(() => execute(keepMeta({ key: noteKey(key), value })));
      return row?.value ?? value;
    },
    /** The notes whose keys begin with a prefix, ordered by key. */
    notesOf: async (prefix: string): Promise<{ key: string; value: string }[]> => {
      const rows = await engine.read(() => execute(metaOf({ prefix: noteKey(prefix) })));
      return rows.map(({ key, value }) => ({ key: key.slice(noteKey('').length), value }));
    },
    /** Deletes notes. `keys` must not be empty. */
    forgetNotes: async (keys: readonly string[]): Promise<void> => {
      await engine.write(() => execute(deleteMeta({ keys: keys.map(noteKey) })));
    },
    /** The full refund of a payment. Undefined also for payments refunded by the first versions, which recorded no transaction. */
    refundOf: async (id: string): Promise<Refund | undefined> => {
      const [row] = await engine.read(() => execute(findRefund({ id })));
      if (row === undefined) return undefined;
      const { signature, amount, slot, refunded_at: refundedAt } = row;
      return { signature, amount: BigInt(amount), slot, refundedAt };
    },
    /** Waits for all earlier operations, then closes. */
    close: (): Promise<void> => engine.close(),
  };
}

/** Reads that only the operator's reports use. */
export type LedgerReports = ReturnType<typeof reportsOf>;

export function reportsOf(connection: Connection) {
  const { engine, now } = connection;
  return {
    ...salesOf(connection),
    ...movedMoneyOf(connection),
    identity: async () => {
      const meta = await engine.read(readMeta);
      return {
        /** The receiver; undefined until the first sale. */
        payTo: meta.get('pay_to'),
        /** The former receivers, oldest first. */
        formerReceivers: formerReceiversOf(meta),
        network: meta.get('network') ?? '',
        retired: meta.get('retired'),
      };
    },
    /**
     * The number and total amount of the settled payments, by UTC day of settlement (days since 1970), operation and state. `repaid`: the refunded
     * amount.
     * @param own payers whose payments are counted separately
     */
    turnover: async (own: readonly string[] = []) => {
      const rows = await engine.read(() => execute(reports.turnover({ own })));
      return rows.map(row => ({
        ...row,
        own: Number(row.own) === 1,
        amount: BigInt(row.amount),
        repaid: BigInt(row.repaid),
      }));
    },
    /** At most 1 000 sales after the given one, oldest first. */
    salesAfter: async (
      { settledAt, id }: Pick<Sale, 'settledAt' | 'id'>,
      limit = MAX_LISTED,
    ): Promise<Sale[]> => {
      const page = { settled_at: settledAt, id, limit: Math.min(limit, MAX_LISTED) };
      return (await engine.read(() => execute(reports.salesAfter(page)))).map(saleOf);
    },
    /** At most 1 000 sales, newest first. */
    newestSales: async (limit: number): Promise<Sale[]> => {
      const page = { limit: Math.min(limit, MAX_LISTED) };
      return (await engine.read(() => execute(reports.newestSales(page)))).map(saleOf);
    },
    /**
     * Finds payments by the ids that people quote: the id of a payment or at least its first 8 digits, the transaction that settled or
     * refunded it, the id of a refund, a payer's address, a payment-identifier, or the id of the last request that presented it. Newest first.
     * @returns at most `limit` payments, by default 50
     */
    paymentsNamed: async (text: string, limit?: number): Promise<Payment[]> =>
      (await engine.read(() => named(text, now(), limit))).map(paymentOf),
    /** The payment that was settled by this transaction. */
    settledBy: async (settlement: string): Promise<Payment | undefined> => {
      const [row] = await engine.read(() =>
        execute(bySettlement({ now: now(), text: settlement, limit: 1 })),
      );
      return row && paymentOf(row);
    },
    answerFacts: async (id: string) => {
      const [row] = await engine.read(() => execute(answers.answerFacts({ id })));
      return row && { status: row.status, bytes: row.size, savedAt: row.saved_at };
    },
    /** The rows about a payment in operations' own stores, by table. */
    storedRows: (id: string): Promise<Record<string, StoredRow[]>> => engine.read(() => storedRows(id)),
    /** PostgreSQL's current position in the write-ahead log; undefined for SQLite. */
    walPosition: async (): Promise<string | undefined> => {
      if (!engine.dialect.concurrentWriters) return undefined;
      const [row] = await engine.read(() => execute(walPosition()));
      return row?.position;
    },
    /** The slot of the earliest claim; undefined if there is none. */
    firstSlot: async (): Promise<number | undefined> => {
      const [row] = await engine.read(() => execute(reports.firstSlot()));
      return row?.slot ?? undefined;
    },
  };
}

async function list(connection: Connection, listing: Listing = {}): Promise<Payment[]> {
  return (await connection.engine.read(() => listedBy(connection, listing))).map(paymentOf);
}

function* listedBy({ now }: Connection, listing: Listing): TransactionBody<PaymentView[]> {
  const { state = null, payer = null, operation = null, booked, newest = false } = listing;
  const values = {
    payer,
    operation,
    now: now(),
    leased: listing.idle ? now() : sql`${Number.MAX_SAFE_INTEGER}`,
    created_at: listing.after?.createdAt ?? (yield* firstBooked(booked)),
    id: listing.after?.id ?? '',
    limit: Math.min(listing.limit ?? MAX_LISTED, MAX_LISTED),
  };
  const query = (): Query<PaymentView> => {
    if (booked) {
      const { from = 0, to = Number.MAX_SAFE_INTEGER } = booked;
      return reports.listBooked({ ...values, state, from, to });
    }
    if (state === 'claimed' || state === 'settling' || state === 'owed')
      return reports.listUndecided({ ...values, state }, newest);
    return reports.listPayments({ ...values, state }, newest);
  };
  return yield* execute(query());
}

/** The time of the earliest claim whose payment may be booked in the period, so that older rows are not read. */
function* firstBooked({
  from = 0,
  to = Number.MAX_SAFE_INTEGER,
}: Listing['booked'] = {}): TransactionBody<number> {
  if (from === 0) return 0;
  const [row] = yield* execute(reports.firstClaimOf({ from, to }));
  return Math.min(from, row?.created_at ?? from);
}

function saleOf({ settled_at: settledAt, ...row }: reports.SaleRow) {
  return { ...row, id: idOf(row.id), amount: BigInt(row.amount), repaid: repaidOf(row), settledAt };
}

function answerOf(row: answers.SavedAnswer): StoredAnswer {
  return {
    status: row.status,
    headers: JSON.parse(row.headers) as Record<string, string>,
    body: bytesOf(row.body),
    expiresAt: row.answer_expires_at ?? Infinity,
  };
}
