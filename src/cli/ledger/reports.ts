import { STATES } from '../../ledger/states.js';
import type { State } from '../../ledger/states.js';
import type { Explorer } from '../../rails/solana/explorer.js';
import { keptEvidence } from '../../rails/solana/kept-evidence.js';
import { FOUND_ON_CHAIN } from '../../ledger/store.js';
import type { LedgerReader, Order, Payment, Repayment } from '../../ledger/store.js';
import { fields, table, time } from './print.js';
import type { Cell, Report } from './print.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { commandLine } from '../../config/command-line.js';
import { toDecimal } from '../../price/amount.js';
import { findPayments } from '../../operator/find-payment.js';
import type { ReportSource } from '../../operator/find-payment.js';

const DAY_MS = 86_400_000;
const DEFAULT_LISTED = 50;
const PAGE = 1_000;

type Turnover = Awaited<ReturnType<ReportSource['turnover']>>;

function earnedIn(turnover: Turnover): bigint {
  return turnover.reduce((sum, { amount, repaid }) => sum + amount - repaid, 0n);
}

/** Revenue by day and operation. @param apart whether to show separately what came from the operator's own wallets */
function revenueIn(turnover: Turnover, apart: boolean) {
  const days = new Map<string, { day: string; operation: string; rows: Turnover }>();
  for (const row of turnover) {
    const { day, operation } = row;
    const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
    const key = `${date} ${operation}`;
    const { rows } = days.get(key) ?? { rows: [] };
    days.set(key, { day: date, operation, rows: [...rows, row] });
  }
  return [...days.values()].map(({ day, operation, rows }) => {
    const own = rows.filter(row => row.own);
    const refunded = rows.reduce((sum, { amount }) => sum + amount, 0n) - earnedIn(rows);
    return {
      day,
      operation,
      payments: paymentsIn(rows),
      revenue: toDecimal(earnedIn(rows)),
      refunded: toDecimal(refunded),
      ...(apart ? { ownPayments: paymentsIn(own), ownRevenue: toDecimal(earnedIn(own)) } : {}),
    };
  });
}

function paymentsIn(turnover: Turnover): number {
  return turnover.reduce((sum, { payments }) => sum + payments, 0);
}

/**
 * Revenue per UTC day and operation, and payments by state. Revenue is what was settled and not refunded.
 * @param own the operator's own addresses
 */
export async function summary(reader: ReportSource, own: readonly string[] = []): Promise<Report> {
  const turnover = await reader.turnover(own);
  const counts = await reader.counts();
  const apart = own.length > 0;
  const revenue = revenueIn(turnover, apart);
  const earned = earnedIn(turnover);
  const ownEarned = earnedIn(turnover.filter(row => row.own));
  const of = (state: State) => ({ payments: counts[state].payments, usdc: toDecimal(counts[state].amount) });
  const byState = {
    delivered: of('delivered'),
    owed: of('owed'),
    inDoubt: of('settling'),
    released: of('released'),
    refunded: of('refunded'),
    claimed: of('claimed'),
  };
  const names: [string, keyof typeof byState][] = [
    ['delivered', 'delivered'],
    ['owed: paid, not yet answered', 'owed'],
    ['unresolved: settling, not yet found on chain', 'inDoubt'],
    ['refused or released: not charged', 'released'],
    ['refunded by the operator', 'refunded'],
    ['claimed: in progress, or abandoned unpaid', 'claimed'],
  ];
  const lines = [
    ...table(
      ['day (UTC)', 'operation', 'payments', 'revenue', 'refunded', ...(apart ? ['own', 'own revenue'] : [])],
      revenue.map(row => [
        ...[row.day, row.operation, row.payments, row.revenue, row.refunded],
        ...(apart ? [row.ownPayments ?? 0, row.ownRevenue ?? '0.00'] : []),
      ]),
    ),
    '',
    ...table(
      ['state', 'payments', 'USDC'],
      names.map(([label, key]) => [label, byState[key].payments, byState[key].usdc]),
    ),
    '',
    `Revenue: ${toDecimal(earned)} USDC (delivered and owed, less refunds)`,
    ...(apart ? [`Of this, from your own wallets (OWN_WALLETS): ${toDecimal(ownEarned)} USDC`] : []),
  ];
  const totals = {
    revenue: toDecimal(earned),
    ...(apart ? { ownRevenue: toDecimal(ownEarned) } : {}),
    ...byState,
  };
  return { data: { revenue, totals }, lines };
}

export type ListOptions = { state?: string; payer?: string; operation?: string; limit?: string };

