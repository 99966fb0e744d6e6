import { expect } from 'chai';
import { SQLITE } from '../../src/ledger/engine.js';
import { openFates } from '../../src/ledger/queries/open-fates.js';
import { openOrders } from '../../src/ledger/queries/orders.js';
import * as reports from '../../src/ledger/queries/reports.js';
import { payerTotals, salesIn, salesMatching } from '../../src/ledger/queries/sales.js';
import { raw, type Query } from '../../src/ledger/sql.js';
import type { Sale, SalePlace, SalesWanted } from '../../src/ledger/store.js';
import { onEachEngine, paymentIn } from '../support/ledger-places.js';
import { delivered, payment } from '../support/ledgers.js';
import { eachWithANewLedger, ledger, place, SLOW_MS, time } from '../support/ledger-suite.js';

onEachEngine('sales and what is undecided', make => {
  eachWithANewLedger(make);

  const page = async (limit: number): Promise<Sale[]> => {
    const all: Sale[] = [];
    let after = { settledAt: 0, id: '' };
    for (;;) {
      const next = await ledger.salesAfter(after, limit);
      all.push(...next);
      const last = next.at(-1);
      if (last === undefined) return all;
      after = last;
    }
  };

  it('are read in pages, each once, including those made in one millisecond', async () => {
    const sold: string[] = [];
    for (let n = 0; n < 7; n += 1) {
      const request = payment({ amount: BigInt(10_000 + n), payer: `Payer${n}` });
      await delivered(ledger, request);
      sold.push(request.id);
    }
    await paymentIn(ledger, 'settling');
    await paymentIn(ledger, 'claimed');
    for (const limit of [1, 2, 3, 1_000]) {
      const found = await page(limit);
      expect(found.map(({ id }) => id)).to.have.members(sold);
      expect(found.map(({ settledAt }) => settledAt)).to.deep.equal(
        found.map(({ settledAt }) => settledAt).sort((a, b) => a - b),
      );
    }
    const newest = await ledger.newestSales(3);
    expect(newest.map(({ id }) => id)).to.deep.equal(
      (await page(1_000))
        .map(({ id }) => id)
        .slice(-3)
        .reverse(),
    );
    expect(newest[0]).to.include({ operation: 'summarize', state: 'delivered' });
    expect(newest[0]?.amount).to.be.a('bigint');
  });

  it('are listed newest first, page by page, with filters', async () => {
    const sold: { id: string; operation: string; payer: string }[] = [];
    for (let n = 0; n < 9; n += 1) {
      time.now += n % 3 === 0 ? 1_000 : 0;
      const request = payment({ operation: n % 2 ? 'odd' : 'even', payer: n < 3 ? 'First' : 'Second' });
      await delivered(ledger, request);
      sold.push(request);
    }
    await paymentIn(ledger, 'settling');
    const owed = await paymentIn(ledger, 'owed', { operation: 'odd', payer: 'Third' });
    const all = async (wanted: SalesWanted): Promise<string[]> => {
      const ids: string[] = [];
      for (let before: SalePlace | undefined, isFirst = true; isFirst || before; isFirst = false) {
        const page = await ledger.listSales({ ...wanted, ...(before ? { before } : {}) });
        ids.push(...page.sales.map(({ id }) => id));
        before = page.next;
      }
      return ids;
    };
    const idsOf = (which: typeof sold): string[] => which.map(({ id }) => id);
    const inOrder = (await page(1_000)).map(({ id }) => id).reverse();
    for (const limit of [1, 2, 4, 1_000]) {
      expect(await all({ limit })).to.deep.equal(inOrder);
      expect(await all({ limit, operation: 'odd' })).to.have.members([
        ...idsOf(sold.filter(({ operation }) => operation === 'odd')),
        owed,
      ]);
      expect(await all({ limit, payer: 'First' })).to.have.members(idsOf(sold.slice(0, 3)));
      expect(await all({ limit, state: 'owed' })).to.deep.equal([owed]);
    }
    const times = (await page(1_000)).map(({ settledAt }) => settledAt);
    const [from = 0, to = 0] = [times[3], times[6]];
    expect(await all({ limit: 2, from, to })).to.have.members(
      (await page(1_000)).filter(({ settledAt }) => settledAt >= from && settledAt < to).map(({ id }) => id),
    );
    expect((await ledger.listSales({ limit: 1 })).sales[0]).to.include({ id: inOrder[0], repaid: 0n });
    expect(await ledger.payerTotals('First')).to.include({ sales: 3, repaid: 0n, isWhole: true });
    expect(await ledger.payerTotals('Nobody')).to.deep.include({
      sales: 0,
      amount: 0n,
      first: undefined,
      last: undefined,
    });
  });

  it("are summed by day, operation and state, with those of the operator's own wallets kept separate", async () => {
    for (const payer of ['Mine', 'Theirs', 'Mine', 'Others'])
      await paymentIn(ledger, 'delivered', { operation: 'summarize', amount: 10_000n, payer });
    const sums = async (own?: string[]): Promise<unknown[]> =>
      (await ledger.turnover(own)).map(each => [
        each.operation,
        each.own,
        Number(each.payments),
        each.amount,
      ]);
    expect(await sums()).to.deep.equal([['summarize', false, 4, 40_000n]]);
    expect(await sums(['Mine', 'Nobody'])).to.deep.equal([
      ['summarize', false, 2, 20_000n],
      ['summarize', true, 2, 20_000n],
    ]);
  });

  it('are counted by state, with the age of the oldest; aliases and finished payments are not counted', async function () {
    this.timeout(SLOW_MS);
    expect(await ledger.undecided()).to.deep.equal({
      settling: { payments: 0, amount: 0n, since: undefined },
      owed: { payments: 0, amount: 0n, since: undefined },
    });
    await paymentIn(ledger, 'delivered');
    await paymentIn(ledger, 'released');
    await paymentIn(ledger, 'claimed');
    const oldest = await paymentIn(ledger, 'owed');
    time.now += 5_000;
    await paymentIn(ledger, 'owed');
    await paymentIn(ledger, 'settling');
    const { owed, settling } = await ledger.undecided();
    const { settledAt, amount } = (await ledger.find(oldest))!;
    expect(owed).to.deep.equal({ payments: 2, amount: amount * 2n, since: settledAt });
    expect(settling.payments).to.equal(1);
  });

  it('are found through indexes, like all that the operator page shows, however many there are', async function () {
    if (!place.url.startsWith('file:')) return this.skip();
    const { default: Database } = await import('libsql');
    const db = new Database(place.url.slice('file:'.length), { readonly: true });
    const plan = ({ sql, parameters }: Query): string =>
      JSON.stringify(db.prepare(`explain query plan ${SQLITE.spell(sql)}`).all(parameters));
    const sales = [
      reports.salesAfter({ settled_at: 5, id: 'ab'.repeat(32), limit: 10 }),
      reports.newestSales({ limit: 10 }),
    ].map(plan);
    for (const found of sales)
      expect(found).to.include('USING INDEX payments_settled').and.not.include('TEMP B-TREE');
    const listed = {
      payer: null,
      operation: null,
      leased: raw('0'),
      now: raw('0'),
      created_at: 0,
      id: '00',
      limit: 50,
    };
    const few = [
      reports.undecided(),
      reports.listUndecided({ ...listed, state: 'owed' }, false),
      openOrders({ limit: 50 }),
      openOrders({ limit: 50, operation: 'brandFeedback' }),
    ].map(plan);
    for (const found of few)
      expect(found)
        .to.match(/USING (COVERING )?INDEX (payments_undecided|orders_open)/)
        .and.not.match(/SCAN payments\b(?! USING)/);
    const range = { from: 0, before: { settled_at: 9, id: '' } };
    const search = { ...range, operation: 'x', state: null, searched: 100, limit: 9 };
    for (const [query, index] of [
      [salesIn({ ...range, payer: undefined, limit: 9 }), 'settled'],
      [salesMatching({ ...search, payer: undefined }), 'settled'],
      [salesIn({ ...range, payer: 'x', limit: 9 }), 'of_payer'],
      [payerTotals({ payer: 'x', limit: 9 }), 'of_payer'],
    ] as const)
      expect(plan(query))
        .to.include(`INDEX payments_${index}`)
        .and.not.match(/SCAN payments\b(?! USING)/);
    const fates = plan(openFates({ since: 5, id: '00', settled_before: 9, limit: 50, now: raw('0') }));
    for (const index of ['undecided', 'released', 'unaudited'])
      expect(fates)
        .to.include(`USING INDEX payments_${index}`)
        .and.not.match(/SCAN payments\b/);
    db.close();
  });
});
