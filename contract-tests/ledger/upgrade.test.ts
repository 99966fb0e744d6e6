import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import Database from 'libsql';
import pg from 'pg';
import { openLedgerReader, openLedger } from '../../src/ledger/store.js';
import type { Ledger } from '../../src/ledger/store.js';
import { POSTGRES, SQLITE } from '../../src/ledger/engine.js';
import { MIGRATIONS, OLDEST_BESIDE, SCHEMA_VERSION } from '../../src/ledger/migrations.js';
import { openReplies } from '../support/brand-replies.js';
import { claimRequest, onEachEngine, forServer } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

const RELEASED = fileURLToPath(new URL('../../../contract-tests/released/', import.meta.url));
const OWNER = {
  payTo: 'DxbhtWCBwmTs1HypM66xjQ73T9wouegV2Z1jQWsCd4UU',
  network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
};
/** The row with an order and replies, and the one that redeems it. */
const OWED = '03'.repeat(32);
const ALIAS = '07'.repeat(32);

type Row = Record<string, unknown>;

/** Puts the ledger of version 1.0.0 in place. @returns its rows, by table */
async function bringOld(place: LedgerPlace): Promise<Record<string, Row[]>> {
  if (place.url.startsWith('file:')) await copyFile(join(RELEASED, 'ledger-1.0.0.db'), pathOf(place));
  else
    await inPostgres(place, async client =>
      client.query(await readFile(join(RELEASED, 'ledger-1.0.0.sql'), 'utf8')),
    );
  return rowsOf(place);
}

function pathOf(place: LedgerPlace): string {
  return place.url.slice('file:'.length);
}

