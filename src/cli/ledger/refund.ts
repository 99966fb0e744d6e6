import { askRefund, awaitRefund, cancelRefund } from '../../operator/ask-refund.js';
import type { ReportSource } from '../../operator/find-payment.js';
import { OperatorFault } from '../../operator/operator-fault.js';
import { recordRefund } from '../../operator/record-refund.js';
import { LEAST_KEPT } from '../../operator/refund-transaction.js';
import { refundWithKey } from '../../operator/refund-with-key.js';
import { toDecimal } from '../../price/amount.js';
import { resolve } from 'node:path';
import type { FeePayerConfig } from '../../config/facilitator-settings.js';
import { KeyPairFault, readKeyPairFile, type KeyPair } from '../../rails/solana/key-pair.js';
import { messageOf } from '../../ledger/fault.js';
import { qrLines } from '../../pages/qr-code.js';
import { writeErr } from '../terminal.js';
import type { Report } from './print.js';

type Options = {
  tx?: string | undefined;
  amount?: string | undefined;
  reason?: string | undefined;
  wait?: boolean | undefined;
  cancel?: boolean | undefined;
  keypair?: string | undefined;
};

/** What a refund needs from the environment. `folder`: the base of relative paths. */
type Around = { rpcUrls: () => string[]; feePayer: () => FeePayerConfig; folder: string };

/**
 * Records a refund that was sent, sends one with a key, cancels one that has not been sent, or makes a link with which a
 * wallet can send one.
 */
export async function refund(
  reader: ReportSource,
  name: string | undefined,
  options: Options,
  around: Around,
): Promise<Report> {
  const { tx, amount, reason, wait = false, cancel = false, keypair } = options;
  const { rpcUrls } = around;
  if ([tx !== undefined, keypair !== undefined, cancel, wait].filter(Boolean).length > 1)
    throw new OperatorFault('Use one of --keypair, --tx, --wait and --cancel. Nothing was changed.');
  if (tx !== undefined) return recorded(reader, name, tx, rpcUrls);
  if (keypair !== undefined) return sent(reader, name, { amount, reason, keypair }, around);
  if (cancel) return cancelled(reader, name);
  const asked = await askRefund(reader, name, { amount, reason });
  const { payment, repayment, link } = asked;
  const usdc = toDecimal(repayment.amount);
  const data = { id: payment.id, refund: repayment.id, usdc, receiver: repayment.receiver, link };
  const lines = [
    `Refund ${repayment.id}: ${usdc} USDC to ${repayment.receiver} for payment ${payment.id}.`,
    'Open this link with the wallet that is to pay. The refund is recorded once its transaction is final on the chain.',
    link,
    ...qrLines(link),
  ];
  if (!wait) return { data, lines };
  writeErr(`${lines.join('\n')}\n`);
  const { signature: transaction } = await awaitRefund(reader, asked, rpcUrls());
  return {
    data: { ...data, transaction },
    lines: [`Refunded ${usdc} USDC with transaction ${transaction}.`],
  };
}

async function sent(
  reader: ReportSource,
  name: string | undefined,
  { keypair, ...asked }: { amount: string | undefined; reason: string | undefined; keypair: string },
  { rpcUrls, feePayer: configured, folder }: Around,
): Promise<Report> {
  const keyPair = keyPairIn(resolve(folder, keypair));
  const { keyPair: feePayer, limits } = configured();
  const wallet = { keyPair, feePayer: feePayer ?? keyPair, floor: feePayer ? limits.floor : LEAST_KEPT };
  const log = { info: () => {}, warn: tellError, error: tellError };
  const how = { ...asked, wallet, rpcUrls: rpcUrls() };
  const { repayment, transaction } = await refundWithKey(reader, name, how, log);
  const usdc = toDecimal(repayment.amount);
  const { id: refund, payment: id, receiver } = repayment;
  return {
    data: { id, refund, usdc, receiver, transaction },
    lines: [`Refunded ${usdc} USDC to ${receiver} for payment ${id} with transaction ${transaction}.`],
  };
}

function keyPairIn(file: string): KeyPair {
  try {
    return readKeyPairFile(file);
  } catch (error) {
    if (!(error instanceof KeyPairFault)) throw error;
    throw new OperatorFault(`--keypair ${file} is not usable: ${error.message}. Nothing was changed.`);
  }
}

function tellError(fields: { error?: unknown }, message: string): void {
  writeErr(`${message}${fields.error === undefined ? '' : `: ${messageOf(fields.error)}`}\n`);
}

async function recorded(
  reader: ReportSource,
  name: string | undefined,
  tx: string,
  rpcUrls: () => string[],
): Promise<Report> {
  const { id, amount, payer, transaction, refunded } = await recordRefund(reader, name, tx, rpcUrls);
  const [usdc, back] = [toDecimal(amount), toDecimal(refunded)];
  return {
    data: { id, state: 'refunded', usdc, payer, transaction, refunded: back },
    lines: [`Recorded: ${back} USDC refunded to ${payer} for payment ${id}.`],
  };
}

async function cancelled(reader: ReportSource, name: string | undefined): Promise<Report> {
  const { id, payment, amount } = await cancelRefund(reader, name);
  return {
    data: { id: payment, refund: id, state: 'cancelled' },
    lines: [
      `Cancelled refund ${id} of ${toDecimal(amount)} USDC. If its link is paid later, record it with --tx.`,
    ],
  };
}
