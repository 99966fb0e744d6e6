import { expect } from 'chai';
import Database from 'libsql';
import pg from 'pg';
import { changeReceiver } from '../../src/ledger/change-receiver.js';
import { moveLedger } from '../../src/ledger/move-ledger.js';
import { openLedger, openLedgerReader } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { OWNER, callOf, claim, claimed, delivered, faultOf, payment, settles } from '../support/ledgers.js';
import { onEachEngine, paymentIn, sqlitePlace } from '../support/ledger-places.js';
import { eachWithANewLedger, ledger, open, place, reopen } from '../support/ledger-suite.js';

const ELSEWHERE = { payTo: OWNER.payTo, network: 'solana:elsewhere' };
const OTHER = { payTo: 'Receiver222', network: OWNER.network };

onEachEngine('The receiver of a ledger', (make, engine) => {
  eachWithANewLedger(make);
  binding();
  changing(engine);
  if (engine === 'PostgreSQL') races();
});

/** Runs statements as another program would. */
async function run(...statements: string[]): Promise<void> {
  if (place.url.startsWith('file:')) {
    const db = new Database(place.url.slice('file:'.length));
    for (const statement of statements) db.exec(statement);
    db.close();
    return;
  }
  const client = new pg.Client({ connectionString: place.url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

async function identity() {
  const reader = await openLedgerReader({ url: place.url });
  try {
    return await reader.identity();
  } finally {
    await reader.close();
  }
}

function binding(): void {
  it('is not set before the first sale: another PAY_TO may be set, even after claims, refusals and abandoned orders', async () => {
    await claimed(ledger, payment());
    const gone = payment({ payer: 'Payer222' });
    const { claim: number, caller } = await claim(ledger, gone);
    await ledger.removeCaller(caller);
    expect(await settles(ledger, gone.id, number)).to.equal(false);
    expect((await identity()).payTo).to.equal(undefined);
    await reopen(OTHER);
    await delivered(ledger, payment());
    expect((await identity()).payTo).to.equal(OTHER.payTo);
  });

  it('has no network before the first sale: another NETWORK may be set, and notes about the former one are gone', async () => {
    await claimed(ledger, payment());
    await ledger.setMeta('height', '400000000');
    await ledger.offerHint('FeePayer111');
    await reopen();
    expect(await ledger.getMeta('height'), 'the same network').to.equal('400000000');
    await reopen(ELSEWHERE);
    expect((await identity()).network).to.equal(ELSEWHERE.network);
    expect(await ledger.getMeta('height')).to.equal(undefined);
    expect(await ledger.offeredHints()).to.deep.equal([]);
    await delivered(ledger, payment());
    await ledger.close();
    expect((await faultOf(open())).message)
      .to.include(`on ${ELSEWHERE.network}`)
      .and.include(OWNER.network);
    await reopen(ELSEWHERE);
  });

  it('and its network, if they change under a running server before its first sale, keep that server from selling', async () => {
    const request = payment();
    const number = await claimed(ledger, request);
    await run("update meta set value = 'solana:elsewhere' where key = 'network'");
    expect((await faultOf(settles(ledger, request.id, number))).message)
      .to.include('solana:elsewhere')
      .and.include('sells nothing');
    expect((await ledger.find(request.id))?.state).to.equal('claimed');
    expect((await identity()).payTo).to.equal(undefined);
  });

  it('is that of the first payment that moved to settling; startup with another one fails and explains how to change it', async () => {
    const request = payment();
    expect(await settles(ledger, request.id, await claimed(ledger, request))).to.equal(true);
    expect((await identity()).payTo).to.equal(OWNER.payTo);
    await ledger.close();
    const fault = await faultOf(open(OTHER));
    expect(fault.code).to.equal('open');
    expect(fault.message)
      .to.include(`belongs to PAY_TO ${OWNER.payTo}`)
      .and.include(OTHER.payTo)
      .and.include(`npm run ledger -- receiver ${OTHER.payTo}`);
    await reopen();
  });

  it('is not bound by a payment that only redeems an earlier one', async () => {
    const first = payment();
    const number = await claimed(ledger, first);
    expect(
      (await ledger.settle(first.id, number, { newestLocal: 1, call: callOf(first), attachOnly: true })).kind,
    ).to.equal('sell');
    expect((await identity()).payTo).to.equal(undefined);
  });

  it('was already written by earlier versions when they created the ledger: without a sale it can be set again', async () => {
    await ledger.close();
    const earlier = [
      "update meta set value = '5' where key = 'schema'",
      // Columns that later versions have added.
      'drop table targets',
      'drop table outbox',
      'drop table stores',
      'drop table repayments',
      'drop table uses',
      'drop index payments_settlement_start',
      'drop index payments_identifiers',
      'drop index payments_of_payer',
      'drop index payments_request_ids',
      ...['repaid', 'repaying', 'repaid_by', 'request_id'].map(
        name => `alter table payments drop column ${name}`,
      ),
      'alter table orders drop column done',
      'drop index payments_released',
      'drop index payments_settled',
      'alter table payments drop column method',
      'alter table orders drop column extended',
      ...['next_attempt_at', 'tries', 'starts', 'failure'].map(
        name => `alter table orders drop column ${name}`,
      ),
    ];
    await run(...earlier, `insert into meta (key, value) values ('pay_to', '${OWNER.payTo}')`);
    await reopen(OTHER);
    await delivered(ledger, payment());
    await ledger.close();
    await run(...earlier);
    expect((await faultOf(open())).message).to.include(`belongs to PAY_TO ${OTHER.payTo}`);
    await reopen(OTHER);
  });

  it('that changed under a running server stops its sales: nothing is settled, and nothing more is claimed', async () => {
    await delivered(ledger, payment());
    const request = payment();
    const number = await claimed(ledger, request);
    await run(`update meta set value = '${OTHER.payTo}' where key = 'pay_to'`);
    const fault = await faultOf(settles(ledger, request.id, number));
    expect(fault.message).to.include(OTHER.payTo).and.include('sells nothing');
    expect((await ledger.find(request.id))?.state).to.equal('claimed');
    expect((await faultOf(ledger.claim(payment()))).message).to.include('sells nothing');
    expect((await faultOf(ledger.check())).message).to.include('sells nothing');
  });
}

function changing(engine: string): void {
  it('can be changed, which keeps every payment and records the former one', async () => {
    const sold = payment();
    await delivered(ledger, sold);
    const owed = await paymentIn(ledger, 'owed');
    await ledger.close();
    const before = Date.now();
    expect(await changeReceiver({ url: place.url, payTo: OTHER.payTo })).to.deep.equal({
      former: OWNER.payTo,
    });
    const { payTo, formerReceivers } = await identity();
    expect(payTo).to.equal(OTHER.payTo);
    expect(formerReceivers.map(each => each.payTo)).to.deep.equal([OWNER.payTo]);
    expect(formerReceivers[0]?.until).to.be.at.least(before);
    expect((await faultOf(open())).message).to.include(`belongs to PAY_TO ${OTHER.payTo}`);
    await reopen(OTHER);
    expect(ledger.receivers).to.deep.equal([OTHER.payTo, OWNER.payTo]);
    expect((await ledger.find(sold.id))?.state).to.equal('delivered');
    expect((await ledger.find(owed))?.state).to.equal('owed');
    await delivered(ledger, payment());
    await ledger.close();
    await changeReceiver({ url: place.url, payTo: OWNER.payTo });
    await reopen();
    expect(ledger.receivers).to.deep.equal([OWNER.payTo, OTHER.payTo]);
  });

  it('is not changed while a server runs, while a payment is unresolved, or if there is nothing to change', async () => {
    const change = async (payTo = OTHER.payTo) =>
      (await faultOf(changeReceiver({ url: place.url, payTo }))).message;
    expect(await change()).to.match(/in use by (another|a) running server/);
    await ledger.close();
    expect(await change())
      .to.include('has sold nothing yet')
      .and.include(`PAY_TO=${OTHER.payTo}`);
    await reopen();
    const unresolved = await paymentIn(ledger, 'settling');
    await ledger.close();
    expect(await change())
      .to.include('1 payment is being settled')
      .and.include('Nothing was changed');
    expect((await identity()).payTo).to.equal(OWNER.payTo);
    await reopen();
    const adopted = await ledger.adopt(unresolved, 60_000);
    await ledger.release(unresolved, adopted!.claim, 'refused');
    await ledger.close();
    expect(await change(OWNER.payTo)).to.include('is already the receiver');
    expect(await changeReceiver({ url: place.url, payTo: OTHER.payTo })).to.have.property(
      'former',
      OWNER.payTo,
    );
  });

  it('moves with the ledger, and so do the former receivers', async () => {
    await delivered(ledger, payment());
    await ledger.close();
    await changeReceiver({ url: place.url, payTo: OTHER.payTo });
    const target = await sqlitePlace();
    try {
      await moveLedger({ from: place.url, to: target.url });
      const moved = await openLedger({ url: target.url, ...OTHER });
      expect(moved.receivers).to.deep.equal([OTHER.payTo, OWNER.payTo]);
      await moved.close();
      expect((await faultOf(openLedger({ url: target.url, ...OWNER }))).message).to.include(OTHER.payTo);
      const fault = await faultOf(changeReceiver({ url: place.url, payTo: OWNER.payTo }));
      expect(fault.message, engine).to.include('retired');
    } finally {
      await target.remove();
    }
  });
}

function races(): void {
  /** Claims and settles one payment. @returns the result */
  async function sell(server: Ledger): Promise<string> {
    const request = payment({ payer: `Payer${Math.random()}` });
    try {
      const number = await claimed(server, request);
      return (await settles(server, request.id, number)) ? 'sold' : 'gone';
    } catch (error) {
      return (error as Error).message;
    }
  }

  it('is the same for several servers with different settings, whichever server sells first', async () => {
    const servers = await Promise.all(Array.from({ length: 6 }, (_, index) => open(index % 2 ? OTHER : {})));
    const results = await Promise.all(
      servers.flatMap(server => [1, 2, 3, 4].map(async () => ({ server, came: await sell(server) }))),
    );
    const bound = (await identity()).payTo;
    for (const { server, came } of results)
      expect(came).to.match(server.receivers[0] === bound ? /^sold$/ : /sells nothing/);
    expect((await ledger.counts()).settling.payments).to.equal(12);
  });

  it('and its network are those of the running servers: a server for another network is refused until they have stopped', async () => {
    expect((await faultOf(open(ELSEWHERE))).message).to.include(OWNER.network);
    await ledger.close();
    await reopen(ELSEWHERE);
    await delivered(ledger, payment());
  });

  it('is that of the first sale even if both servers moved a payment before either was bound', async () => {
    const other = await open(OTHER);
    const client = new pg.Client({ connectionString: place.url });
    await client.connect();
    try {
      // Stops each transaction after it has moved its payment and before it binds the receiver.
      await client.query('begin');
      await client.query('lock table meta in share mode');
      const both = Promise.all([sell(ledger), sell(other)]);
      for (let waiting = 0; waiting < 2;) {
        const { rows } = await client.query<{ waiting: number }>(
          "select count(*)::int as waiting from pg_locks where not granted and relation = 'meta'::regclass",
        );
        waiting = rows[0]?.waiting ?? 0;
      }
      await client.query('commit');
      const came = await both;
      expect(came.filter(one => one === 'sold')).to.have.length(1);
      expect(came.filter(one => one.includes('sells nothing'))).to.have.length(1);
      expect((await ledger.counts()).settling.payments).to.equal(1);
    } finally {
      await client.end();
    }
  });

  it("is not changed between a sale's check and its move to settling", async () => {
    await delivered(ledger, payment());
    const client = new pg.Client({ connectionString: place.url });
    await client.connect();
    try {
      const request = payment({ payer: 'Payer333' });
      const number = await claimed(ledger, request);
      await client.query('begin');
      await client.query('lock table payments in share row exclusive mode');
      const moving = faultOf(settles(ledger, request.id, number));
      for (let waiting = 0; waiting < 1;) {
        const { rows } = await client.query<{ waiting: number }>(
          "select count(*)::int as waiting from pg_locks where not granted and relation = 'payments'::regclass",
        );
        waiting = rows[0]?.waiting ?? 0;
      }
      await client.query("update meta set value = 'Receiver222' where key = 'pay_to'");
      await client.query('commit');
      expect((await moving).message).to.include('sells nothing');
      expect((await ledger.find(request.id))?.state).to.equal('claimed');
    } finally {
      await client.end();
    }
  });
}
