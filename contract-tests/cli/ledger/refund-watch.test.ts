import { expect } from 'chai';
import type { Repayment } from '../../../src/ledger/store.js';
import { RefundWatch } from '../../../src/operator/refund-watch.js';
import { referenceOf } from '../../../src/rails/solana/pay-link.js';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

const notExpected = (): Promise<never> => Promise.reject(new Error('not expected'));
const unexpected = {
  landRepayment: notExpected,
  failRepayment: notExpected,
  cancelRepayment: notExpected,
  getMeta: notExpected,
  setMeta: notExpected,
};

describe('The watch for refunds', () => {
  it('checks the other refunds when the check of one of them fails', async () => {
    const open = ['one', 'two'].map(id => ({ id, way: 'wallet' }) as Repayment);
    const looked: string[] = [];
    const watch = new RefundWatch({
      ledger: {
        ...unexpected,
        openRepayments: () => Promise.resolve(open),
      },
      chain: {
        signaturesFor: address => {
          looked.push(address);
          return looked.length === 1 ? Promise.reject(new Error('too many transfers')) : Promise.resolve([]);
        },
        transaction: () => Promise.resolve(null),
        send: notExpected,
      },
      servers: [],
      mint: '',
      log: SILENT,
    });
    await watch.look();
    await watch.stop();
    expect(looked).to.deep.equal(open.map(({ id }) => referenceOf(`refund:${id}`)));
  });
});
