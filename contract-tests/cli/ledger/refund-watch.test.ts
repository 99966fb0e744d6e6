import { expect } from 'chai';
import type { Repayment } from '../../../src/ledger/store.js';
import { RefundWatch } from '../../../src/operator/refund-watch.js';
import { referenceOf } from '../../../src/rails/solana/pay-link.js';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

describe('The watch for refunds', () => {
  it('looks for the others when one of them cannot be looked for', async () => {
    const open = ['one', 'two'].map(id => ({ id, way: 'wallet' }) as Repayment);
    const looked: string[] = [];
    const watch = new RefundWatch({
      ledger: {
        openRepayments: () => Promise.resolve(open),
        landRepayment: () => Promise.reject(new Error('not expected')),
      },
      chain: {
        signaturesFor: address => {
          looked.push(address);
          return looked.length === 1 ? Promise.reject(new Error('too many transfers')) : Promise.resolve([]);
        },
        transaction: () => Promise.resolve(null),
      },
      mint: '',
      log: SILENT,
    });
    await watch.look();
    await watch.stop();
    expect(looked).to.deep.equal(open.map(({ id }) => referenceOf(`refund:${id}`)));
  });
});
