import type { LandedTransaction } from '../rails/solana/rpc-results.js';
import type { Identity } from '../ledger/reader.js';
import type { Payment, Refund } from '../ledger/store.js';
import { toDecimal } from '../price/amount.js';
import { isSignature } from '../rails/solana/address.js';
import { createChain, type SolanaChain } from '../rails/solana/rpc.js';
import { checkNetwork, patiently, usdcMintOf } from './check-network.js';
import { findPayment, type ReportSource } from './find-payment.js';
import { OperatorFault } from './operator-fault.js';
import { receiversOf } from './receivers.js';

const CALL_MS = 20_000;
const DEADLINE_MS = 120_000;

/** Amounts in atomic units of USDC: what was paid, and what came back. */
export type RecordedRefund = Pick<Payment, 'id' | 'amount' | 'payer'> & {
  transaction: string;
  refunded: bigint;
};

type Paid = Pick<Payment, 'id' | 'amount' | 'payer' | 'settlement' | 'after'>;

/**
 * Records that the operator refunded an owed payment, if the chain shows the refund.
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
  const { id, state, amount, payer } = payment;
  if (state !== 'owed') throw notOwed(id, state);
  const identity = await reader.identity();
  const found = await withChain(identity, rpcUrls(), (chain, signal) =>
    findRefund(chain, identity, payment, tx, signal),
  );
  if (typeof found === 'string')
    throw new OperatorFault(
      `The transaction ${tx} does not refund payment ${id}: ${found}. Nothing was changed.`,
    );
  const outcome = await reader.refund(id, found);
  if (outcome === 'not owed') throw notOwed(id, (await reader.find(id))?.state ?? 'gone');
  if (outcome === 'used')
    throw new OperatorFault(
      `The transaction ${tx} is already recorded as the refund of another payment. Refund each payment with its own transaction. Nothing was changed.`,
    );
  return { id, amount, payer, transaction: tx, refunded: found.amount };
}

function notOwed(id: string, now: string): OperatorFault {
  return new OperatorFault(
    `The payment ${id} is ${now}, not owed; only owed payments can be refunded. Nothing was changed.`,
  );
}

async function withChain<T>(
  identity: Identity,
  urls: string[],
  work: (chain: SolanaChain, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const chain = createChain({ urls, timeoutMs: CALL_MS });
  const signal = AbortSignal.timeout(DEADLINE_MS);
  try {
    await checkNetwork(chain, identity, signal);
    return await work(chain, signal);
  } finally {
    await chain.close();
  }
}

/**
 * Checks at `finalized` that the transaction refunds the payment: USDC left an account of a receiver, the present or a former one, the
 * payer received at least the amount paid, and the transaction landed after the payment was claimed. Only balances before and after are
 * compared, so the refund may also come from a wallet program.
 * @returns the refund, or the reason why it is not one, as the end of a sentence
 */
export async function findRefund(
  chain: SolanaChain,
  identity: Identity,
  payment: Paid,
  signature: string,
  signal: AbortSignal,
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
  const receivers = receiversOf(identity, mint).map(({ payTo }) => payTo);
  const changes = receivers.map(payTo => changeOf(tokens, mint, payTo));
  const sent = -changes.reduce((least, change) => (change < least ? change : least), 0n);
  const got = changeOf(tokens, mint, payment.payer);
  if (sent <= 0n) return `no USDC left an account of ${receivers.join(' or ')}`;
  if (got <= 0n) return `no USDC reached an account of the payer ${payment.payer}`;
  const amount = got < sent ? got : sent;
  if (amount < payment.amount)
    return `it refunds ${toDecimal(amount)} USDC, but the payment was ${toDecimal(payment.amount)} USDC`;
  return { signature, amount, slot: landed.slot, refundedAt: landed.blockTime * 1_000 };
}

/** The increase of all token accounts of an owner together. */
export function changeOf(
  tokens: NonNullable<LandedTransaction['tokens']>,
  mint: string,
  owner: string,
): bigint {
  return tokens
    .filter(each => each.mint === mint && each.owner === owner)
    .reduce((sum, { change }) => sum + change, 0n);
}
