import { AnswerStore } from './answer-store.js';
import { callersOf } from './callers.js';
import { clockOf } from './clock.js';
import { condensingOf } from './condensing.js';
import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { openEngine, opening } from './engines/open-engine.js';
import { foundPaymentsOf } from './found-payments.js';
import { maintenanceOf } from './maintenance.js';
import { checkReadable, migrate, refuseRestored } from './migrate.js';
import { offeredHintsOf } from './offered-hints.js';
import { offeredPricesOf } from './offered-prices.js';
import { ordersOf } from './orders.js';
import { outboxOf, type Audience } from './outbox.js';
import { endEverything } from './queries/claims.js';
import { endLeases } from './queries/outbox.js';
import { readerOf, reportsOf } from './reader.js';
import { formerReceiversOf, ReceiverBinding } from './receiver-binding.js';
import { transitionsOf } from './transitions.js';
import { retentionOf } from './retention.js';
import { usesOf } from './uses.js';
import { watched, type LedgerWatch } from './watched-engine.js';

export { CALLER_LIVE_MS, callerKey, HANG_UP_MARGIN_MS } from './callers.js';
export type { Caller, PaymentLookup } from './callers.js';
export type { Claim, ClaimLimit, ClaimRequest, ClaimResult } from './claim.js';
export type { CallOf, FoundPayment } from './found-payments.js';
export type { MovedRefund, MovedSale, Within } from './moved-money.js';
export type { OfferedHint } from './offered-hints.js';
export type { Order } from './orders.js';
export { FOUND_ON_CHAIN } from './payment.js';
export type { Attempted, OutboxEvent, LedgerEvent } from './outbox.js';
export type { Payment } from './payment.js';
export type { LedgerReader, LedgerReports, Sale, StoredAnswer } from './reader.js';
export type { LandedRepayment, NewRepayment, Refund, RefundPolicy, Repayment } from './repayments.js';
export { REMOVED_PAYER, type Anonymizer } from './removals.js';
export type { PayersKept } from './retention.js';
export type { SalePlace, SalesWanted, SoldPayment } from './sales.js';
export type { CallKey, SettleDecision, SettleRequest } from './settle.js';
export type { Use } from './uses.js';

const DEFAULT_ANSWER_BUDGET = 256 * 1024 * 1024;

export type LedgerOptions = {
  /** `file:/path/ledger.db` or `postgres://…` */
  url: string;
  /** A URL that reaches the same PostgreSQL database without a connection pooler; by default `url`. */
  directUrl?: string;
  payTo: string;
  network: string;
  /** Replaces the ledger's clock; see `clockOf`. */
  now?: () => number;
  /** Bytes of stored answers beyond which no new payment is claimed. Default 256 MB. */
  answerBudgetBytes?: number;
  /** Is notified of every database operation. */
  watch?: LedgerWatch;
};

/** One receiver's ledger, opened for a server. */
export type Ledger = Awaited<ReturnType<typeof openLedger>>;

/**
 * Opens the ledger of one receiver for a server. On SQLite it must be the only server: opening ends all leases and removes all callers.
 * The ledger belongs to the receiver of its first sale (see `ReceiverBinding`).
 * @throws LedgerFault `open` if the ledger is locked, unreachable, retired, newer than this program or belongs to another receiver
 */
export async function openLedger(options: LedgerOptions) {
  const opened = await openEngine(options.url, 'server', options.directUrl);
  const engine = options.watch ? watched(opened, options.watch) : opened;
  const now = clockOf(engine.dialect, options.now);
  let claims = 0;
  const receiver = new ReceiverBinding(options);
  const audience: Audience = { listens: false, onTold: () => {} };
  const connection = { engine, now, audience, nextClaim: () => (claims += 1), receiver };
  const answers = new AnswerStore(connection, options.answerBudgetBytes ?? DEFAULT_ANSWER_BUDGET);
  let former: string[];
  try {
    const meta = await opening(engine.write(() => migrate(engine.dialect, options)));
    refuseRestored(meta);
    former = formerReceiversOf(meta).map(({ payTo }) => payTo);
    if (!engine.dialect.concurrentWriters) await opening(engine.write(endFormerServer));
    await opening(answers.recount());
  } catch (error) {
    await engine.close();
    throw error;
  }
  return {
    ...readerOf(connection),
    ...reportsOf(connection),
    ...ordersOf(connection),
    ...callersOf(connection),
    ...transitionsOf(connection, answers),
    ...maintenanceOf(connection, answers),
    ...condensingOf(connection),
    ...retentionOf(connection),
    ...offeredHintsOf(connection),
    ...offeredPricesOf(connection),
    ...foundPaymentsOf(connection),
    ...outboxOf(connection),
    ...usesOf(connection),
    /** All receivers that this ledger has had, the current one first, without duplicates. */
    receivers: [...new Set([options.payTo, ...former.toReversed()])],
  };
}

function* endFormerServer(): TransactionBody<void> {
  for (const query of [...endEverything(), endLeases()]) yield* execute(query);
}

/**
 * Opens a ledger while a server is running, to read it and to record refunds.
 * @throws LedgerFault `open`
 */
export async function openLedgerReader(options: { url: string; now?: () => number }) {
  const engine = await openEngine(options.url, 'beside');
  // A command does not read the targets first, because the statement that writes an event writes nothing if there are no targets.
  const audience: Audience = { listens: true, onTold: () => {} };
  const connection: Connection = { engine, now: clockOf(engine.dialect, options.now), audience };
  try {
    await opening(engine.read(() => checkReadable()));
    return { ...readerOf(connection), ...reportsOf(connection), ...foundPaymentsOf(connection) };
  } catch (error) {
    await engine.close();
    throw error;
  }
}
