import type { PendingPayment } from '../../src/wallet/purse.js';
import { FEE_PAYER, TERMS } from './charge-world.js';
import { craftPayment } from './craft.js';

/** A payment as the wallet stores it. */
export function aPayment(more: Partial<PendingPayment> = {}): PendingPayment {
  return {
    id: 'id',
    call: 'call',
    shop: 'http://127.0.0.1/mcp',
    tool: 'summarize',
    amount: '10000',
    network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    payTo: '11111111111111111111111111111111',
    blockhash: '11111111111111111111111111111111',
    transaction: craftPayment({ feePayer: FEE_PAYER, payTo: TERMS.payTo }).transaction,
    signedAt: 0,
    payment: {},
    ...more,
  };
}