/** The newest payments, up to 1 000, or those that match a text. */
export async function list(reader: ReportSource, options: ListOptions, text?: string): Promise<Report> {
  if (text !== undefined) return listed(await findPayments(reader, text));
  const limit = options.limit === undefined ? DEFAULT_LISTED : Number(options.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > PAGE)
    throw new OperatorFault(`--limit must be a whole number from 1 to ${PAGE}.`);
  const state = STATES.find(name => name === options.state);
  if (options.state !== undefined && !state)
    throw new OperatorFault(`'${options.state}' is not a state. Use one of ${STATES.join(', ')}.`);
  const { payer, operation } = options;
  const rows = await reader.list({
    newest: true,
    limit,
    ...(state ? { state } : {}),
    ...(payer === undefined ? {} : { payer }),
    ...(operation === undefined ? {} : { operation }),
  });
  return listed(rows);
}

function listed(rows: readonly Payment[]): Report {
  const lines = table(
    ['payment', 'claimed at', 'operation', 'USDC', 'state', 'payer'],
    rows.map(row => [
      row.id.slice(0, 16),
      time(row.createdAt),
      row.operation,
      toDecimal(row.amount),
      row.aliasOf === null ? row.state : `alias of ${row.aliasOf.slice(0, 16)}`,
      row.payer,
    ]),
  );
  return { data: rows.map(row => publicPayment(row, false)), lines };
}

/** All data of one payment except the body of its answer; a list if the text names several. */
export async function show(
  reader: ReportSource,
  text: string | undefined,
  withTransaction: boolean,
  explorer?: Explorer,
): Promise<Report> {
  const [payment, ...others] = await findPayments(reader, text);
  if (!payment || others.length > 0) return listed(payment ? [payment, ...others] : []);
  const facts = await reader.answerFacts(payment.id);
  const order = await reader.order(payment.id);
  const stored = await reader.storedRows(payment.id);
  const page = explorer && payment.settlement ? { explorer: explorer.transaction(payment.settlement) } : {};
  const shown = { ...publicPayment(payment, withTransaction), ...page };
  const refund = await publicRefund(reader, payment.id);
  const refunds = (await reader.repaymentsOf(payment.id)).map(each => publicRepayment(each, explorer));
  const answer = facts ? { status: facts.status, bytes: facts.bytes, savedAt: time(facts.savedAt) } : null;
  const data = { payment: shown, refund, refunds, answer, order: order ? publicOrder(order) : null, stored };
  const lines = fields([...Object.entries(shown), ['answer', answer && describeAnswer(answer)]]);
  if (refund && refunds.length === 0) lines.push('', 'Refund', ...fields(Object.entries(refund)));
  for (const each of refunds) lines.push('', `Refund ${each.id}`, ...fields(Object.entries(each)));
  if (order) {
    lines.push('', 'Order', ...fields(Object.entries(publicOrder(order))));
  }
  for (const [name, rows] of Object.entries(stored))
    lines.push('', name, ...table(Object.keys(rows[0] ?? {}), rows.map(Object.values)));
  return { data, lines };
}

/** The refund in the form of earlier versions; this version also records full refunds of owed payments that way. */
async function publicRefund(reader: ReportSource, id: string): Promise<Record<string, Cell> | null> {
  const paidBack = await reader.refundOf(id);
  if (!paidBack) return null;
  const { signature: transaction, amount, slot, refundedAt } = paidBack;
  return { transaction, usdc: toDecimal(amount), slot, at: time(refundedAt) };
}

function publicRepayment(each: Repayment, explorer: Explorer | undefined): Record<string, Cell> {
  return {
    id: each.id,
    state: each.state,
    transaction: each.signature,
    usdc: toDecimal(each.amount),
    receiver: each.receiver,
    way: each.way,
    cause: each.cause,
    reason: each.reason,
    from: each.source,
    createdAt: time(each.createdAt),
    landedAt: time(each.landedAt),
    failure: each.failure,
    ...(explorer && each.signature ? { explorer: explorer.transaction(each.signature) } : {}),
  };
}

function describeAnswer(answer: { status: number; bytes: number; savedAt: string | null }): string {
  return `status ${answer.status}, ${answer.bytes} bytes, saved ${answer.savedAt}`;
}

