import { expect } from 'chai';
import {
  EXPECTED,
  FEE_PAYER,
  GOOD,
  PAYER,
  PAY_TO,
  checker,
  craft,
  reasonOf,
} from '../../support/bent-transactions.js';
import { DEVNET_USDC } from '../../support/craft.js';
import { wrongTransactions } from '../../support/payment-table.js';

describe('transaction: one that does not pay our price is refused with the reason', () => {
  for (const [fault, reason, make] of wrongTransactions({
    ...GOOD,
    payer: PAYER,
    payTo: PAY_TO,
    feePayer: FEE_PAYER,
    asset: DEVNET_USDC,
  })) {
    it(fault, async () => expect(await reasonOf(make())).to.match(reason));
  }

  it('refuses a payment for one operation when it is used for a more expensive one', async () => {
    const result = await checker.check(craft(), { ...EXPECTED, amount: 500_000n });
    expect(result)
      .to.have.property('error')
      .match(/pays 0.01 USDC, must be exactly 0.50 USDC/);
  });
});
