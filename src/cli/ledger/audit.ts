import type { LandedTransaction } from '../../rails/solana/rpc-results.js';
import type { SignatureEntry } from '../../rails/solana/rpc-results.js';
import { createHash } from 'node:crypto';
import type { Identity } from '../../ledger/reader.js';
import type { Payment } from '../../ledger/store.js';
import { createChain } from '../../rails/solana/rpc.js';
import type { SolanaChain } from '../../rails/solana/rpc.js';
import { commandLine } from '../../config/command-line.js';
import { checkNetwork, patiently, usdcMintOf } from '../../operator/check-network.js';
import { countOf, table, time } from './print.js';
import type { Report } from './print.js';
import { receiverOf, receiversOf, wasReceiver, type Receiver } from '../../operator/receivers.js';
import { changeOf, findRefund, recordedRefunds } from '../../operator/record-refund.js';
import { pages } from './reports.js';
import { describeTransfer, incoming, type TransferIn } from '../../operator/transfers-in.js';
import { toDecimal } from '../../price/amount.js';
import type { ReportSource } from '../../operator/find-payment.js';

const PAGE = 1_000;
const FETCHES = 4;
const CALL_MS = 20_000;
const AUDIT_MS = 30 * 60_000;
/** The longest time until a settlement is finalized and listed. */
const YOUNG_MS = 120_000;
export const MAX_TRANSACTIONS = 100_000;

export type Difference = {
  /**
   * - `missing`: settled in the ledger, not on chain;
   * - `failed`: settled in the ledger, its transaction failed on chain;
   * - `amount`: the transferred amount differs from the ledger;
   * - `uncounted`: transferred, but not settled in the ledger;
   * - `signature`: the ledger names another transaction;
   * - `unknown`: a transfer that belongs to no payment and went to the receiver while it was the receiver;
   * - `refund`: refunded in the ledger, but not on chain;
   * - `unreadable`: a transaction that may have transferred an unknown amount to the receiver.
   */
  kind: 'missing' | 'failed' | 'amount' | 'uncounted' | 'signature' | 'unknown' | 'refund' | 'unreadable';
  payment: string | null;
  transaction: string | null;
  detail: string;
  /** Set for `unknown` and `uncounted`. */
  transfer?: TransferIn;
};

export type AuditOptions = { rpcUrls: string[]; maxTransactions: number; now: number };

type Found = { entry: SignatureEntry; landed: LandedTransaction | null };
type History = { entries: SignatureEntry[]; complete: boolean };
/** Money that left the receiver's accounts: refunds, by their signatures, and all other transfers. */
type Outgoing = {
  refunds: Set<string>;
  refunded: bigint;
  others: number;
  withdrawn: bigint;
  /** To whom the other transfers went. */
  paid: { transaction: string; owner: string; amount: bigint; slot: number }[];
};
/** `foreign`: transfers to a receiver's account at a time when it was not the ledger's receiver. */
type Tally = {
  differences: Difference[];
  matched: Set<string>;
  transfers: number;
  foreign: number;
  out: Outgoing;
};
/** A receiver, the history of its account, and the number of transfers in it. */
type Audited = { receiver: Receiver; history: History; transfers: number };
type Compared = { reader: ReportSource; mint: string; receivers: readonly Receiver[] };

/**
 * Compares the ledger with the histories of the USDC accounts of its current and former receivers at `finalized`. Each payment is compared
 * with the account to which it was paid. The chain is read first, so that every transfer in it already has a row in the ledger.
 * @throws OperatorFault; UpstreamFailure if the chain cannot be read
 */
export async function audit(reader: ReportSource, options: AuditOptions): Promise<Report> {
  return report(await compareWithChain(reader, await reader.identity(), options));
}

