import type { LandedTransaction } from '../rails/solana/rpc-results.js';
import type { Identity } from '../ledger/reader.js';
import type { Payment, Refund } from '../ledger/store.js';
import { isSignature } from '../rails/solana/address.js';
import { createChain, type SolanaChain } from '../rails/solana/rpc.js';
import { checkNetwork, patiently, usdcMintOf } from './check-network.js';
import { findPayment, type ReportSource } from './find-payment.js';
import { OperatorFault } from './operator-fault.js';
import { receiversOf } from './receivers.js';

const CALL_MS = 20_000;
const DEADLINE_MS = 120_000;

/** The amount that was paid and the amount that was refunded, in atomic units of USDC. */
export type RecordedRefund = Pick<Payment, 'id' | 'amount' | 'payer'> & {
  transaction: string;
  refunded: bigint;
};

type Paid = Pick<Payment, 'id' | 'amount' | 'payer' | 'settlement' | 'after'>;

/**
 * Records that the operator refunded a payment or a part of it, if the chain shows the refund.
 * @throws OperatorFault that says what is wrong; UpstreamFailure if the chain cannot be read. The ledger is unchanged in both cases
 */
export async function recordRefund(
  reader: ReportSource,
  name: string | undefined,
  tx: string | undefined,
  rpcUrls: () => string[],
): Promise<RecordedRefund> {
  if (tx === undefined || !isSignature(tx))
    throw new OperatorFault('Use --tx to give the signature of the transaction that refunded the money.');
  const payment = await findPayment(reader, name);
  const { id, amount, payer } = payment;
  if (!mayBeRepaid(payment)) throw notPaid(payment);
  const identity = await reader.identity();
  const found = await withChain(identity, rpcUrls(), (chain, signal) =>
    findRefund(chain, identity, payment, tx, signal),
  );
  if (typeof found === 'string')
    throw new OperatorFault(
      `The transaction ${tx} does not refund payment ${id}: ${found}. Nothing was changed.`,
    );
  const outcome = await reader.refund(id, found);
  if (outcome !== 'refunded' && outcome !== 'repaid')
    throw notRecorded(outcome, tx, (await reader.find(id)) ?? payment);
  return { id, amount, payer, transaction: tx, refunded: found.amount };
}

/** Whether the money of a payment moved and has not been refunded in full. */
export function mayBeRepaid({ state, aliasOf, amount, repaid }: Payment): boolean {
  return aliasOf === null && (state === 'owed' || state === 'delivered') && repaid < amount;
}

export function notPaid({ id, state, aliasOf }: Payment): OperatorFault {
  if (aliasOf !== null)
    return new OperatorFault(
      `The payment ${id} moved no money: it redeems the answer of payment ${aliasOf}. Refund that payment instead. Nothing was changed.`,
    );
  const why =
    state === 'refunded' || state === 'delivered' || state === 'owed'
      ? 'was refunded in full'
      : `is ${state}: its money has not moved, or it is not known whether it has`;
  return new OperatorFault(`The payment ${id} ${why}; there is nothing to refund. Nothing was changed.`);
}

function notRecorded(
  outcome: 'not paid' | 'nothing left' | 'under way' | 'used',
  tx: string,
  payment: Payment,
): OperatorFault {
  if (outcome === 'used')
    return new OperatorFault(
      `The transaction ${tx} is already recorded as the refund of another payment. Refund each payment with its own transaction. Nothing was changed.`,
    );
  if (outcome === 'under way')
    return new OperatorFault(
      `A refund of payment ${payment.id} is being sent. Wait until it has landed or failed. Nothing was changed.`,
    );
  return notPaid(payment);
}

/** @throws OperatorFault if the RPC servers belong to a network other than the ledger's */
export async function withChain<T>(
  identity: Identity,
  urls: string[],
  work: (chain: SolanaChain, signal: AbortSignal) => Promise<T>,
  deadlineMs = DEADLINE_MS,
): Promise<T> {
  const chain = createChain({ urls, timeoutMs: CALL_MS });
  const signal = AbortSignal.timeout(deadlineMs);
  try {
    await checkNetwork(chain, identity, signal);
    return await work(chain, signal);
  } finally {
    await chain.close();
  }
}

/**
 * Checks at `finalized` that the transaction refunds the payment: USDC left an account of the current or a former receiver, the payer
 * received some, and the transaction landed after the payment was claimed. Only balances before and after are compared, so the refund may
 * also come from a wallet program.
 * @param otherSenders further wallets that may have refunded it
 * @returns the refund, or the reason why it is not one, as the end of a sentence
 */
export async function findRefund(
  chain: SolanaChain,
  identity: Identity,
  payment: Paid,
  signature: string,
  signal: AbortSignal,
  otherSenders: readonly string[] = [],
): Promise<Refund | string> {
  const mint = usdcMintOf(identity);
  if (signature === payment.settlement) return 'it is the transaction of the payment itself';
  const landed = await patiently(() => chain.transaction(signature, 'finalized', signal), signal);
  if (!landed)
    return 'the RPC server does not have it at finalized; wait half a minute, or use an archive server';
  if (landed.failed) return 'it failed on chain and moved nothing';
  if (landed.slot <= payment.after)
    return `it landed in slot ${landed.slot}, before the payment (slot ${payment.after})`;
  if (landed.tokens === null || landed.blockTime === null)
    return 'the RPC server does not report its transfers or its time; use another RPC server';
  const { tokens } = landed;
  const senders = [...receiversOf(identity, mint).map(({ payTo }) => payTo), ...otherSenders];
  const changes = senders.map(payTo => changeOf(tokens, mint, payTo));
  const sent = -changes.reduce((least, change) => (change < least ? change : least), 0n);
  const got = changeOf(tokens, mint, payment.payer);
  if (sent <= 0n) return `no USDC left an account of ${senders.join(' or ')}`;
  if (got <= 0n) return `no USDC reached an account of the payer ${payment.payer}`;
  const amount = got < sent ? got : sent;
  const source = senders[changes.indexOf(-sent)] ?? '';
  return { signature, amount, slot: landed.slot, refundedAt: landed.blockTime * 1_000, source };
}

/** The transactions that refunded a payment. Earlier versions recorded only one, without its sender. */
export async function recordedRefunds(
  reader: ReportSource,
  { id }: Payment,
): Promise<{ signature: string; amount: bigint; source: string }[]> {
  const landed = (await reader.repaymentsOf(id)).filter(({ state }) => state === 'done');
  const former = landed.length === 0 ? await reader.refundOf(id) : undefined;
  return [
    ...landed.map(({ signature, amount, source }) => ({
      signature: signature ?? '',
      amount,
      source: source ?? '',
    })),
    ...(former ? [{ ...former, source: '' }] : []),
  ];
}

/** The total increase of an owner's token accounts. */
export function changeOf(
  tokens: NonNullable<LandedTransaction['tokens']>,
  mint: string,
  owner: string,
): bigint {
  return tokens
    .filter(each => each.mint === mint && each.owner === owner)
    .reduce((sum, { change }) => sum + change, 0n);
}
