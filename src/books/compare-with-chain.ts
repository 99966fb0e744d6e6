import type { SignatureEntry } from '../rails/solana/rpc-results.js';
import type { Within } from '../ledger/store.js';
import { patiently, usdcMintOf } from '../operator/check-network.js';
import { OperatorFault } from '../operator/operator-fault.js';
import { withChain } from '../operator/record-refund.js';
import { receiverAccount } from '../rails/solana/transaction.js';
import type { FiatRates } from './fiat-rates.js';
import type { Movement } from './movement.js';
import { payToAddresses, type BookSource } from './movements.js';
import { accountHistory, type AccountHistory, type HistoryChain } from './receiver-history.js';
import { changesBalance, statementOf, type Statement } from './booked-sums.js';

/**
 * How far around the period to look. A sale is booked when the server learns of it, seconds after its block, so its block may be in another period.
 */
const MARGIN_MS = 15 * 60_000;
/** The longest time until a settlement is finalized and listed. */
const FINAL_MS = 120_000;
const DEADLINE_MS = 30 * 60_000;
const FETCHES = 4;
/** The maximum number of transactions unknown to the ledger to read one by one. */
const MAX_OTHERS = 2_000;

/** A transaction of the receivers that is not in the ledger. `amount`: the change in their total balance. */
type OtherTransfer = { transaction: string; at: number; amount: bigint; counterparty: string };

/**
 * The books compared with the chain. `late`: booked in the period, but on chain shortly before or after it, or not final yet. `early`: on chain in
 * the period, but booked shortly before or after it. `missing`: booked but not on chain. `unexplained`: the rest; 0 if every unit is accounted for.
 */
export type Comparison = {
  slot: number;
  opening: bigint;
  closing: bigint;
  others: OtherTransfer[];
  late: { count: number; amount: bigint };
  early: { count: number; amount: bigint };
  missing: { transaction: string | null; payment: string; amount: bigint }[];
  unexplained: bigint;
};

/** `changes`: the ledger's movements in the period and around it. */
type Compared = Within & { slot: number; histories: readonly AccountHistory[]; changes: readonly Movement[] };

/**
 * The statement of a period, with the receivers' balance on chain. Its opening balance is then the chain's, which includes money from
 * before the ledger.
 * @throws OperatorFault; UpstreamFailure if the chain cannot be read
 */
export async function statementWithChain(
  reader: BookSource,
  { from, to }: Within,
  { rates, rpcUrls, most }: { rates?: FiatRates | undefined; rpcUrls: string[]; most: number },
): Promise<{ statement: Statement; comparison: Comparison }> {
  const identity = await reader.identity();
  const mint = usdcMintOf(identity);
  return withChain(
    identity,
    rpcUrls,
    async (chain, signal) => {
      // The chain is read before the ledger, so that the ledger already has everything that the chain shows.
      const { slot } = await patiently(() => chain.latestBlockhash('finalized', signal), signal);
      const accounts = payToAddresses(identity).map(payTo => receiverAccount({ asset: mint, payTo }));
      const histories: AccountHistory[] = [];
      for (const account of accounts)
        histories.push(
          await accountHistory(chain, account, { from, to, marginMs: MARGIN_MS, slot, most }, signal),
        );
      const booked: Movement[] = [];
      const seen = (movement: Movement): void => void booked.push(movement);
      const books = await statementOf(reader, { from, to }, { rates, seen, marginMs: MARGIN_MS });
      const changes = booked.filter(each => changesBalance(each, books.receivers));
      const comparison = await compared(chain, { slot, histories, changes, from, to }, signal);
      const { opening, others } = comparison;
      const moved = others.reduce((sum, { amount }) => sum + amount, 0n);
      const closing = opening + books.sales.amount - books.refunds.amount + moved;
      return { statement: { ...books, opening, closing }, comparison };
    },
    DEADLINE_MS,
  );
}

async function compared(
  chain: HistoryChain,
  { slot, histories, changes, from, to }: Compared,
  signal: AbortSignal,
): Promise<Comparison> {
  const within = new Map(histories.flatMap(each => each.within).map(entry => [entry.signature, entry]));
  const around = new Set(histories.flatMap(each => each.around).map(({ signature }) => signature));
  const known = new Set(changes.map(({ transaction }) => transaction));
  const unknown = [...within.values()].filter(({ signature, failed }) => !failed && !known.has(signature));
  const others = await othersOf(chain, histories, unknown, signal);
  const inTime = ({ at }: Movement): boolean => at >= from && at < to;
  const landed = ({ transaction }: Movement): boolean => within.get(transaction ?? '')?.failed === false;
  const absent = changes.filter(each => inTime(each) && !landed(each));
  const early = changes.filter(each => !inTime(each) && landed(each));
  const isLate = ({ transaction, at }: Movement): boolean =>
    around.has(transaction ?? '') || at > Date.now() - FINAL_MS;
  const [late, missing] = [absent.filter(isLate), absent.filter(each => !isLate(each))];
  const opening = sumOf(histories.map(each => each.opening));
  const closing = sumOf(histories.map(each => each.closing));
  const explained = [...changes.filter(landed), ...others].map(({ amount }) => amount);
  return {
    ...{ slot, opening, closing, others, late: summed(late), early: summed(early) },
    missing: missing.map(({ transaction, payment, amount }) => ({ transaction, payment, amount })),
    unexplained: closing - opening - sumOf(explained),
  };
}

function summed(changes: readonly Movement[]): { count: number; amount: bigint } {
  return { count: changes.length, amount: sumOf(changes.map(({ amount }) => amount)) };
}

const sumOf = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, amount) => sum + amount, 0n);

/** Reads the transactions that the ledger does not know. Those that only move money between receivers change nothing. */
async function othersOf(
  chain: HistoryChain,
  histories: readonly AccountHistory[],
  unknown: readonly SignatureEntry[],
  signal: AbortSignal,
): Promise<OtherTransfer[]> {
  if (unknown.length > MAX_OTHERS)
    throw new OperatorFault(
      `${unknown.length} transactions of the receivers are not in this ledger; at most ${MAX_OTHERS} are read. Use --no-chain.`,
    );
  const accounts = new Set(histories.map(({ account }) => account));
  const others: OtherTransfer[] = [];
  for (let at = 0; at < unknown.length; at += FETCHES) {
    const batch = unknown.slice(at, at + FETCHES).map(entry => otherOf(chain, accounts, entry, signal));
    others.push(...(await Promise.all(batch)));
  }
  return others.filter(({ amount }) => amount !== 0n);
}

async function otherOf(
  chain: HistoryChain,
  accounts: ReadonlySet<string>,
  { signature, blockTime }: SignatureEntry,
  signal: AbortSignal,
): Promise<OtherTransfer> {
  const landed = await patiently(() => chain.transaction(signature, 'finalized', signal), signal);
  if (!landed?.tokens)
    throw new OperatorFault(
      `The RPC server has no record of the balances of transaction ${signature}. Use an archive server, or --no-chain.`,
    );
  const ours = landed.tokens.filter(({ account }) => accounts.has(account));
  const amount = sumOf(ours.map(({ change }) => change));
  const theirs = landed.tokens.filter(({ account, change }) => !accounts.has(account) && change !== 0n);
  const opposite = theirs.find(({ change }) => change < 0n !== amount < 0n) ?? theirs[0];
  return {
    transaction: signature,
    at: (blockTime ?? 0) * 1_000,
    amount,
    counterparty: opposite?.owner ?? '',
  };
}