/** Like `audit`, but returns data. `identity`: the ledger's own or, if it has sold nothing yet, the one it will get. */
export async function compareWithChain(
  reader: ReportSource,
  identity: Identity,
  options: AuditOptions,
): Promise<Outcome> {
  const mint = usdcMintOf(identity);
  const books = { reader, mint, receivers: receiversOf(identity, mint) };
  const signal = AbortSignal.timeout(AUDIT_MS);
  const chain = createChain({ urls: options.rpcUrls, network: identity.network, timeoutMs: CALL_MS });
  const out: Outgoing = { refunds: new Set(), refunded: 0n, others: 0, withdrawn: 0n, paid: [] };
  const tally: Tally = { differences: [], matched: new Set(), transfers: 0, foreign: 0, out };
  try {
    await checkNetwork(chain, identity, signal);
    const firstSlot = await reader.firstSlot();
    const { slot } = await patiently(() => chain.latestBlockhash('finalized', signal), signal);
    const audited: Audited[] = [];
    for (const receiver of books.receivers) {
      const range = { firstSlot, slot, max: options.maxTransactions };
      const history = await readHistory(chain, receiver.account, range, signal);
      audited.push({ receiver, history, transfers: 0 });
    }
    await compareRefunds(reader, chain, identity, tally, signal);
    for (const each of audited) {
      for await (const found of fetchAll(chain, each.history.entries, signal)) {
        if (tally.out.refunds.has(found.entry.signature)) continue;
        countWithdrawal(found, each.receiver.payTo, mint, tally.out);
        await compare(books, each.receiver, found, tally);
      }
      each.transfers = tally.transfers - audited.reduce((sum, { transfers }) => sum + transfers, 0);
    }
    const rest = await compareRows(books, audited, options.now, tally);
    return { slot, audited, tally, ...rest };
  } finally {
    await chain.close();
  }
}

/** The history of the account, newest first, back to the first claim of this ledger. */
async function readHistory(
  chain: SolanaChain,
  account: string,
  { firstSlot, slot, max }: { firstSlot: number | undefined; slot: number; max: number },
  signal: AbortSignal,
): Promise<History> {
  const entries: SignatureEntry[] = [];
  for (;;) {
    const before = entries.at(-1)?.signature;
    const limit = Math.min(PAGE, max - entries.length);
    if (limit === 0) return { entries, complete: false };
    const from = { finality: 'finalized' as const, minContextSlot: slot };
    const query = { ...from, limit, ...(before === undefined ? {} : { before }) };
    const page = await patiently(() => chain.signaturesFor(account, query, signal), signal);
    const ours = page.filter(entry => entry.slot >= (firstSlot ?? 0));
    entries.push(...ours);
    if (page.length < limit || ours.length < page.length) return { entries, complete: true };
  }
}

/** Fetches a few transactions at a time, oldest first. */
async function* fetchAll(
  chain: SolanaChain,
  entries: readonly SignatureEntry[],
  signal: AbortSignal,
): AsyncGenerator<Found> {
  const waiting = entries.toReversed();
  while (waiting.length > 0) {
    const batch = waiting.splice(0, FETCHES).map(async entry => {
      // A failed transaction moved nothing. It is kept to explain a payment that the ledger shows as settled by it.
      if (entry.failed) return { entry, landed: null };
      const landed = await patiently(() => chain.transaction(entry.signature, 'finalized', signal), signal);
      return { entry, landed };
    });
    yield* await Promise.all(batch);
  }
}

async function compare(
  { reader, mint, receivers }: Compared,
  receiver: Receiver,
  { entry, landed }: Found,
  tally: Tally,
): Promise<void> {
  if (entry.failed) return;
  const transaction = entry.signature;
  const differ = (kind: Difference['kind'], payment: string | null, detail: string): Difference => {
    const difference = { kind, payment, transaction, detail };
    tally.differences.push(difference);
    return difference;
  };
  if (!landed)
    return void differ(
      'unreadable',
      null,
      'listed, but the RPC server does not have it; use an archive server',
    );
  const amount = incoming(landed.transaction, receiver.account);
  const id = createHash('sha256').update(landed.message).digest('hex');
  const describe = (): Promise<TransferIn> =>
    describeTransfer({ entry, landed, id }, { asset: mint, payTo: receiver.payTo }, amount ?? 0n);
  const payment = await reader.find(id);
  if (!payment) {
    if (movedBetween(receivers, receiver, landed, mint)) return;
    if (!wasReceiver(receiver, entry.blockTime)) return void (tally.foreign += 1);
    if (amount === undefined)
      differ('unreadable', null, 'may have changed the balance, through another program');
    else if (amount > 0n) {
      const transfer = await describe();
      differ('unknown', null, `${unknownText(transfer)}, which belongs to no payment`).transfer = transfer;
    }
    return;
  }
  tally.transfers += 1;
  tally.matched.add(id);
  if (payment.settledAt === null) {
    const detail = `${toDecimal(payment.amount)} USDC was paid, but the state in the ledger is ${payment.state}`;
    differ('uncounted', id, detail).transfer = await describe();
  } else if (payment.settlement !== transaction)
    differ('signature', id, `the ledger has ${payment.settlement ?? 'no signature'}`);
  if (amount !== payment.amount)
    differ(
      'amount',
      id,
      `${amount === undefined ? '?' : toDecimal(amount)} on chain, ${toDecimal(payment.amount)} in the ledger`,
    );
}

