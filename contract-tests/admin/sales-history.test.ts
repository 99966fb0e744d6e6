import { expect } from 'chai';
import { Buyers } from '../../src/admin/buyers.js';
import { Payers } from '../../src/admin/payers.js';
import { periodNamed } from '../../src/admin/periods.js';
import { SalesHistory } from '../../src/admin/sales-history.js';
import type { Sale, SalesWanted, SoldPayment } from '../../src/ledger/store.js';
import { until } from '../support/faults.js';
import { PAYER } from '../support/ledger-places.js';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 5, 30, 12);
const MONTH = periodNamed('30d');

const sale = (settledAt: number, n = 0, operation = 'summarize'): Sale => ({
  id: n.toString(16).padStart(64, '0'),
  operation,
  payer: PAYER,
  amount: 10_000n,
  repaid: 0n,
  state: 'delivered',
  settledAt,
});

/** A ledger that counts its reads. */
function ledgerOf(all: Sale[]) {
  const read = { rows: 0, calls: 0, most: 0, broken: false, hangs: false };
  const answer = async (found: Sale[], limit: number): Promise<SoldPayment[]> => {
    if (read.broken) throw new Error('the database is gone');
    if (read.hangs && read.calls > 2) return new Promise(() => {});
    read.rows += found.length;
    read.calls += 1;
    read.most = Math.max(read.most, limit);
    return found.map(each => ({ ...each, settlement: null }));
  };
  const inOrder = (a: Sale, b: Sale): number => a.settledAt - b.settledAt || (a.id < b.id ? -1 : 1);
  return {
    read,
    salesAfter: async ({ settledAt, id }: Pick<Sale, 'settledAt' | 'id'>, limit = 1_000) => {
      const isLater = (each: Sale): boolean =>
        each.settledAt > settledAt || (each.settledAt === settledAt && each.id > id);
      return answer(all.filter(isLater).sort(inOrder).slice(0, limit), limit);
    },
    listSales: async ({ from = 0, before, limit = 1_000 }: SalesWanted) => {
      const { settledAt, id } = before ?? { settledAt: Infinity, id: '' };
      const isEarlier = (each: Sale): boolean =>
        each.settledAt >= from &&
        (each.settledAt < settledAt || (each.settledAt === settledAt && each.id < id));
      const sales = await answer(all.filter(isEarlier).sort(inOrder).reverse().slice(0, limit), limit);
      const last = sales.at(-1);
      return {
        sales,
        next: last && sales.length === limit ? { settledAt: last.settledAt, id: last.id } : undefined,
      };
    },
  };
}

const totalOf = async (history: SalesHistory): Promise<number> =>
  (await history.read(MONTH)).sales.reduce((sum, { sales }) => sum + sales, 0);

/** The history of one operation. */
const buyersOf = async (history: SalesHistory, operation = 'summarize'): Promise<object | undefined> =>
  (await history.read(MONTH)).buyers.of.find(each => each.operation === operation);

