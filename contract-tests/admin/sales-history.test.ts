import { expect } from 'chai';
import { Buyers } from '../../src/admin/buyers.js';
import { SalesHistory } from '../../src/admin/sales-history.js';
import type { Sale } from '../../src/ledger/store.js';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 5, 30, 12);

const sale = (settledAt: number, n = 0, operation = 'summarize'): Sale => ({
  id: n.toString(16).padStart(64, '0'),
  operation,
  payer: 'Payer111',
  amount: 10_000n,
  repaid: 0n,
  state: 'delivered',
  settledAt,
});

/** A ledger that counts what is read of it. */
function ledgerOf(all: Sale[]) {
  const read = { rows: 0, calls: 0, most: 0, broken: false, hangs: false };
  return {
    read,
    salesAfter: async ({ settledAt, id }: Pick<Sale, 'settledAt' | 'id'>, limit = 1_000) => {
      if (read.broken) throw new Error('the database is gone');
      if (read.hangs && read.calls > 2) return new Promise<Sale[]>(() => {});
      const found = all
        .filter(each => each.settledAt > settledAt || (each.settledAt === settledAt && each.id > id))
        .sort((a, b) => a.settledAt - b.settledAt || (a.id < b.id ? -1 : 1))
        .slice(0, limit);
      read.rows += found.length;
      read.calls += 1;
      read.most = Math.max(read.most, limit);
      return found;
    },
  };
}

const totalOf = async (history: SalesHistory): Promise<number> =>
  (await history.read()).sales.reduce((sum, { sales }) => sum + sales, 0);

/** That of one operation. */
const buyersOf = async (history: SalesHistory, operation = 'summarize'): Promise<object | undefined> =>
  (await history.read()).buyers.of.find(each => each.operation === operation);

describe('the sales of the last 30 days', () => {
  it('tell the operator’s own wallets apart, which are no buyers', async () => {
    const own = { ...sale(NOW - 20_000, 1), payer: 'Mine1' };
    const all = [own, sale(NOW - 19_000, 2), { ...own, settledAt: NOW, id: sale(NOW, 3).id }];
    const history = new SalesHistory(ledgerOf(all), () => NOW, new Set(['Mine1']));
    const { sales } = await history.read();
    expect(sales.map(({ own: isOwn, sales: count }) => [isOwn, count])).to.deep.equal([
      [true, 2],
      [false, 1],
    ]);
    expect(await buyersOf(history)).to.include({ buyers: 1, returning: 0 });
  });

  it('say how many wallets bought an operation, and how many came back on another day', async () => {
    let now = NOW;
    const of = (payer: string, daysAgo: number, n: number, operation = 'summarize'): Sale => ({
      ...sale(NOW - daysAgo * DAY_MS - n, n, operation),
      payer,
    });
    const all = [
      of('A', 28, 1),
      of('A', 28, 2),
      of('A', 3, 3),
      of('B', 2, 4),
      of('B', 2, 5),
      of('A', 1, 6, 'x'),
    ];
    const history = new SalesHistory(ledgerOf(all), () => now);
    expect(await buyersOf(history)).to.include({ buyers: 2, returning: 1 });
    expect(await buyersOf(history, 'x')).to.include({ buyers: 1, returning: 0 });
    now += 2 * DAY_MS;
    await later(history);
    expect(await buyersOf(history), 'the first day of A is too long ago').to.include({
      buyers: 2,
      returning: 0,
    });
  });

  it('count no more buyers than they may keep, and say so', () => {
    const buyers = new Buyers(2);
    for (const payer of ['A', 'B', 'A', 'C']) buyers.add({ ...sale(NOW), payer }, 100);
    expect(buyers.since(1)).to.deep.equal([{ operation: 'summarize', buyers: 2, returning: 0 }]);
    expect(buyers.isWhole).to.equal(false);
    buyers.forget(101);
    expect([buyers.isWhole, buyers.since(1)[0]?.buyers]).to.deep.equal([true, 0]);
  });

  const later = (history: SalesHistory): Promise<void> =>
    // Readers within a second share the counts.
    new Promise(resolve => setTimeout(resolve, 1_050)).then(() => void history);

  it('are counted by UTC day, in slices, and read once', async function () {
    this.timeout(10_000);
    const all = Array.from({ length: 3_000 }, (_, n) => sale(NOW - 20 * DAY_MS + n * 1_000, n));
    const ledger = ledgerOf(all);
    const history = new SalesHistory(ledger, () => NOW);
    expect(await totalOf(history)).to.equal(3_000);
    expect(ledger.read.most, 'each holds up the server while SQLite reads it').to.be.at.most(100);
    expect(ledger.read.calls).to.be.at.least(30);
    const before = ledger.read.rows;
    all.push(sale(NOW - 1_000, 5_000), sale(NOW - 500, 5_001));
    await later(history);
    expect(await totalOf(history)).to.equal(3_002);
    expect(ledger.read.rows - before).to.be.below(50);
  });

  it('that are counted so far are shown, however long the others take', async () => {
    const all = Array.from({ length: 3_000 }, (_, n) => sale(NOW - 20 * DAY_MS + n * 1_000, n));
    const ledger = ledgerOf(all);
    ledger.read.hangs = true;
    const { complete, sales } = await new SalesHistory(ledger, () => NOW).read();
    expect(complete).to.equal(false);
    expect(sales.reduce((sum, each) => sum + each.sales, 0)).to.equal(300);
  });

  it('leave out what is older, and days that have become too old', async () => {
    let now = NOW;
    const all = [sale(NOW - 31 * DAY_MS, 1), sale(NOW - 29 * DAY_MS, 2), sale(NOW, 3)];
    const history = new SalesHistory(ledgerOf(all), () => now);
    expect(await totalOf(history)).to.equal(2);
    now += DAY_MS;
    await later(history);
    expect(await totalOf(history)).to.equal(1);
  });

  it('count a sale that is committed after a later one', async () => {
    const all = [sale(NOW - 2_000, 1), sale(NOW, 3)];
    const history = new SalesHistory(ledgerOf(all), () => NOW);
    expect(await totalOf(history)).to.equal(2);
    all.push(sale(NOW - 1_000, 2));
    await later(history);
    expect(await totalOf(history)).to.equal(3);
  });

  it('count nothing twice when the ledger fails and comes back', async () => {
    const all = Array.from({ length: 1_200 }, (_, n) => sale(NOW - DAY_MS + n * 1_000, n));
    const ledger = ledgerOf(all);
    const history = new SalesHistory(ledger, () => NOW);
    expect(await totalOf(history)).to.equal(1_200);
    await later(history);
    ledger.read.broken = true;
    expect(await history.read().catch((error: unknown) => (error as Error).message)).to.equal(
      'the database is gone',
    );
    ledger.read.broken = false;
    expect(await totalOf(history)).to.equal(1_200);
  });
});
