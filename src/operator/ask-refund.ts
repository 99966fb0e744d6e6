import type { Identity } from '../ledger/reader.js';
import type { LandedRepayment, Payment, Repayment } from '../ledger/store.js';
import { payLink, referenceOf } from '../rails/solana/pay-link.js';
import type { LandedTransaction } from '../rails/solana/rpc-results.js';
import type { SolanaChain } from '../rails/solana/rpc.js';
import { pause } from '../net/deadline.js';
import { patiently, usdcMintOf } from './check-network.js';
import { findPayment, type ReportSource } from './find-payment.js';
import { OperatorFault } from './operator-fault.js';
import { changeOf, withChain } from './record-refund.js';
import { memoOf } from './refund-transaction.js';
import { reserveRefund, type AskedAmount } from './reserve-refund.js';

/**
 * At most this many transfers to a refund's link are examined. There can be more only if somebody abuses the link.
 */
const MAX_CANDIDATES = 100;
const WAIT_MS = 600_000;
const LOOK_AGAIN_MS = 2_000;

/** `link`: the Solana Pay link for a wallet. */
export type AskedRefund = { payment: Payment; repayment: Repayment; link: string };

type RefundChain = Pick<SolanaChain, 'signaturesFor' | 'transaction'>;

/**
 * Reserves a refund and returns the link that pays it. While one is under way, returns the same link again.
 * @param amount decimal USDC; default: all of the payment not yet refunded
 * @throws OperatorFault that says what is wrong; nothing was changed then
 */
export async function askRefund(
  reader: ReportSource,
  name: string | undefined,
  asked: AskedAmount,
): Promise<AskedRefund> {
  const payment = await findPayment(reader, name);
  const identity = await reader.identity();
  const repayment = await reserveRefund(reader, payment, { ...asked, way: 'wallet' });
  return { payment, repayment, link: linkOf(repayment, identity) };
}

/** The Solana Pay link of a refund. */
export function linkOf(repayment: Repayment, identity: Identity): string {
  const { receiver, amount } = repayment;
  const mint = usdcMintOf(identity);
  return payLink({ receiver, mint, amount, memo: memoOf(repayment), label: 'Refund' });
}

/**
 * Cancels a refund that is neither paid nor signed. Anyone with its link can still pay it, and such a payment
 * still counts as the refund.
 * @throws OperatorFault if there is none
 */
export async function cancelRefund(reader: ReportSource, name: string | undefined): Promise<Repayment> {
  const payment = await findPayment(reader, name);
  const open = (await reader.repaymentsOf(payment.id)).find(({ decidedAt }) => decidedAt === null);
  if (open && (await reader.cancelRepayment(open.id, 'by the operator'))) return open;
  if (open)
    throw new OperatorFault(
      `Refund ${open.id} of payment ${payment.id} was signed and may land: it can't be cancelled. Nothing was changed.`,
    );
  throw new OperatorFault(`No refund of payment ${payment.id} is waiting for a wallet. Nothing was changed.`);
}

/**
 * Looks once for a final transfer that pays a refund's link: it has the refund's memo and reference, and exactly its amount reached the
 * payer. Rejects if the chain can't be read.
 */
export async function findRefundTransfer(
  chain: RefundChain,
  mint: string,
  repayment: Repayment,
  signal: AbortSignal,
): Promise<LandedRepayment | undefined> {
  const page = { finality: 'finalized', limit: MAX_CANDIDATES } as const;
  for (const { signature, failed } of await chain.signaturesFor(
    referenceOf(memoOf(repayment)),
    page,
    signal,
  )) {
    if (failed) continue;
    const landed = await chain.transaction(signature, 'finalized', signal);
    const source = landed ? sourceOf(landed, mint, repayment) : undefined;
    if (!landed || source === undefined) continue;
    const at = (landed.blockTime ?? 0) * 1_000 || Date.now();
    return { signature, slot: landed.slot, at, source };
  }
  return undefined;
}

/** The owner whose money paid this refund; undefined if the transaction does not pay it. */
function sourceOf(
  { failed, slot, message, tokens }: LandedTransaction,
  mint: string,
  repayment: Repayment,
): string | undefined {
  const fits =
    !failed &&
    slot > repayment.after &&
    tokens !== null &&
    Buffer.from(message).includes(memoOf(repayment)) &&
    changeOf(tokens, mint, repayment.receiver) === repayment.amount;
  if (!fits) return undefined;
  return tokens.find(each => each.mint === mint && changeOf(tokens, mint, each.owner) < 0n)?.owner;
}

/**
 * Waits until the link of a refund is paid, and records it.
 * @throws OperatorFault if it is not paid in time; the link then stays valid
 */
export async function awaitRefund(
  reader: ReportSource,
  { repayment }: AskedRefund,
  rpcUrls: string[],
): Promise<LandedRepayment> {
  const identity = await reader.identity();
  const mint = usdcMintOf(identity);
  const landed = await withChain(
    identity,
    rpcUrls,
    async (chain, signal) => {
      for (;;) {
        const found = await patiently(() => findRefundTransfer(chain, mint, repayment, signal), signal);
        if (found) return found;
        await pause(LOOK_AGAIN_MS, signal).catch(() => {
          throw new OperatorFault(
            `The link of refund ${repayment.id} has not been paid yet. The link stays valid, and a running server keeps looking for a transfer that pays it. Use --cancel to cancel the refund.`,
          );
        });
      }
    },
    WAIT_MS,
  );
  const outcome = await reader.landRepayment(repayment.id, landed);
  if (outcome === 'done') return landed;
  throw new OperatorFault(
    `The transaction ${landed.signature} is another refund (${outcome}). Nothing was changed.`,
  );
}
