import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import Database from 'libsql';
import pg from 'pg';
import { openLedgerReader, openLedger } from '../../../src/ledger/store.js';
import type { Ledger, LedgerOptions, Payment } from '../../../src/ledger/store.js';
import { openReplies } from '../../support/brand-replies.js';
import { OWNER } from '../../support/ledgers.js';
import { paymentIn, postgresPlace, sqlitePlace } from '../../support/ledger-places.js';
import type { LedgerPlace } from '../../support/ledger-places.js';
import { SLOW_MS, ledgerCommand, type Outcome } from '../../support/ledger-command.js';

const SIGNATURE = '5'.repeat(88);

describe('ledger move', function () {
  this.timeout(SLOW_MS);
  const database = process.env['TEST_DATABASE_URL'];
  const postgres = database ? () => postgresPlace(database) : undefined;
  const ways: [string, (() => Promise<LedgerPlace>) | undefined, (() => Promise<LedgerPlace>) | undefined][] =
    [
      ['SQLite to SQLite', sqlitePlace, sqlitePlace],
      ['SQLite to PostgreSQL', sqlitePlace, postgres],
      ['PostgreSQL to SQLite', postgres, sqlitePlace],
      ['PostgreSQL to PostgreSQL', postgres, postgres],
    ];
  for (const [way, from, to] of ways)
    if (from && to) describe(way, () => copies(from, to));
    else
      describe.skip(`${way} (set TEST_DATABASE_URL=postgres://… to run these)`, () =>
        copies(sqlitePlace, sqlitePlace));
});