/** All owed payments, oldest first. */
export async function owed(reader: ReportSource, now: number): Promise<Report> {
  const entries: { payment: Payment; order: Order | undefined; why: string }[] = [];
  for await (const payment of pages(reader, { state: 'owed' })) {
    const order = await reader.order(payment.id);
    entries.push({ payment, order, why: whyOwed(payment, order, now) });
  }
  const data = entries.map(({ payment, order, why }) => ({
    id: payment.id,
    payer: payment.payer,
    operation: payment.operation,
    usdc: toDecimal(payment.amount),
    since: time(payment.settledAt ?? payment.createdAt),
    attempts: order?.attempts ?? payment.runs,
    why,
  }));
  const sum = entries.reduce((total, { payment }) => total + payment.amount, 0n);
  const lines = [
    ...table(
      ['payment', 'since', 'operation', 'USDC', 'attempts', 'payer', 'why'],
      data.map(row => [
        row.id.slice(0, 16),
        row.since,
        row.operation,
        row.usdc,
        row.attempts,
        row.payer,
        row.why,
      ]),
    ),
    '',
    `${entries.length} payments, ${toDecimal(sum)} USDC owed`,
  ];
  return { data, lines };
}

function whyOwed({ operation }: Payment, order: Order | undefined, now: number): string {
  if (operation === FOUND_ON_CHAIN)
    return 'found on chain: answered when its buyer sends the payment again; or refund it';
  if (!order) return 'paid, not yet answered; a running server will do the work';
  const got = order.wanted > 0 ? ` (${order.done} of ${order.wanted} done)` : '';
  if (order.finishedAt !== null)
    return `attempt ${order.attempts} ended without an answer${got}. ${nextOf(order, now)}`;
  if (order.deadline > now) return `in progress until ${time(order.deadline)}${got}`;
  return `past its deadline ${time(order.deadline)}${got}; a running server will finish it`;
}

function nextOf({ payment, nextAttemptAt, failure }: Order, now: number): string {
  const why = failure === null ? '' : `${failure} `;
  if (nextAttemptAt === null)
    return `${why}Retry it (${commandLine('ledger')} retry ${payment.slice(0, 16)}) or refund it`;
  const from = nextAttemptAt > now ? ` after ${time(nextAttemptAt)}` : '';
  return `${why}The buyer's next call${from} starts another attempt`;
}

/** All payments of a listing, oldest first, read in pages. */
export async function* pages(
  reader: LedgerReader,
  listing: Parameters<LedgerReader['list']>[0],
): AsyncGenerator<Payment> {
  let after: Payment | undefined;
  for (;;) {
    const page = await reader.list({ ...listing, limit: PAGE, ...(after ? { after } : {}) });
    yield* page;
    after = page.at(-1);
    if (page.length < PAGE || !after) return;
  }
}

/** A payment for display. The signed transaction can be used like a bearer token, so it is only shown on request. */
function publicPayment(payment: Payment, withTransaction: boolean): Record<string, Cell> {
  return {
    id: payment.id,
    state: payment.state,
    operation: payment.operation,
    payer: payment.payer,
    usdc: toDecimal(payment.amount),
    refunded: toDecimal(payment.repaid),
    network: payment.network,
    flow: payment.flow,
    method: payment.method,
    identifier: payment.identifier,
    requestId: payment.requestId,
    requestHash: payment.requestHash,
    request: payment.request,
    settlement: payment.settlement,
    reason: payment.reason,
    aliasOf: payment.aliasOf,
    claim: payment.claim,
    owner: payment.owner,
    runs: payment.runs,
    asks: payment.asks,
    claimSlot: payment.after,
    claimHeight: payment.position,
    leaseUntil: leaseTime(payment.leaseUntil),
    callers: payment.callers,
    callerUntil: leaseTime(payment.callerUntil),
    createdAt: time(payment.createdAt),
    settlingAt: time(payment.settlingAt),
    settledAt: time(payment.settledAt),
    decidedAt: time(payment.decidedAt),
    writtenTo: payment.writtenTo,
    writtenAt: time(payment.writtenAt),
    auditedAt: time(payment.auditedAt),
    answerExpiresAt: time(payment.answerExpiresAt),
    ...(withTransaction ? { transaction: keptEvidence(payment.evidence) ? null : payment.evidence } : {}),
  };
}

function leaseTime(ms: number): string | null {
  return ms === 0 ? null : time(ms);
}

function publicOrder(order: Order): Record<string, Cell> {
  return {
    request: order.request,
    wanted: order.wanted,
    done: order.done,
    attempts: order.attempts,
    deadline: time(order.deadline),
    createdAt: time(order.createdAt),
    finishedAt: time(order.finishedAt),
    nextAttemptAt: leaseTime(order.nextAttemptAt ?? 0),
    tries: order.tries,
    failure: order.failure,
  };
}
