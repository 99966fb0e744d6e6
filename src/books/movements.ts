import { setImmediate as turn } from 'node:timers/promises';
import type { Identity } from '../ledger/reader.js';
import type { LedgerReports, MovedRefund, MovedSale, Within } from '../ledger/store.js';
import { signatureOf } from '../facilitators/send-until-landed.js';
import { usdcMintOf } from '../operator/check-network.js';
import { receiverOf, receiversOf, type Receiver } from '../operator/receivers.js';
import { SIGNATURES } from '../rails/solana/fee-limits.js';
import { feePaid, keptEvidence } from '../rails/solana/kept-evidence.js';
import { SOL, USDC, type Movement } from './movement.js';

/** The parts of a ledger that the books read. */
export type BookSource = Pick<
  LedgerReports,
  'identity' | 'movedSales' | 'movedRefunds' | 'formerRefunds' | 'soldBefore' | 'refundedBetween'
>;

/** The recipient of transaction fees. */
const VALIDATORS = 'Solana validators';

/**
 * All movements, oldest first, with pauses for other work: sales, refunds, and the network fees of the transactions that this shop signed as fee
 * payer. What other facilitators pay or charge is known only to them.
 */
export async function* movements(reader: BookSource, within: Within): AsyncGenerator<Movement> {
  const identity = await reader.identity();
  // With several receivers, the transaction shows which one a sale was paid to.
  const receivers = identity.formerReceivers.length === 0 ? [] : receiversOf(identity, usdcMintOf(identity));
  const payTo = identity.payTo ?? '';
  const refunds = await refundsOf(reader, within);
  let next = 0;
  for await (const slice of reader.movedSales(within)) {
    for (const sale of slice) {
      while (next < refunds.length && (refunds[next] as MovedRefund).at < sale.at)
        yield* ofRefund(refunds[next++] as MovedRefund, payTo);
      yield* ofSale(sale, receivers, payTo);
    }
    await turn();
  }
  for (; next < refunds.length; next += 1) yield* ofRefund(refunds[next] as MovedRefund, payTo);
}

/** All refunds, without a time limit: there are few. */
async function refundsOf(reader: BookSource, within: Within): Promise<MovedRefund[]> {
  const refunds = await reader.formerRefunds(within);
  for await (const slice of reader.movedRefunds(within)) refunds.push(...slice);
  return refunds.sort((a, b) => a.at - b.at);
}

/** The addresses that sales of a ledger were paid to. */
export function payToAddresses({ payTo, formerReceivers }: Identity): string[] {
  return [...new Set([...(payTo === undefined ? [] : [payTo]), ...formerReceivers.map(each => each.payTo)])];
}

function ofSale(sale: MovedSale, receivers: readonly Receiver[], payTo: string): Movement[] {
  const { at, payment, operation, amount, settlement: transaction, payer, evidence } = sale;
  const of = { at, payment, operation, transaction };
  const account = receivers.length > 1 ? (receiverOf({ evidence }, receivers)?.payTo ?? payTo) : payTo;
  return [
    { ...of, kind: 'sale', amount, asset: USDC, account, counterparty: payer },
    ...feeMovement(of, evidence, SIGNATURES),
  ];
}

function ofRefund(refund: MovedRefund, payTo: string): Movement[] {
  const { at, payment, operation, amount, signature: transaction, payer, source, evidence } = refund;
  const of = { at, payment, operation, transaction };
  // Earlier versions did not record the sender: they only accepted refunds sent by the receiver.
  const account = source ?? payTo;
  const isOwn =
    evidence !== null && (keptEvidence(evidence) !== undefined || signatureOf(evidence) === transaction);
  return [
    { ...of, kind: 'refund', amount: -amount, asset: USDC, account, counterparty: payer },
    ...(isOwn ? feeMovement(of, evidence, 1) : []),
  ];
}

/** @param signers the minimum number of signatures that the transaction has if this shop pays its fee; if the buyer pays it, only the buyer signs */
function feeMovement(
  of: Pick<Movement, 'at' | 'payment' | 'operation' | 'transaction'>,
  evidence: string,
  signers: number,
): Movement[] {
  const paid = feePaid(evidence, signers);
  if (!paid) return [];
  const { feePayer: account, fee } = paid;
  return [{ ...of, kind: 'network fee', amount: -fee, asset: SOL, account, counterparty: VALIDATORS }];
}