function unknownText({ amount, payer, at, slot, memo }: TransferIn): string {
  const when = at === null ? '' : ` at ${time(at)}`;
  const said = memo === null ? '' : `, memo '${memo}'`;
  return `${toDecimal(amount)} USDC from ${payer ?? 'an unknown payer'}${when} in slot ${slot}${said}`;
}

/** Whether the operator moved money from another receiver of the ledger to this one. That receiver's tally counts it as money out. */
function movedBetween(
  receivers: readonly Receiver[],
  { payTo }: Receiver,
  { tokens }: LandedTransaction,
  mint: string,
): boolean {
  if (tokens === null) return false;
  const got = changeOf(tokens, mint, payTo);
  const others = receivers.filter(other => other.payTo !== payTo);
  return got > 0n && others.some(other => changeOf(tokens, mint, other.payTo) === -got);
}

/** Looks up each refund of the ledger on chain, even if it is older than the history within `--limit`. */
async function compareRefunds(
  reader: ReportSource,
  chain: SolanaChain,
  identity: Identity,
  { differences, out }: Tally,
  signal: AbortSignal,
): Promise<void> {
  const receivers = receiversOf(identity, usdcMintOf(identity)).map(({ payTo }) => payTo);
  for await (const payment of pages(reader, { state: 'refunded' })) {
    const differ = (transaction: string | null, detail: string): void =>
      void differences.push({ kind: 'refund', payment: payment.id, transaction, detail });
    const recorded = await recordedRefunds(reader, payment);
    if (recorded.length === 0)
      differ(
        null,
        `${toDecimal(payment.amount)} USDC, recorded before refunds were checked: ${payment.reason ?? 'no reason'}`,
      );
    for (const { signature, amount, source } of recorded) {
      const found = await findRefund(chain, identity, payment, signature, signal, [source].filter(Boolean));
      if (typeof found === 'string') {
        differ(signature, found);
        continue;
      }
      if (receivers.includes(found.source ?? '')) {
        out.refunds.add(signature);
        out.refunded += found.amount;
      }
      if (found.amount !== amount)
        differ(signature, `${toDecimal(found.amount)} on chain, ${toDecimal(amount)} in the ledger`);
    }
  }
}

/** Counts the operator's other outgoing transfers, which are not differences but explain the balance. */
function countWithdrawal({ entry, landed }: Found, payTo: string, mint: string, out: Outgoing): void {
  const change = landed?.tokens ? changeOf(landed.tokens, mint, payTo) : 0n;
  if (change >= 0n) return;
  out.others += 1;
  out.withdrawn -= change;
  for (const { owner, change: amount } of landed?.tokens ?? [])
    if (amount > 0n && owner !== payTo)
      out.paid.push({ transaction: entry.signature, owner, amount, slot: entry.slot });
}

/** Looks up settled payments that are missing from the history. */
async function compareRows(
  { reader, receivers }: Compared,
  audited: readonly Audited[],
  now: number,
  { differences, matched }: Tally,
): Promise<{ settled: number; young: number; unjudged: number }> {
  const all = audited.flatMap(({ history }) => history.entries);
  const failed = new Set(all.filter(entry => entry.failed).map(entry => entry.signature));
  const unfetched = new Set(
    differences.filter(({ kind }) => kind === 'unreadable').map(each => each.transaction),
  );
  const result = { settled: 0, young: 0, unjudged: 0 };
  for await (const payment of pages(reader, { booked: {} })) {
    if (payment.settledAt === null) continue;
    result.settled += 1;
    const { id, settlement: transaction } = payment;
    if (matched.has(id) || unfetched.has(transaction)) continue;
    if (failed.has(transaction ?? '')) {
      differences.push({ kind: 'failed', payment: id, transaction, detail: missing(payment) });
    } else if (payment.settledAt > now - YOUNG_MS) {
      result.young += 1;
    } else if (payment.after < reachOf(audited, receiverOf(payment, receivers))) {
      result.unjudged += 1;
    } else {
      differences.push({ kind: 'missing', payment: id, transaction, detail: missing(payment) });
    }
  }
  return result;
}

