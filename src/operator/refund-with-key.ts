import type { Repayment } from '../ledger/store.js';
import type { Log } from '../net/log.js';
import { ChainHeights } from '../rails/solana/chain-heights.js';
import { createChain, type SolanaChain } from '../rails/solana/rpc.js';
import { usdcMintOf } from './check-network.js';
import { findPayment, type ReportSource } from './find-payment.js';
import { mayBeRepaid, notPaid, withChain } from './record-refund.js';
import type { RefundWallet } from './refund-transaction.js';
import { reserveRefund, type AskedAmount } from './reserve-refund.js';
import { lookForGivenUp, sendRefund } from './send-refund.js';

const CALL_MS = 20_000;
/** A transaction that does not land is proven expired within two or three minutes. */
const DEADLINE_MS = 300_000;

/**
 * Refunds a payment or a part of it with a key, and records it once it is final. Continues a refund that was started this way.
 * @throws OperatorFault that says what was done and what to do next; UpstreamFailure if the chain can't be read: nothing was sent then
 */
export async function refundWithKey(
  reader: ReportSource,
  name: string | undefined,
  asked: AskedAmount & { wallet: RefundWallet; rpcUrls: string[] },
  log: Log,
): Promise<{ repayment: Repayment; transaction: string }> {
  const payment = await findPayment(reader, name);
  if (!mayBeRepaid(payment)) throw notPaid(payment);
  const identity = await reader.identity();
  const mint = usdcMintOf(identity);
  const { wallet, rpcUrls } = asked;
  const heights = new ChainHeights(reader);
  await heights.refresh();
  const servers = serversAt(rpcUrls, identity.network);
  const work = async (chain: SolanaChain, signal: AbortSignal) => {
    const sending = { ledger: reader, chain, servers, mint, heights, log };
    await lookForGivenUp(sending, payment, signal);
    const { amount, reason } = asked;
    const present = await findPayment(reader, payment.id);
    const repayment = await reserveRefund(reader, present, { amount, reason, way: 'key' });
    return { repayment, transaction: await sendRefund(sending, present, repayment, wallet, signal) };
  };
  try {
    return await withChain(identity, rpcUrls, work, DEADLINE_MS);
  } finally {
    await Promise.all(servers.map(each => each.close()));
  }
}

/** The RPC servers as separate clients. A server on another network counts as not answering. */
export function serversAt(urls: readonly string[], network: string): SolanaChain[] {
  return urls.map(url => createChain({ urls: [url], network, timeoutMs: CALL_MS }));
}
