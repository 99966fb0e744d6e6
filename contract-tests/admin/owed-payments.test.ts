import { expect } from 'chai';
import { oldestOwed } from '../../src/admin/owed-payments.js';
import type { Listing } from '../../src/ledger/reader.js';
import type { Payment } from '../../src/ledger/store.js';

describe('the oldest owed payments', () => {
  it('are all found, even if one read of the ledger does not return all of them', async () => {
    const rows = Array.from({ length: 1_010 }, (_, n) => ({ id: `p${n}`, createdAt: n }) as Payment);
    const reads: (Listing | undefined)[] = [];
    const list = async (listing?: Listing): Promise<Payment[]> => {
      reads.push(listing);
      const from = (listing?.after?.createdAt ?? -1) + 1;
      return rows.slice(from, from + Math.min(listing?.limit ?? 1_000, 1_000));
    };
    const inProgress = new Set(rows.slice(0, 1_000).map(({ id }) => id));
    expect(await oldestOwed({ list }, inProgress, 5)).to.deep.equal(rows.slice(1_000, 1_005));
    expect(await oldestOwed({ list }, inProgress, 50)).to.deep.equal(rows.slice(1_000));
    expect(reads).to.have.length(4);
  });
});