/** Runs one statement directly in a database. */
async function execute(url: string, statement: string): Promise<void> {
  if (url.startsWith('file:')) {
    const db = new Database(url.slice('file:'.length));
    db.exec(statement);
    db.close();
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function copies(from: () => Promise<LedgerPlace>, to: () => Promise<LedgerPlace>): void {
  let source: LedgerPlace;
  let target: LedgerPlace;
  const opened: { close: () => Promise<void> }[] = [];

  const open = async (url: string, options: Partial<LedgerOptions> = {}): Promise<Ledger> => {
    const ledger = await openLedger({ url, ...OWNER, ...options });
    opened.push(ledger);
    return ledger;
  };
  const move = (): Promise<Outcome> => ledgerCommand({}, 'move', '--from', source.url, '--to', target.url);
  const refused = async (url: string): Promise<string> => {
    try {
      await open(url);
    } catch (error) {
      return (error as Error).message;
    }
    throw new Error('expected a refusal');
  };

  beforeEach(async () => {
    [source, target] = [await from(), await to()];
  });

  afterEach(async () => {
    await Promise.all(opened.splice(0).map(each => each.close()));
    await source.remove();
    await target.remove();
  });

  /** Adds payments in every state, a large answer, an order with a reply, and a stored text. @returns the ids, the order's last */
  async function fill(): Promise<string[]> {
    const ledger = await open(source.url);
    const ids: string[] = [];
    for (const state of ['claimed', 'settling', 'released', 'owed', 'delivered'] as const) {
      // No more at once than the ledger has connections: on a busy machine, the rest would wait too long for one.
      for (let from = 0; from < 60; from += 10) {
        const identifiers = Array.from({ length: 10 }, (_, index) => `ünï'${state} ${from + index}`);
        ids.push(
          ...(await Promise.all(identifiers.map(identifier => paymentIn(ledger, state, { identifier })))),
        );
      }
    }
    const heavy = await paymentIn(ledger, 'owed');
    const claim = (await ledger.adopt(heavy, 1_000))?.claim ?? 0;
    const body = Buffer.concat([Buffer.from([0, 255, 10]), randomBytes(600_000)]);
    await ledger.saveAnswer(heavy, claim, { status: 200, headers: { 'content-type': 'audio/wav' }, body });
    await ledger.openOrder({ payment: heavy, request: '{}', wanted: 3, deadline: 9 });
    const reply = { id: 'r', text: 'Good.', sentiment: 'neutral', isSample: true } as const;
    await (await openReplies(ledger)).add(heavy, { ...reply, respondent: 'p' });
    await ledger.setMeta('supported', '{"kinds":1}');
    await ledger.close();
    return [...ids, heavy];
  }

  it('accepts an empty ledger of an earlier version as its target', async () => {
    await fill();
    await (await openLedger({ url: target.url, ...OWNER })).close();
    await execute(target.url, 'drop index payments_released');
    await execute(target.url, 'drop table stores');
    for (const name of ['outbox', 'targets', 'repayments', 'uses'])
      await execute(target.url, `drop table ${name}`);
    for (const name of ['settlement_start', 'identifiers', 'of_payer', 'request_ids'])
      await execute(target.url, `drop index payments_${name}`);
    for (const name of ['repaid', 'repaying', 'repaid_by', 'request_id'])
      await execute(target.url, `alter table payments drop column ${name}`);
    await execute(target.url, 'alter table orders drop column done');
    await execute(target.url, "update meta set value = '10' where key = 'schema'");
    const { status, stderr, stdout } = await move();
    expect(status, stderr).to.equal(0);
    expect(stdout).to.match(/brand_feedback_replies +1 /);
  });

  it('moves every row, checks each one, and retires only the source', async () => {
    const ids = await fill();
    const before = await openLedgerReader({ url: source.url });
    const rows = await Promise.all(ids.map(id => before.find(id)));
    const heavy = ids.at(-1) ?? '';
    const answer = await before.answer(heavy);
    await before.close();
    const outcome = await move();
    expect(outcome.status, outcome.stderr).to.equal(0);
    expect(outcome.stdout)
      .to.match(/payments +301 /)
      .and.match(/answers +61 /)
      .and.match(/brand_feedback_replies +1 /);
    expect(await refused(source.url)).to.include('retired');
    const past = await ledgerCommand({ DATABASE_URL: source.url }, 'summary');
    expect(past).to.include({ status: 0 });
    expect(past.stderr).to.include('retired');
    const reader = await openLedgerReader({ url: target.url });
    opened.push(reader);
    const still = (row: Payment | undefined): object | undefined =>
      row && { ...row, leased: false, attended: false };
    const moved = await Promise.all(ids.map(id => reader.find(id)));
    expect(moved.map(still)).to.deep.equal(rows.map(still));
    expect((await reader.answer(heavy))?.body.equals(answer?.body ?? Buffer.alloc(0))).to.equal(true);
    const ledger = await open(target.url);
    expect(await ledger.order(heavy)).to.include({ wanted: 3, deadline: 9 });
    const replies = await openReplies(ledger);
    expect((await replies.replies(heavy)).map(({ respondent }) => respondent)).to.deep.equal(['p']);
    expect(await ledger.getMeta('supported')).to.equal('{"kinds":1}');
    expect(
      await replies.add(heavy, {
        id: 's',
        text: 'x',
        sentiment: 'neutral',
        respondent: 'p',
        isSample: false,
      }),
    ).to.equal('duplicate');
    expect(await paymentIn(ledger, 'delivered')).to.have.length(64);
  });

  it('makes the retired source read-only', async () => {
    const [id] = await fill();
    expect((await move()).status).to.equal(0);
    const reader = await openLedgerReader({ url: source.url });
    opened.push(reader);
    const owed = (await reader.list({ state: 'owed', limit: 1 }))[0]?.id ?? '';
    const { status, stderr } = await ledgerCommand(
      { DATABASE_URL: source.url },
      'refund',
      owed,
      '--tx',
      SIGNATURE,
    );
    expect(status).to.equal(1);
    expect(stderr).to.include('retired');
    if (source.url.startsWith('postgres'))
      await execute(source.url, `update payments set reason = 'late' where id = decode('${id}', 'hex')`).then(
        () => expect.fail('a late server wrote to the retired ledger'),
        (error: Error) => expect(error.message).to.include('retired'),
      );
    const again = await move();
    expect(again.status).to.equal(1);
    expect(again.stderr).to.include('has already been copied completely');
  });

  it('refuses a source that a server has open, and a target that has sold something', async () => {
    const server = await open(source.url);
    const running = await move();
    expect(running.status).to.equal(1);
    expect(running.stderr).to.include('in use by');
    await server.close();
    const other = await open(target.url);
    await paymentIn(other, 'owed');
    await other.close();
    const full = await move();
    expect(full.status).to.equal(1);
    expect(full.stderr).to.include('not empty');
    await (await open(source.url)).close();
    expect((await ledgerCommand({}, 'move', '--from', source.url, '--to', source.url)).stderr).to.include(
      'same ledger',
    );
  });

  it('moves nothing when called by its former name, copy, and prints its current name', async () => {
    const { status, stderr } = await ledgerCommand({}, 'copy', '--from', source.url, '--to', target.url);
    expect(status).to.equal(1);
    expect(stderr).to.include('now called move');
  });

  it('does not retire the source if a row arrives changed', async () => {
    await (await open(target.url)).close();
    await fill();
    const spoil = target.url.startsWith('file:')
      ? `create trigger spoil after insert on payments when new.state = 'owed'
           begin update payments set amount = '1' where id = new.id; end`
      : `create function spoil() returns trigger language plpgsql as
           $$ begin if new.state = 'owed' then new.amount := '1'; end if; return new; end $$;
         create trigger spoil before insert on payments for each row execute function spoil()`;
    await execute(target.url, spoil);
    const { status, stderr } = await move();
    expect(status).to.equal(1);
    expect(stderr).to.include('differs from its source').and.include('payments');
    expect((await (await open(source.url)).counts()).owed.payments).to.equal(61);
    expect((await (await open(target.url)).counts()).owed.payments).to.equal(0);
  });

  it('completes a copy that was interrupted after the source was retired', async () => {
    await fill();
    expect((await move()).status).to.equal(0);
    await execute(target.url, `insert into meta (key, value) values ('arriving', 'somewhere')`);
    expect(await refused(target.url)).to.include('was not finished');
    const outcome = await move();
    expect(outcome.status, outcome.stderr).to.equal(0);
    expect(outcome.stdout).to.include('completed');
    expect((await (await open(target.url)).counts()).owed.payments).to.equal(61);
  });

  it('leaves the source as the only ledger to sell from if a copy was interrupted before the source was retired', async () => {
    await fill();
    expect((await move()).status).to.equal(0);
    await execute(target.url, `insert into meta (key, value) values ('arriving', 'somewhere')`);
    await execute(source.url, `delete from meta where key = 'retired'`);
    expect((await move()).stderr).to.include('interrupted');
    expect(await refused(target.url)).to.include('was not finished');
    await (await open(source.url)).close();
  });
}
