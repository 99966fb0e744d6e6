import { createHash } from 'node:crypto';
import type { Payment } from '../../src/sale/check-payment.js';
import { decodePayment } from '../../src/methods/x402/wire.js';
import { DEVNET, DEVNET_USDC, DEVNET_V1 } from './craft.js';
import { sellingOf, x402In } from './selling.js';
import type { CheckedTransaction } from '../../src/rails/solana/transaction.js';
import { toAddress } from '../../src/rails/solana/address.js';
import { readTransaction } from '../../src/rails/solana/message.js';
import { MEMO_PROGRAM } from '../../src/rails/solana/networks.js';

const SELLING = sellingOf({
  network: DEVNET,
  v1Network: DEVNET_V1,
  asset: DEVNET_USDC,
  payTo: '',
  publicUrl: '',
});

/** A well-formed payment in the form that the check passes to the charge. The check itself is skipped, so that tests need not wait for it. */
export function paymentOf(header: string): Payment & { checked: CheckedTransaction } {
  const decoded = decodePayment({ headers: { 'payment-signature': header } });
  if (decoded.kind !== 'payment') throw new Error(`decoded: ${JSON.stringify(decoded)}`);
  const { version, identifier = null, transaction } = decoded.payment;
  const bytes = Buffer.from(transaction, 'base64');
  const { message, keys, blockhash, instructions } = readTransaction(bytes);
  const addressOf = (key = ''): string => toAddress(Buffer.from(key, 'latin1'));
  bytes.fill(0, 1, 65);
  return {
    method: x402In(SELLING, version),
    identifier,
    checked: {
      id: createHash('sha256').update(message).digest('hex'),
      payer: addressOf(keys[1]),
      feePayer: addressOf(keys[0]),
      evidence: bytes.toString('base64'),
      blockhash,
      hasNonce: instructions.some(
        ({ program, data }) => addressOf(keys[program]) === MEMO_PROGRAM && data.length > 0,
      ),
      answers: false,
      selfPaid: false,
    },
  };
}
