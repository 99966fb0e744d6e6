import { hash } from 'node:crypto';
import { base58 } from '@scure/base';
import { toDecimal } from '../../price/amount.js';

/** A transfer that a wallet is to make. `receiver` is a wallet's address; the paying wallet finds its token account. Amount in atomic units. */
export type AskedTransfer = { receiver: string; mint: string; amount: bigint; memo: string; label: string };

/** A Solana Pay transfer request: a link that wallets open or read as a QR code. */
export function payLink({ receiver, mint, amount, memo, label }: AskedTransfer): string {
  const query = new URLSearchParams({
    amount: toDecimal(amount),
    'spl-token': mint,
    reference: referenceOf(memo),
    label,
    memo,
  });
  // Solana Pay requires %20 for spaces.
  return `solana:${receiver}?${query.toString().replaceAll('+', '%20')}`;
}

/** An address that only the transfer with this memo names, so that the transfer can be found in the address's history. Its key is unknown. */
export function referenceOf(memo: string): string {
  return base58.encode(Buffer.from(hash('sha256', `coinslot ${memo}`), 'hex'));
}
