import { AnswerStore } from './answer-store.js';
import { archiveOf, booksOf } from './books.js';
import type { Archive, Books, Refund, StoredAnswer } from './books.js';
import { callersOf, CALLER_LIVE_MS, HANG_UP_MARGIN_MS } from './callers.js';
import type { Caller, Callers, Seen } from './callers.js';
import type { Claim, Claimed, ClaimRequest, Limit } from './claim.js';
import { clockOf } from './clock.js';
import { engineOf, opening } from './connect.js';
import type { Connection } from './connection.js';
import { ask } from './engine.js';
import type { Operation } from './engine.js';
import { feePayersOf } from './fee-payers.js';
import type { FeePayers, OfferedFeePayer } from './fee-payers.js';
import { checkReadable, migrate } from './migrate.js';
import { movesOf, removeClaim } from './moves.js';
import type { Moves } from './moves.js';
import { ordersOf } from './orders.js';
import type { Order, Orders, Reply } from './orders.js';
import type { Payment } from './payment.js';
import { endEverything } from './queries/claims.js';
import { RefusedClaims } from './refused-claims.js';
import type { Call, Sent, Settling } from './settle.js';
import { upkeepOf } from './upkeep.js';
import type { Upkeep } from './upkeep.js';

export { CALLER_LIVE_MS, HANG_UP_MARGIN_MS };
export type {
  Archive,
  Books,
  Call,
  Caller,
  Claim,
  Claimed,
  ClaimRequest,
  Limit,
  OfferedFeePayer,
  Order,
  Payment,
  Refund,
  Reply,
  Seen,
  Sent,
  Settling,
  StoredAnswer,
};

const DEFAULT_ANSWER_BUDGET = 256 * 1024 * 1024;

export type LedgerOptions = {
  /** `file:/path/ledger.db` or `postgres://…` */
  url: string;
  payTo: string;
  network: string;
  /** A clock that stands for the ledger's; see `clockOf`. */
  now?: () => number;
  /** Bytes of stored answers beyond which nothing new is claimed. Default 256 MB. */
  answerBudgetBytes?: number;
};

/** The payments of one receiver, open for a server. */
export type Ledger = Books & Orders & Callers & Moves & Upkeep & FeePayers;

/**
 * Opens the ledger of one receiver for a server. On SQLite it must be the only server: all leases end, and all callers are gone.
 * @throws LedgerFault `open` when the ledger is locked, somebody else's, retired, newer than this program or unreachable
 */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const opened = await engineOf(options.url, 'server');
  const refused = new RefusedClaims(opened, removeClaim);
  const { engine } = refused;
  const now = clockOf(engine.dialect, options.now);
  let claims = 0;
  const connection = { engine, now, nextClaim: () => (claims += 1), refused };
  const answers = new AnswerStore(connection, options.answerBudgetBytes ?? DEFAULT_ANSWER_BUDGET);
  try {
    await opening(engine.write(() => migrate(engine.dialect, options)));
    if (!engine.dialect.concurrentWriters) await opening(engine.write(forgetFormerServer));
    await opening(answers.recount());
  } catch (error) {
    await engine.close();
    throw error;
  }
  const books = booksOf(connection);
  const callers = callersOf(connection);
  const moves = movesOf(connection, answers);
  return {
    ...books,
    ...ordersOf(connection),
    ...callers,
    ...moves,
    ...upkeepOf(connection, answers),
    ...feePayersOf(connection),
    find: id => afterwards(refused.gone(id), () => books.find(id)),
    look: (id, payer) => afterwards(refused.gone(id), () => callers.look(id, payer)),
    claim: (request, caller) => afterwards(refused.gone(request.id), () => moves.claim(request, caller)),
  };
}

/** For what must not see a row that is on its way to be deleted. */
function afterwards<T>(gone: Promise<unknown> | undefined, next: () => Promise<T>): Promise<T> {
  return gone ? gone.then(next) : next();
}

function* forgetFormerServer(): Operation<void> {
  for (const query of endEverything()) yield* ask(query);
}

/**
 * Opens a ledger beside a running server, to read it and to record refunds.
 * @throws LedgerFault `open`
 */
export async function openBooks(options: { url: string; now?: () => number }): Promise<Books & Archive> {
  const engine = await engineOf(options.url, 'beside');
  const connection: Connection = { engine, now: clockOf(engine.dialect, options.now) };
  try {
    await opening(engine.read(() => checkReadable()));
    return { ...booksOf(connection), ...archiveOf(connection) };
  } catch (error) {
    await engine.close();
    throw error;
  }
}
