import { expect } from 'chai';
import { onEachEngine } from '../support/ledger-places.js';
import { eachWithANewLedger, ledger, open, reopen, time } from '../support/ledger-suite.js';

const MINUTE = 60_000;

onEachEngine('offered prices', (make, engine) => {
  eachWithANewLedger(make);

  it('are known to every server of the ledger for five minutes', async () => {
    await ledger.offerPrices({ summarize: '10000', other_1: '5' });
    time.now += 3 * MINUTE;
    const other = engine === 'PostgreSQL' ? await open() : ledger;
    await other.offerPrices({ summarize: '20000', other_1: '5' });
    for (const server of new Set([ledger, other])) {
      expect(await server.offeredPrices('summarize')).to.deep.equal([20_000n, 10_000n]);
      expect(await server.offeredPrices('other_1')).to.deep.equal([5n]);
      expect(await server.offeredPrices('otherX1')).to.deep.equal([]);
    }
    time.now += 2 * MINUTE;
    expect(await ledger.offeredPrices('summarize'), 'five minutes').to.deep.equal([20_000n, 10_000n]);
    time.now += 1;
    expect(await ledger.offeredPrices('summarize')).to.deep.equal([20_000n]);
  });

  it('are still known after a restart, stay while they are offered, and are then forgotten', async () => {
    await ledger.offerPrices({ summarize: '10000' });
    await reopen();
    time.now += 4 * MINUTE;
    await ledger.offerPrices({ summarize: '10000' });
    time.now += 4 * MINUTE;
    expect(await ledger.offeredPrices('summarize')).to.deep.equal([10_000n]);
    time.now += 10 * MINUTE;
    await ledger.offerPrices({ summarize: '30000' });
    time.now -= 10 * MINUTE;
    expect(await ledger.offeredPrices('summarize')).to.deep.equal([30_000n]);
  });

  it('are kept for the eight most recent changes only', async () => {
    for (let n = 1; n <= 12; n += 1) {
      time.now += 1_000;
      await ledger.offerPrices({ summarize: String(n) });
    }
    expect((await ledger.offeredPrices('summarize')).map(Number)).to.deep.equal([12, 11, 10, 9, 8, 7, 6, 5]);
  });
});
