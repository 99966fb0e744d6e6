import { expect } from 'chai';
import { execute } from '../../src/ledger/engine.js';
import { idBytes } from '../../src/ledger/ids.js';
import { lockOpenOrder, reportDone, type StoreDefinition } from '../../src/ledger/operation-store.js';
import { sql } from '../../src/ledger/sql.js';
import { openLedger, openLedgerReader, type Ledger } from '../../src/ledger/store.js';
import { onEachEngine, paymentIn, type LedgerPlace, forServer } from '../support/ledger-places.js';
import { faultOf, OWNER } from '../support/ledgers.js';

const CUPS: StoreDefinition = {
  name: 'tea',
  tables: { tea_cups: ['payment', 'cup'] },
  migrations: [
    [
      'create table tea_cups (payment {bytes} not null, cup bigint not null, leaf {bytes}, primary key (payment, cup))',
      { ifColumn: 'orders.wanted', sql: 'create table tea_seen (word text primary key)' },
      { ifColumn: 'orders.never', sql: 'create table tea_seen (word text primary key)' },
      { ifColumn: 'nowhere.never', sql: 'this is no SQL' },
    ],
  ],
};
/** The next version of the operation. */
const SWEETER: StoreDefinition = {
  ...CUPS,
  migrations: [...CUPS.migrations, ['alter table tea_cups add column sugar bigint not null default 0']],
};

onEachEngine('The store of an operation', (make, engine) => {
  let place: LedgerPlace;
  let ledger: Ledger;

  beforeEach(async () => {
    place = await make();
    ledger = await openLedger({ ...forServer(place.url), ...OWNER });
  });
  afterEach(async () => {
    await ledger.close();
    await place.remove();
  });

  const asked = async (): Promise<string> => {
    const payment = await paymentIn(ledger, 'owed');
    await ledger.openOrder({ payment, request: '{}', wanted: 3, deadline: Date.now() + 60_000 });
    return payment;
  };

  it('is created once, however many servers open it, and is brought to the next version', async () => {
    await Promise.all([CUPS, CUPS, CUPS].map(definition => ledger.openStore(definition)));
    const payment = await asked();
    const store = await ledger.openStore(SWEETER);
    await store.write(() =>
      execute(
        sql`insert into tea_cups (payment, cup, leaf) values (${idBytes(payment)}, 1, ${Buffer.from('ff', 'hex')})`,
      ),
    );
    const reader = await openLedgerReader({ url: place.url });
    expect(await reader.storedRows(payment)).to.deep.equal({ tea_cups: [{ cup: 1, leaf: 'ff', sugar: 0 }] });
    expect(await reader.storedRows('0'.repeat(64))).to.deep.equal({});
    await reader.close();
  });

  it('of a newer version is refused, and nothing is changed', async () => {
    await ledger.openStore(SWEETER);
    const fault = await faultOf(ledger.openStore(CUPS));
    expect(fault).to.include({ code: 'open' });
    expect(fault.message).to.match(/tables of tea have version 2.*up to 1\. Run the newer program/);
    await ledger.openStore(SWEETER);
  });

  if (engine === 'PostgreSQL')
    it('stays as it is while another server runs, which may be of an earlier version: startup says to stop it', async () => {
      const older = await openLedger({ ...forServer(place.url), ...OWNER });
      try {
        await older.openStore(CUPS);
        const fault = await faultOf(ledger.openStore(SWEETER));
        expect(fault).to.include({ code: 'open' });
        expect(fault.message).to.match(
          /tables of tea.*1 other running server.*Stop them.*Nothing was changed/,
        );
        await older.openStore(CUPS);
      } finally {
        await older.close();
      }
      await ledger.openStore(SWEETER);
    });

  if (engine === 'PostgreSQL')
    it('can be opened in its next version by several servers that start together', async () => {
      await ledger.openStore(CUPS);
      await ledger.close();
      for (let round = 0; round < 3; round += 1) {
        const started = await Promise.all(
          [1, 2, 3, 4].map(() => openLedger({ ...forServer(place.url), ...OWNER })),
        );
        try {
          await Promise.all(started.map(each => each.openStore(SWEETER)));
        } finally {
          await Promise.all(started.map(each => each.close()));
        }
      }
      ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    });

  if (engine === 'PostgreSQL')
    it('changes while other servers run, if all of them can do without the change', async () => {
      const older = await openLedger({ ...forServer(place.url), ...OWNER });
      try {
        await older.openStore(CUPS);
        await ledger.openStore({ ...SWEETER, oldestBeside: 1 });
        const store = await older.openStore(CUPS).catch((error: Error) => error.message);
        expect(store, 'a start of the older one').to.match(/version 2.*up to 1/);
      } finally {
        await older.close();
      }
    });

  it('has table names that begin with its own name, so that none collide with those of others', async () => {
    for (const wrong of [
      { ...CUPS, tables: { payments: ['id'] } },
      { ...CUPS, name: 'tea; drop table payments' },
      { ...CUPS, tables: { 'tea_cups, payments': ['id'] } },
    ]) {
      const refused = await ledger.openStore(wrong).catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(RangeError);
    }
  });

  it('changes its rows and the progress of an order together or not at all', async () => {
    const store = await ledger.openStore(CUPS);
    const payment = await asked();
    const brew = (cup: number) =>
      store.write(function* () {
        const order = yield* lockOpenOrder(payment);
        if (!order) return 'closed';
        yield* reportDone(payment, cup);
        yield* execute(sql`insert into tea_cups (payment, cup) values (${idBytes(payment)}, ${cup})`);
        return order.wanted;
      });
    expect(await brew(1)).to.equal(3);
    expect((await faultOf(brew(1))).code, 'the same cup').to.equal('failed');
    expect((await ledger.order(payment))?.done).to.equal(1);
    await store.write(() => reportDone(payment, 2));
    await ledger.finishOrder(payment);
    expect(await brew(2)).to.equal('closed');
    expect(await ledger.order(payment)).to.include({ done: 2 });
  });
});