/** The slot to which the history of a receiver's account goes back. */
function reachOf(audited: readonly Audited[], receiver: Receiver | undefined): number {
  const history = audited.find(each => each.receiver === receiver)?.history;
  return !history || history.complete ? 0 : (history.entries.at(-1)?.slot ?? Infinity);
}

function missing(payment: Payment): string {
  return `${toDecimal(payment.amount)} USDC, ${payment.state}, settled ${time(payment.settledAt)}`;
}

export type Outcome = {
  /** The finalized slot up to which the chain was read. */
  slot: number;
  audited: Audited[];
  tally: Tally;
  settled: number;
  young: number;
  unjudged: number;
};

function report({ slot, audited, tally, settled, young, unjudged }: Outcome): Report {
  const { differences, transfers, foreign, out } = tally;
  const accounts = audited.map(({ receiver: { payTo, account }, history, transfers: matched }) => ({
    payTo,
    account,
    transactions: history.entries.length,
    transfers: matched,
  }));
  const complete = isComplete(audited);
  const data = {
    slot,
    account: accounts[0]?.account ?? null,
    accounts,
    transactions: accounts.reduce((sum, each) => sum + each.transactions, 0),
    transfers,
    foreign,
    settled,
    young,
    unjudged,
    complete,
    refunds: { payments: out.refunds.size, usdc: toDecimal(out.refunded) },
    withdrawals: { transactions: out.others, usdc: toDecimal(out.withdrawn) },
    differences: differences.map(({ transfer, ...rest }) => ({
      ...rest,
      ...(transfer ? publicTransfer(transfer) : {}),
    })),
  };
  const lines = [
    `Checked the chain up to slot ${slot} (finalized). Later transactions were not checked.`,
    ...accounts.map(
      ({ account, ...of }) =>
        `Account ${account}: ${countOf(of.transactions, 'transaction')} at finalized, of which ${of.transfers} paid for sales of this ledger.`,
    ),
    `Ledger: ${countOf(settled, 'settled payment')}.`,
    `Money out: ${toDecimal(out.refunded)} USDC in ${countOf(out.refunds.size, 'refund')}, ${toDecimal(out.withdrawn)} USDC in ${countOf(out.others, 'other transaction')}.`,
  ];
  if (foreign > 0)
    lines.push(
      `Not checked: ${countOf(foreign, 'transfer')} to these accounts, made when their owner was not the receiver of this ledger.`,
    );
  if (young > 0)
    lines.push(
      `Not checked: ${countOf(young, 'payment')} settled within the last two minutes, which may not be finalized yet.`,
    );
  if (!complete)
    lines.push(`The history is longer than --limit. Not checked: ${countOf(unjudged, 'older payment')}.`);
  lines.push(...linesOf(differences));
  return { data, lines, ok: differences.length === 0 };
}

function linesOf(differences: readonly Difference[]): string[] {
  if (differences.length === 0) return ['No differences.'];
  const rows = differences.map(each => [each.kind, each.payment, each.transaction, each.detail]);
  const lines = [
    `${countOf(differences.length, 'difference')}:`,
    '',
    ...table(['kind', 'payment', 'transaction', 'detail'], rows),
  ];
  if (!differences.some(({ transfer }) => transfer)) return lines;
  const adopt = `${commandLine('ledger')} adopt`;
  return [...lines, '', `${adopt} adds payments that are on chain but not marked as paid in the ledger.`];
}

export function isComplete(audited: Outcome['audited']): boolean {
  return audited.every(({ history }) => history.complete);
}

/** A transfer without its payment id, because a difference names its payment only if the ledger has that payment. */
function publicTransfer({ amount, payer, at, slot, memo }: TransferIn) {
  return { usdc: toDecimal(amount), payer, at: time(at), slot, memo };
}