describe('the sales of the last 30 days', () => {
  it("show the operator's own wallets separately, because they are not buyers", async () => {
    const own = { ...sale(NOW - 20_000, 1), payer: 'Mine1' };
    const all = [own, sale(NOW - 19_000, 2), { ...own, settledAt: NOW, id: sale(NOW, 3).id }];
    const history = new SalesHistory(ledgerOf(all), () => NOW, new Set(['Mine1']));
    const { sales } = await history.read(MONTH);
    expect(sales.map(({ own: isOwn, sales: count }) => [isOwn, count])).to.deep.equal([
      [true, 2],
      [false, 1],
    ]);
    expect(await buyersOf(history)).to.include({ buyers: 1, returning: 0 });
  });

  it('count the wallets that bought an operation, and those that came back on another day', async () => {
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

  it('stop counting buyers at a limit, and mark the count as incomplete', () => {
    const buyers = new Buyers(2);
    for (const payer of ['A', 'B', 'A', 'C']) buyers.add({ ...sale(NOW), payer }, 100);
    expect(buyers.since(1)).to.deep.equal([{ operation: 'summarize', buyers: 2, returning: 0 }]);
    expect(buyers.isWhole).to.equal(false);
    buyers.forget(101);
    expect([buyers.isWhole, buyers.since(1)[0]?.buyers]).to.deep.equal([true, 0]);
  });

  const later = (history: SalesHistory): Promise<void> =>
    // Readers within one second share the result.
    new Promise(resolve => setTimeout(resolve, 1_050)).then(() => void history);

  it('are counted by UTC day, in slices, and each slice is read once', async function () {
    this.timeout(10_000);
    const all = Array.from({ length: 3_000 }, (_, n) => sale(NOW - 20 * DAY_MS + n * 1_000, n));
    const ledger = ledgerOf(all);
    const history = new SalesHistory(ledger, () => NOW);
    await until('all are counted', async () => (await totalOf(history)) === 3_000);
    expect(ledger.read.most, 'each slice blocks the server while SQLite reads it').to.be.at.most(100);
    expect(ledger.read.calls).to.be.at.least(30);
    const before = ledger.read.rows;
    all.push(sale(NOW - 1_000, 5_000), sale(NOW - 500, 5_001));
    await later(history);
    expect(await totalOf(history)).to.equal(3_002);
    expect(ledger.read.rows - before).to.be.below(50);
  });

  it('are shown as far as they have been counted, however long the rest takes', async () => {
    const all = Array.from({ length: 3_000 }, (_, n) => sale(NOW - 20 * DAY_MS + n * 1_000, n));
    const ledger = ledgerOf(all);
    ledger.read.hangs = true;
    const { countedFrom, sales } = await new SalesHistory(ledger, () => NOW).read(MONTH);
    // The first call reads only new sales.
    expect(sales.reduce((sum, each) => sum + each.sales, 0)).to.equal(200);
    expect(countedFrom, 'the newest are counted first').to.equal(all.at(-200)?.settledAt);
  });

  it('leave out older sales, and drop days that have become too old', async () => {
    let now = NOW;
    const all = [sale(NOW - 31 * DAY_MS, 1), sale(NOW - 29 * DAY_MS, 2), sale(NOW, 3)];
    const history = new SalesHistory(ledgerOf(all), () => now);
    expect(await totalOf(history)).to.equal(2);
    now += DAY_MS;
    await later(history);
    expect(await totalOf(history)).to.equal(1);
  });

  it('include a sale that is committed after a later one', async () => {
    const all = [sale(NOW - 2_000, 1), sale(NOW, 3)];
    const history = new SalesHistory(ledgerOf(all), () => NOW);
    expect(await totalOf(history)).to.equal(2);
    all.push(sale(NOW - 1_000, 2));
    await later(history);
    expect(await totalOf(history)).to.equal(3);
  });

  it('count nothing twice when the ledger fails and recovers', async () => {
    const all = Array.from({ length: 1_200 }, (_, n) => sale(NOW - DAY_MS + n * 1_000, n));
    const ledger = ledgerOf(all);
    const history = new SalesHistory(ledger, () => NOW);
    expect(await totalOf(history)).to.equal(1_200);
    await later(history);
    ledger.read.broken = true;
    expect(await history.read(MONTH).catch((error: unknown) => (error as Error).message)).to.equal(
      'the database is gone',
    );
    ledger.read.broken = false;
    expect(await totalOf(history)).to.equal(1_200);
  });

  it('can also show a day by hour, or 90 days', async () => {
    const all = [
      sale(NOW - 80 * DAY_MS, 1),
      sale(NOW - 23 * 3_600_000, 2),
      sale(NOW - 25 * 3_600_000, 3),
      sale(NOW, 4),
    ];
    const history = new SalesHistory(ledgerOf(all), () => NOW);
    const countOf = async (name: string): Promise<number> =>
      (await history.read(periodNamed(name))).sales.reduce((sum, { sales }) => sum + sales, 0);
    expect([
      await countOf('24h'),
      await countOf('7d'),
      await countOf('30d'),
      await countOf('90d'),
    ]).to.deep.equal([2, 3, 3, 4]);
    const { first, last, sales } = await history.read(periodNamed('24h'));
    expect([last - first, sales.map(({ unit }) => unit)]).to.deep.equal([23, [first, last]]);
  });

  it('list the buyers, best first, mark returning ones, keep the operator separate, and list nobody twice while sales settle', async () => {
    const of = (payer: string, ago: number, n: number): Sale => ({ ...sale(NOW - ago, n), payer });
    const all = [
      of('A', 3 * DAY_MS, 1),
      of('A', 5_000, 2),
      of('A', 4_000, 3),
      of('B', 20_000, 4),
      of('Mine', 3_000, 5),
    ];
    const history = new SalesHistory(ledgerOf(all), () => NOW, new Set(['Mine']));
    for (let look = 0; look < 2; look += 1) {
      const { who } = await history.read(MONTH);
      expect(who).to.deep.include({ payers: 2, returning: 1, isWhole: true });
      expect(who.own).to.deep.equal({ wallets: 1, sales: 1, amount: 10_000n });
      expect(who.best.map(({ payer, sales, units }) => [payer, sales, units])).to.deep.equal([
        ['A', 3, 2],
        ['B', 1, 1],
      ]);
      await later(history);
    }
  });
});

describe('the purchases of payers', () => {
  const of = (payer: string, day: number): [Sale, number] => [{ ...sale(day * DAY_MS), payer }, day];
  const names = (payers: Payers, first: number): string[] =>
    payers
      .since(first, [])
      .best.map(({ payer }) => payer)
      .sort();

  it('lose their oldest days when there are more than can be kept, and say which periods are incomplete', () => {
    const payers = new Payers(new Set(), 3);
    for (const each of [of('A', 10), of('B', 11), of('C', 11), of('D', 12)]) payers.add(...each);
    expect([names(payers, 1), payers.since(10, []).isWhole, payers.since(11, []).isWhole]).to.deep.equal([
      ['B', 'C', 'D'],
      false,
      true,
    ]);
    payers.add(...of('E', 9));
    expect(names(payers, 1), 'older ones do not come back').to.deep.equal(['B', 'C', 'D']);
  });

  it('can be added in any order, with each day counted once', () => {
    const payers = new Payers(new Set());
    for (const each of [of('A', 12), of('A', 10), of('A', 11), of('A', 10)]) payers.add(...each);
    expect(payers.since(10, []).best[0]).to.include({ sales: 4, units: 3, amount: 40_000n });
    expect(payers.since(11, [{ sale: of('A', 12)[0], unit: 12 }]).best[0]).to.include({ sales: 3, units: 2 });
    payers.forget(12);
    expect(payers.since(1, []).best[0]).to.include({ sales: 1, units: 1 });
  });
});