async function inPostgres<T>(place: LedgerPlace, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: place.url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const TABLES = {
  payments: 'id',
  answers: 'payment',
  orders: 'payment',
  replies: 'payment, number',
  payers: 'payer',
};

async function rowsOf(place: LedgerPlace): Promise<Record<string, Row[]>> {
  const rows: Record<string, Row[]> = {};
  for (const [table, key] of Object.entries(TABLES)) {
    const text = `select * from ${table} order by ${key}`;
    if (place.url.startsWith('file:')) {
      const db = new Database(pathOf(place));
      rows[table] = (db.prepare(text).all() as Row[]).map(readable);
      db.close();
    } else rows[table] = (await inPostgres(place, client => client.query<Row>(text))).rows.map(readable);
  }
  return rows;
}

/** Normalizes bytes to hex and integers to numbers, whatever the driver returns. Leaves out the leases, which end when a server starts. */
function readable(row: Row): Row {
  const columns = Object.entries(row).filter(([name]) => name !== 'lease_until' && name !== 'caller_until');
  return Object.fromEntries(
    columns.map(([name, value]) => {
      if (value instanceof ArrayBuffer) return [name, Buffer.from(value).toString('hex')];
      if (Buffer.isBuffer(value)) return [name, value.toString('hex')];
      return [name, typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value];
    }),
  );
}

/** Every row of 1.0.0 counts as having had one caller, to whom everything was written. */
function counted(row: Row): Row {
  const written = row['written_at'] !== null;
  const sums = {
    repaid: row['state'] === 'refunded' ? row['amount'] : 0,
    repaying: 0,
    repaid_by: null,
    request_id: null,
  };
  return {
    ...row,
    ...sums,
    method: null,
    callers: 1,
    written_to: written ? 1 : null,
    unwritten: written ? 0 : 1,
  };
}

/** No order of 1.0.0 was extended. A failed one may be attempted again when its buyer asks. */
const extendable = (row: Row, replies: Row[]): Row => ({
  ...row,
  extended: 0,
  next_attempt_at: row['finished_at'] ?? 0,
  tries: 1,
  starts: 0,
  failure: null,
  // The number of replies that count for the order.
  done: replies.filter(({ payment, rejected_at: at }) => payment === row['payment'] && at === null).length,
});

/** The version of the last schema in which the ledger itself held replies. */
const WITH_REPLIES = 10;

/** Migrates a ledger of version 1.0.0 to the last schema that contained replies, as the servers with that schema did. */
async function bringWithReplies(place: LedgerPlace): Promise<void> {
  await bringOld(place);
  const isFile = place.url.startsWith('file:');
  const dialect = isFile ? SQLITE : POSTGRES;
  const steps = MIGRATIONS.slice(1, WITH_REPLIES).flatMap(migration => migration(dialect));
  const all = ['begin', ...steps, `update meta set value = '${WITH_REPLIES}' where key = 'schema'`, 'commit'];
  if (isFile) {
    const db = new Database(pathOf(place));
    for (const step of all) db.exec(step);
    db.close();
  } else
    await inPostgres(place, async client => {
      for (const step of all) await client.query(step);
    });
}

onEachEngine('A ledger of version 1.0.0', (make, engine) => {
  upgrades(make);
  describe('or a later one', () => movesReplies(make));
  if (engine === 'PostgreSQL') besideServers(make);
});

function upgrades(make: () => Promise<LedgerPlace>): void {
  let place: LedgerPlace;
  let ledger: Ledger | undefined;

  beforeEach(async () => {
    place = await make();
  });

  afterEach(async () => {
    await ledger?.close();
    ledger = undefined;
    await place.remove();
  });

  it('is opened by this version with every row unchanged', async () => {
    const before = await bringOld(place);
    expect(before['payments']).to.have.length(12);
    ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    await ledger.close();
    ledger = undefined;
    const payments = before['payments']!.map(counted);
    const upgraded = {
      ...before,
      payments,
      orders: before['orders']!.map(row => extendable(row, before['replies']!)),
    };
    expect(await rowsOf(place)).to.deep.equal(upgraded);
    ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    await ledger.close();
    ledger = undefined;
    expect(await rowsOf(place), 'opened again').to.deep.equal(upgraded);
  });

  it('is not read before a server has brought it up to date', async () => {
    await bringOld(place);
    const refused = await openLedgerReader({ url: place.url }).catch((error: Error) => error.message);
    expect(refused).to.equal('The ledger has an older schema. Start the server once to bring it up to date.');
  });

  it('continues to work: answers, orders, replies, aliases, identifiers and reports', async () => {
    await bringOld(place);
    ledger = await openLedger({ ...forServer(place.url), ...OWNER, now: () => 1_795_310_000_600 });
    const counts = await ledger.counts();
    expect(Object.entries(counts).map(([state, { payments }]) => [state, payments])).to.deep.equal([
      ['claimed', 1],
      ['settling', 1],
      ['released', 1],
      ['delivered', 6],
      ['owed', 1],
      ['refunded', 1],
    ]);
    const sold = (await ledger.list({ state: 'delivered', operation: 'summarize' }))[0]!;
    expect((await ledger.answer(sold.id))?.body.toString()).to.include('harbour bridge');
    expect((await ledger.find(ALIAS))?.aliasOf).to.equal(OWED);
    const replies = await openReplies(ledger);
    expect((await replies.replies(OWED)).map(reply => reply.text)).to.deep.equal(['Good cup.']);
    expect(await replies.intent(OWED)).to.equal('{"order":"intent-1"}');
    expect((await ledger.openOrders()).map(order => order.payment)).to.deep.equal([OWED]);
    const same = await ledger.claim(claimRequest({ payer: 'Payer111', identifier: 'pay_0123456789abcdef' }));
    expect(same).to.have.nested.property('payment.id', '05'.repeat(32));
  });

  it('delivers what it owes', async () => {
    await bringOld(place);
    ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    const owed = await ledger.adopt(OWED, 30_000);
    if (!owed) throw new Error('nobody can hold it');
    const reply = {
      id: 'r3',
      text: 'Fine.',
      sentiment: 'positive',
      respondent: 'three',
      isSample: false,
    } as const;
    expect(await (await openReplies(ledger)).add(OWED, reply)).to.equal('added');
    const body = Buffer.from('{"brand":"Acme"}');
    expect(await ledger.saveAnswer(OWED, owed.claim, { status: 200, headers: {}, body })).to.equal(true);
    const how = { settlement: 'sig', answerExpiresAt: Number.MAX_SAFE_INTEGER };
    expect(await ledger.deliver(OWED, owed.claim, how)).to.equal(true);
    expect(await ledger.finishOrder(OWED)).to.equal(true);
    expect((await ledger.answer(OWED))?.body.equals(body)).to.equal(true);
  });
}

function movesReplies(make: () => Promise<LedgerPlace>): void {
  let place: LedgerPlace;
  let ledger: Ledger;

  afterEach(async () => {
    await ledger.close();
    await place.remove();
  });

  const eras: [string, (place: LedgerPlace) => Promise<unknown>][] = [
    ['of version 1.0.0', bringOld],
    ['of the last version that held replies', bringWithReplies],
  ];
  for (const [era, bring] of eras)
    it(`moves the replies and intents of a ledger ${era} to the store of their operation, once`, async () => {
      place = await make();
      await bring(place);
      const before = (await rowsOf(place))['replies'] ?? [];
      expect(
        before.some(({ rejected_at: at }) => at !== null),
        'also a rejected one',
      ).to.equal(true);
      ledger = await openLedger({ ...forServer(place.url), ...OWNER });
      const [first, second] = await Promise.all([openReplies(ledger), openReplies(ledger)]);
      expect((await first.replies(OWED)).map(({ text }) => text)).to.deep.equal(['Good cup.']);
      expect(await second.intent(OWED)).to.equal('{"order":"intent-1"}');
      expect((await first.open()).map(({ id, replies }) => [id, replies])).to.deep.equal([[OWED, 1]]);
      const stored = (await ledger.storedRows(OWED))['brand_feedback_replies'] ?? [];
      const kept = stored.map(({ sample, ...row }) => ({ ...row, house: sample }));
      const own = before.filter(
        ({ payment }) => payment === OWED || payment === Buffer.from(OWED).toString(),
      );
      expect(kept).to.have.deep.members(own.map(({ payment: _, ...row }) => row));
      const [rejected] = own.filter(({ rejected_at: at }) => at !== null);
      const again = {
        id: 'again',
        text: 'Once more.',
        sentiment: 'neutral',
        isSample: false,
      } as const;
      const respondent = String(rejected?.['respondent']);
      expect(await first.add(OWED, { ...again, respondent })).to.equal('duplicate');
      expect(await first.add(OWED, { ...again, respondent: 'somebody else' })).to.equal('added');
      await ledger.close();
      ledger = await openLedger({ ...forServer(place.url), ...OWNER });
      const texts = (await (await openReplies(ledger)).replies(OWED)).map(({ text }) => text);
      expect(texts).to.deep.equal(['Good cup.', 'Once more.']);
      expect((await rowsOf(place))['replies'], 'the old table stays').to.have.length(before.length);
    });
}

function besideServers(make: () => Promise<LedgerPlace>): void {
  let place: LedgerPlace;

  beforeEach(async () => {
    place = await make();
    await bringOld(place);
  });

  afterEach(() => place.remove());

  it('stays as it is while a server of that version runs: startup says to stop it', async () => {
    const before = await rowsOf(place);
    await inPostgres(place, async old => {
      // The lock is all that such a server leaves for others to see.
      await old.query('select pg_advisory_lock_shared(8403, hashtext(current_schema()))');
      const refused = await openLedger({ ...forServer(place.url), ...OWNER }).catch(
        (error: Error) => error.message,
      );
      expect(refused).to.match(/1 running server\(s\) of an earlier version.*Stop them.*Nothing was changed/);
      expect(await rowsOf(place)).to.deep.equal(before);
    });
    const ledger = await openLedger({ ...forServer(place.url), ...OWNER });
    await ledger.close();
  });

  it('may be used by servers of an earlier version that can run without the new parts, and by no others', async () => {
    await (await openLedger({ ...forServer(place.url), ...OWNER })).close();
    const meta = (key: string, value: number | string): Promise<void> =>
      inPostgres(place, async client => {
        await client.query('insert into meta values ($1, $2) on conflict (key) do update set value = $2', [
          key,
          value,
        ]);
      });
    await meta('schema', SCHEMA_VERSION + 1);
    await (await openLedger({ ...forServer(place.url), ...OWNER })).close();
    await meta('least', SCHEMA_VERSION + 1);
    const refused = await openLedger({ ...forServer(place.url), ...OWNER }).catch(
      (error: Error) => error.message,
    );
    expect(refused).to.match(
      /schema version \d+; this program supports.*Run the newer program.*Nothing was changed/,
    );
  });

  it('is brought up to date while servers are running that know the oldest version compatible with it', async () => {
    await inPostgres(place, async old => {
      await old.query('select pg_advisory_lock_shared(8405, $1)', [OLDEST_BESIDE]);
      await old.query('select pg_advisory_lock_shared(8403, hashtext(current_schema()))');
      await (await openLedger({ ...forServer(place.url), ...OWNER })).close();
    });
  });

  it('is brought up to date once by servers of this version that start together', async () => {
    const servers = await Promise.all(
      [1, 2, 3, 4].map(() => openLedger({ ...forServer(place.url), ...OWNER })),
    );
    expect((await servers[3]!.counts()).delivered.payments).to.equal(6);
    await Promise.all(servers.map(server => server.close()));
  });
}
