import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createTransferCheckedInstruction, getAssociatedTokenAddressSync } from '@solana/spl-token';
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { expect } from 'chai';
import Database from 'libsql';
import pg from 'pg';
import { csvLine } from '../src/bookkeeper/csv.js';
import { publicName } from '../src/ledger/copy.js';
import { openBooks, openLedger } from '../src/ledger/store.js';
import type { Ledger, LedgerOptions, Payment } from '../src/ledger/store.js';
import { Heights } from '../src/payments/heights.js';
import { startSandbox } from '../src/sandbox/start.js';
import { aRefund, PLACES, paymentIn, postgresPlace, sqlitePlace } from './support/places.js';
import type { Place } from './support/places.js';

const MAIN = fileURLToPath(new URL('../src/bookkeeper/main.js', import.meta.url));
const OWNER = { payTo: 'Receiver111', network: 'solana:test' };
const DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
const GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
const USDC = new PublicKey('4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU');
/** Every command is a process, and a slow machine starts them slowly. */
const SLOW_MS = 90_000;
const SIGNATURE = '5'.repeat(88);
const DAY_1 = Date.parse('2026-11-20T23:59:59.500Z');

type Outcome = { status: number; stdout: string; stderr: string };

/** Runs the command as the operator does: in a process of its own, knowing only its environment. */
function ledgerCommand(env: Record<string, string>, ...args: string[]): Promise<Outcome> {
  const environment = { PATH: process.env['PATH'] ?? '', INIT_CWD: '/', ...env };
  return new Promise(resolve => {
    const options = { env: environment, timeout: 60_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

async function jsonOf<T>(env: Record<string, string>, ...args: string[]): Promise<T> {
  const { status, stdout, stderr } = await ledgerCommand(env, ...args, '--json');
  if (status !== 0) throw new Error(`status ${status}: ${stderr}`);
  return JSON.parse(stdout) as T;
}

for (const { name, make } of PLACES) {
  if (make)
    describe(`npm run ledger on ${name}`, function () {
      this.timeout(SLOW_MS);
      reports(make);
    });
  else
    describe.skip(`npm run ledger on ${name} (set TEST_DATABASE_URL=postgres://… to run these)`, () =>
      reports(sqlitePlace));
}

/** All of it beside the running server that wrote the ledger. */
function reports(make: () => Promise<Place>): void {
  let place: Place;
  let ledger: Ledger;
  let clock: number;
  let env: Record<string, string>;

  beforeEach(async () => {
    clock = DAY_1;
    place = await make();
    env = { DATABASE_URL: place.url };
    ledger = await openLedger({ url: place.url, ...OWNER, now: () => clock });
  });

  afterEach(async () => {
    await ledger.close();
    await place.remove();
  });

  it('sums revenue per operation and UTC day, and what stands in which state', async () => {
    const small = { operation: 'summarize', amount: 10_000n };
    await paymentIn(ledger, 'delivered', small);
    clock += 1_000;
    await paymentIn(ledger, 'delivered', small);
    await paymentIn(ledger, 'delivered', { ...small, amount: 9_007_199_254_740_993n });
    await paymentIn(ledger, 'owed');
    await ledger.refund(await paymentIn(ledger, 'owed'), aRefund());
    for (const state of ['settling', 'released', 'claimed'] as const) await paymentIn(ledger, state, small);
    const { revenue, totals } = await jsonOf<{ revenue: unknown; totals: unknown }>(env, 'summary');
    expect(revenue).to.deep.equal([
      { day: '2026-11-20', operation: 'summarize', payments: 1, revenue: '0.01', refunded: '0.00' },
      { day: '2026-11-21', operation: 'brandFeedback', payments: 2, revenue: '0.50', refunded: '0.50' },
      {
        day: '2026-11-21',
        operation: 'summarize',
        payments: 2,
        revenue: '9007199254.750993',
        refunded: '0.00',
      },
    ]);
    expect(totals).to.deep.equal({
      revenue: '9007199255.260993',
      delivered: { payments: 3, usdc: '9007199254.760993' },
      owed: { payments: 1, usdc: '0.50' },
      inDoubt: { payments: 1, usdc: '0.01' },
      released: { payments: 1, usdc: '0.01' },
      refunded: { payments: 1, usdc: '0.50' },
      claimed: { payments: 1, usdc: '0.01' },
    });
    const { status, stdout } = await ledgerCommand(env, 'summary');
    expect(status).to.equal(0);
    expect(stdout)
      .to.include('Revenue: 9007199255.260993 USDC')
      .and.match(/2026-11-20 +summarize +1 +0\.01/);
  });

  it('shows the greatest block height that was seen, and resets one that was wrong, beside the server', async () => {
    expect((await ledgerCommand(env, 'height')).stdout).to.include('No server of this ledger has seen');
    const heights = new Heights(ledger, { now: () => clock });
    await heights.note(9_000_000);
    expect(await jsonOf(env, 'height')).to.deep.equal({
      height: 9_000_000,
      seenAt: '2026-11-20T23:59:59.500Z',
      reset: false,
    });
    const latest = { lastValidBlockHeight: 1_150 };
    await heights.refresh();
    expect(() => heights.check(latest)).to.throw('npm run ledger -- height --reset');
    const { status, stdout } = await ledgerCommand(env, 'height', '--reset');
    expect(status).to.equal(0);
    expect(stdout).to.include('9000000').and.include('Risk: ').and.include('restart the servers');
    await heights.refresh();
    heights.check(latest);
  });

  it('lists the newest payments, by state, payer and operation', async () => {
    const first = await paymentIn(ledger, 'delivered', { operation: 'summarize' });
    clock += 1;
    const second = await paymentIn(ledger, 'owed', { payer: 'Payer222' });
    const ids = async (...args: string[]): Promise<string[]> =>
      (await jsonOf<{ id: string }[]>(env, 'list', ...args)).map(({ id }) => id);
    expect(await ids()).to.deep.equal([second, first]);
    expect(await ids('--limit', '1')).to.deep.equal([second]);
    expect(await ids('--state', 'delivered')).to.deep.equal([first]);
    expect(await ids('--payer', 'Payer222')).to.deep.equal([second]);
    expect(await ids('--operation', 'nothing')).to.deep.equal([]);
    for (const wrong of [
      ['--state', 'paid'],
      ['--limit', '0'],
      ['--limit', '1001'],
      ['--limit', 'x'],
    ]) {
      const { status, stderr } = await ledgerCommand(env, 'list', ...wrong);
      expect(status).to.equal(1);
      expect(stderr).to.match(/\.\n$/).and.not.include('at ');
    }
  });

  it('shows everything of one payment but its answer, and the signed transaction only when asked for', async () => {
    const id = await paymentIn(ledger, 'delivered', { transaction: 'U0lHTkVE', identifier: 'order 7' });
    const json = await ledgerCommand(env, 'show', id.slice(0, 8), '--json');
    const shown = JSON.parse(json.stdout) as { payment: unknown; answer: unknown; order: unknown };
    expect(shown.payment).to.include({
      id,
      state: 'delivered',
      usdc: '0.50',
      identifier: 'order 7',
      settlement: 'sig',
    });
    expect(shown.payment).to.include({
      request: '{"brand":"Acme"}',
      settledAt: new Date(DAY_1).toISOString(),
    });
    expect(shown.answer).to.deep.equal({ status: 200, bytes: 24, savedAt: new Date(DAY_1).toISOString() });
    expect(shown.order).to.equal(null);
    const human = await ledgerCommand(env, 'show', id.toUpperCase());
    for (const { stdout } of [json, human])
      expect(stdout).to.include(id).and.not.include('secret').and.not.include('U0lHTkVE');
    const { stdout } = await ledgerCommand(env, 'show', id, '--transaction');
    expect(stdout).to.include('U0lHTkVE').and.not.include('secret');
  });

  it('asks for more digits when a beginning fits two payments or is too short', async () => {
    const one = await paymentIn(ledger, 'owed', { id: `abcdef12${'1'.repeat(56)}` });
    await paymentIn(ledger, 'owed', { id: `abcdef12${'f'.repeat(56)}` });
    const outcomes = await Promise.all(
      ['abcdef12', 'abcdef1', '%', 'abcdef13', one].map(text => ledgerCommand(env, 'show', text)),
    );
    expect(outcomes.map(({ status }) => status)).to.deep.equal([1, 1, 1, 1, 0]);
    expect(outcomes[0]?.stderr).to.include('Give more digits');
    expect(outcomes[1]?.stderr).to.include('first 8 digits');
    expect(outcomes[3]?.stderr).to.include('There is no payment abcdef13');
  });

  it('shows an order with its replies, which steer no terminal', async () => {
    const payment = await paymentIn(ledger, 'owed');
    await ledger.openOrder({ payment, request: '{"q":1}', wanted: 2, deadline: clock + 1 });
    const reply = { sentiment: 'negative', respondent: 'p1', inferred: true, house: false } as const;
    await ledger.addReply(payment, { ...reply, id: 'r1', text: 'bad\u001b[2J\u202e' });
    await ledger.addReply(payment, { ...reply, id: 'r2', text: 'spam', respondent: 'p2' });
    await ledger.rejectReply(payment, 'r2');
    const shown = await jsonOf<{ order: unknown; replies: unknown }>(env, 'show', payment);
    expect(shown.order).to.include({ wanted: 2, attempts: 1, request: '{"q":1}' });
    expect(shown.replies).to.deep.equal([{ ...reply, id: 'r1', text: 'bad\u001b[2J\u202e' }]);
    const { stdout } = await ledgerCommand(env, 'show', payment);
    expect(stdout).to.include('negative (inferred)').and.not.include('\u001b').and.not.include('\u202e');
  });

  it('says who is owed what, since when and why', async () => {
    const waiting = await paymentIn(ledger, 'owed', { payer: 'Payer222' });
    clock += 5;
    const failed = await paymentIn(ledger, 'owed');
    await ledger.openOrder({ payment: failed, request: '{}', wanted: 3, deadline: clock });
    await ledger.finishOrder(failed);
    await ledger.reopenOrder(failed, clock);
    await ledger.finishOrder(failed);
    type Owed = { id: string; payer: string; usdc: string; since: string; attempts: number; why: string };
    const [first, second, ...rest] = await jsonOf<Owed[]>(env, 'owed');
    expect(rest).to.deep.equal([]);
    expect(first).to.include({ id: waiting, payer: 'Payer222', usdc: '0.50' });
    expect(Date.parse(first?.since ?? '')).to.be.within(DAY_1 - 10, DAY_1 + 10_000);
    expect(first?.why).to.include('not made yet');
    expect(second).to.include({ id: failed, attempts: 2 });
    expect(second?.why).to.include('attempt 2 ended without an answer (0 of 3 replies)');
    expect((await ledgerCommand(env, 'owed')).stdout).to.include('2 payments, 1.00 USDC owed');
  });

  it('exports every payment that was or may have been settled, in the days asked for', async () => {
    const formula = '=HYPERLINK("http://x","a,b")';
    const first = await paymentIn(ledger, 'delivered', { identifier: formula });
    clock += 1_000;
    const second = await paymentIn(ledger, 'settling');
    await paymentIn(ledger, 'claimed');
    const all = await ledgerCommand(env, 'export');
    const [header, ...records] = all.stdout.split('\r\n');
    expect(header).to.match(/^payment,booked_at,state,operation,payer,usdc,/);
    expect(records.map(record => record.slice(0, 64))).to.deep.equal([first, second, '']);
    expect(records[0]).to.include(`,"'=HYPERLINK(""http://x"",""a,b"")",`);
    const days = async (...range: string[]): Promise<string[]> =>
      (await ledgerCommand(env, 'export', ...range)).stdout
        .split('\r\n')
        .slice(1, -1)
        .map(line => line.slice(0, 64));
    expect(await days('--to', '2026-11-20')).to.deep.equal([first]);
    expect(await days('--from', '2026-11-21')).to.deep.equal([second]);
    expect(await days('--from', '2026-11-20', '--to', '2026-11-21')).to.deep.equal([first, second]);
    for (const day of ['2026-02-30', 'yesterday', '20261121'])
      expect((await ledgerCommand(env, 'export', '--from', day)).stderr).to.include('--from must be a day');
  });

  it('exports more than a page, without loss, in order', async () => {
    const made: { id: string; createdAt: number }[] = [];
    for (let slice = 0; slice < 11; slice += 1) {
      const ids = await Promise.all(Array.from({ length: 100 }, () => paymentIn(ledger, 'settling')));
      for (const id of ids) made.push((await ledger.find(id))!);
      clock += 1;
    }
    made.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    const { stdout } = await ledgerCommand(env, 'export');
    const ids = stdout
      .split('\r\n')
      .slice(1, -1)
      .map(line => line.slice(0, 64));
    expect(ids).to.deep.equal(made.map(({ id }) => id));
  });

  it('records a refund of nothing but what is owed, with a signature, and not without asking the chain', async () => {
    const owed = await paymentIn(ledger, 'owed');
    const without = await ledgerCommand(env, 'refund', owed);
    expect(without.stderr).to.include('--tx');
    expect((await ledgerCommand(env, 'refund', owed, '--tx', 'not a signature')).status).to.equal(1);
    const unasked = await ledgerCommand(env, 'refund', owed, '--tx', SIGNATURE);
    expect(unasked).to.include({ status: 1, stdout: '' });
    expect(unasked.stderr).to.include('Set SOLANA_RPC_URL');
    expect((await ledger.find(owed))?.state).to.equal('owed');
    for (const state of ['claimed', 'settling', 'released', 'delivered'] as const) {
      const id = await paymentIn(ledger, state);
      const { status, stderr } = await ledgerCommand(env, 'refund', id, '--tx', SIGNATURE);
      expect(status).to.equal(1);
      expect(stderr).to.include(`is ${state}, not owed`).and.include('Nothing was changed');
      expect((await ledger.find(id))?.state).to.equal(state);
    }
  });
}

describe('npm run ledger', function () {
  this.timeout(SLOW_MS);
  it('explains itself, and fails for what it does not know', async () => {
    const help = await ledgerCommand({}, '--help');
    expect(help).to.include({ status: 0, stderr: '' });
    expect(help.stdout).to.include('Usage: npm run ledger');
    for (const args of [
      [],
      ['nonsense'],
      ['summary', 'extra'],
      ['owed', '--state', 'x'],
      ['--nonsense'],
      ['toString'],
    ]) {
      const { status, stderr, stdout } = await ledgerCommand({}, ...args);
      expect(status, args.join(' ')).to.equal(1);
      expect(stdout).to.equal('');
      expect(stderr).to.include('Usage: npm run ledger');
    }
  });

  it('says where it looked when there is no ledger', async () => {
    const { status, stderr } = await ledgerCommand({ STATE_DIR: '/nowhere' }, 'summary');
    expect(status).to.equal(1);
    expect(stderr).to.include('There is no ledger at /nowhere/ledger.db').and.not.include('    at ');
  });

  it('never shows the password of a database', () => {
    const shown = publicName('postgres://user:secret@host:5432/db?sslmode=require&password=secret');
    expect(shown).to.equal('postgres://user@host:5432/db?sslmode=require');
    expect(publicName('postgres://user:secret@/db?host=/tmp')).to.equal('postgres://user@/db?host=/tmp');
    expect(publicName('file:/a/b.db')).to.equal('file:/a/b.db');
  });

  it('quotes as RFC 4180 says and defuses formulas', () => {
    expect(csvLine(['a', null, 'b"c', 'd,e', 'f\r\ng', 7n])).to.equal('a,,"b""c","d,e","f\r\ng",7\r\n');
    for (const start of ['=', '+', '-', '@', '\t', '\r'])
      expect(csvLine([`${start}1`])).to.include(`'${start}1`);
  });
});

describe('ledger copy', function () {
  this.timeout(SLOW_MS);
  const database = process.env['TEST_DATABASE_URL'];
  const postgres = database ? () => postgresPlace(database) : undefined;
  const ways: [string, (() => Promise<Place>) | undefined, (() => Promise<Place>) | undefined][] = [
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

/** One statement, straight into a database. */
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

function copies(from: () => Promise<Place>, to: () => Promise<Place>): void {
  let source: Place;
  let target: Place;
  const opened: { close: () => Promise<void> }[] = [];

  const open = async (url: string, options: Partial<LedgerOptions> = {}): Promise<Ledger> => {
    const ledger = await openLedger({ url, ...OWNER, ...options });
    opened.push(ledger);
    return ledger;
  };
  const copy = (): Promise<Outcome> => ledgerCommand({}, 'copy', '--from', source.url, '--to', target.url);
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

  /** Payments in every state, a big answer, an order with a reply, a remembered text. @returns the ids, the order's last */
  async function fill(): Promise<string[]> {
    const ledger = await open(source.url);
    const ids: string[] = [];
    for (const state of ['claimed', 'settling', 'released', 'owed', 'delivered'] as const) {
      const identifiers = Array.from({ length: 60 }, (_, index) => `ünï'${state} ${index}`);
      ids.push(
        ...(await Promise.all(identifiers.map(identifier => paymentIn(ledger, state, { identifier })))),
      );
    }
    const heavy = await paymentIn(ledger, 'owed');
    const claim = (await ledger.adopt(heavy, 1_000))?.claim ?? 0;
    const body = Buffer.concat([Buffer.from([0, 255, 10]), randomBytes(600_000)]);
    await ledger.saveAnswer(heavy, claim, { status: 200, headers: { 'content-type': 'audio/wav' }, body });
    await ledger.openOrder({ payment: heavy, request: '{}', wanted: 3, deadline: 9 });
    const reply = { id: 'r', text: 'Good.', sentiment: 'neutral', inferred: true, house: true } as const;
    await ledger.addReply(heavy, { ...reply, respondent: 'p' });
    await ledger.setMeta('supported', '{"kinds":1}');
    await ledger.close();
    return [...ids, heavy];
  }

  it('moves every row, proves it, and retires the source only', async () => {
    const ids = await fill();
    const before = await openBooks({ url: source.url });
    const rows = await Promise.all(ids.map(id => before.find(id)));
    const heavy = ids.at(-1) ?? '';
    const answer = await before.answer(heavy);
    await before.close();
    const outcome = await copy();
    expect(outcome.status, outcome.stderr).to.equal(0);
    expect(outcome.stdout)
      .to.match(/payments +301 /)
      .and.match(/answers +61 /)
      .and.match(/replies +1 /);
    expect(await refused(source.url)).to.include('retired');
    const past = await ledgerCommand({ DATABASE_URL: source.url }, 'summary');
    expect(past).to.include({ status: 0 });
    expect(past.stderr).to.include('retired');
    const books = await openBooks({ url: target.url });
    opened.push(books);
    const still = (row: Payment | undefined): object | undefined =>
      row && { ...row, leased: false, attended: false };
    const moved = await Promise.all(ids.map(id => books.find(id)));
    expect(moved.map(still)).to.deep.equal(rows.map(still));
    expect((await books.answer(heavy))?.body.equals(answer?.body ?? Buffer.alloc(0))).to.equal(true);
    const ledger = await open(target.url);
    expect(await ledger.order(heavy)).to.include({ wanted: 3, deadline: 9 });
    expect((await ledger.replies(heavy)).map(({ respondent }) => respondent)).to.deep.equal(['p']);
    expect(await ledger.getMeta('supported')).to.equal('{"kinds":1}');
    expect(
      await ledger.addReply(heavy, {
        id: 's',
        text: 'x',
        sentiment: 'neutral',
        respondent: 'p',
        inferred: false,
        house: false,
      }),
    ).to.equal('duplicate');
    expect(await paymentIn(ledger, 'delivered')).to.have.length(64);
  });

  it('lets nobody write to the retired source any more', async () => {
    const [id] = await fill();
    expect((await copy()).status).to.equal(0);
    const books = await openBooks({ url: source.url });
    opened.push(books);
    const owed = (await books.list({ state: 'owed', limit: 1 }))[0]?.id ?? '';
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
    const again = await copy();
    expect(again.status).to.equal(1);
    expect(again.stderr).to.include('before, completely');
  });

  it('refuses a source that a server has open, and a target that was sold from', async () => {
    const server = await open(source.url);
    const running = await copy();
    expect(running.status).to.equal(1);
    expect(running.stderr).to.include('in use by');
    await server.close();
    const other = await open(target.url);
    await paymentIn(other, 'owed');
    await other.close();
    const full = await copy();
    expect(full.status).to.equal(1);
    expect(full.stderr).to.include('not empty');
    await (await open(source.url)).close();
    expect((await ledgerCommand({}, 'copy', '--from', source.url, '--to', source.url)).stderr).to.include(
      'same ledger',
    );
  });

  it('does not retire the source when a row does not arrive as it was', async () => {
    await (await open(target.url)).close();
    await fill();
    const spoil = target.url.startsWith('file:')
      ? `create trigger spoil after insert on payments when new.state = 'owed'
           begin update payments set amount = '1' where id = new.id; end`
      : `create function spoil() returns trigger language plpgsql as
           $$ begin if new.state = 'owed' then new.amount := '1'; end if; return new; end $$;
         create trigger spoil before insert on payments for each row execute function spoil()`;
    await execute(target.url, spoil);
    const { status, stderr } = await copy();
    expect(status).to.equal(1);
    expect(stderr).to.include('does not agree').and.include('payments');
    expect((await (await open(source.url)).counts()).owed.payments).to.equal(61);
    expect((await (await open(target.url)).counts()).owed.payments).to.equal(0);
  });

  it('completes a copy that was cut off after the source was retired', async () => {
    await fill();
    expect((await copy()).status).to.equal(0);
    await execute(target.url, `insert into meta (key, value) values ('arriving', 'somewhere')`);
    expect(await refused(target.url)).to.include('was not finished');
    const outcome = await copy();
    expect(outcome.status, outcome.stderr).to.equal(0);
    expect(outcome.stdout).to.include('completed');
    expect((await (await open(target.url)).counts()).owed.payments).to.equal(61);
  });

  it('sells from the source alone when a copy was cut off before that', async () => {
    await fill();
    expect((await copy()).status).to.equal(0);
    await execute(target.url, `insert into meta (key, value) values ('arriving', 'somewhere')`);
    await execute(source.url, `delete from meta where key = 'retired'`);
    expect((await copy()).stderr).to.include('interrupted');
    expect(await refused(target.url)).to.include('was not finished');
    await (await open(source.url)).close();
  });
}

type Listed = { signature: string; slot: number; failed?: boolean; transaction?: VersionedTransaction };

/** A Solana RPC that knows one account's history, the newest first. */
async function fakeRpc(
  history: Listed[],
): Promise<{ url: string; pages: () => number; close: () => Promise<void> }> {
  let pages = 0;
  const methods: Record<string, (params: [string, Record<string, unknown>]) => unknown> = {
    getGenesisHash: () => GENESIS,
    getSignaturesForAddress: ([, { before, limit, commitment }]) => {
      pages += 1;
      if (commitment !== 'finalized') throw new Error('only finalized history counts');
      const start = history.findIndex(({ signature }) => signature === before) + 1;
      return history.slice(start, start + Number(limit ?? 1_000)).map(({ signature, slot, failed }) => ({
        signature,
        slot,
        err: failed ? { InstructionError: [0, 'Custom'] } : null,
        memo: null,
        blockTime: null,
        confirmationStatus: 'finalized',
      }));
    },
    getTransaction: ([signature]) => {
      const found = history.find(each => each.signature === signature);
      if (!found?.transaction) return null;
      const bytes = Buffer.from(found.transaction.serialize()).toString('base64');
      return { slot: found.slot, meta: { err: null }, transaction: [bytes, 'base64'], blockTime: null };
    },
  };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', chunk => (text += String(chunk)));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(text) as {
        id: string;
        method: string;
        params: [string, Record<string, unknown>];
      };
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: methods[method]?.(params) }));
    });
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages: () => pages,
    close: () => new Promise(done => (server.closeAllConnections(), server.close(() => done()))),
  };
}

describe('ledger verify', function () {
  this.timeout(SLOW_MS);
  const payTo = Keypair.generate().publicKey;
  const account = getAssociatedTokenAddressSync(USDC, payTo, true);
  let place: Place;
  let ledger: Ledger;
  let history: Listed[];
  let slot: number;
  let rpc: Awaited<ReturnType<typeof fakeRpc>>;
  let stateDir: string;

  beforeEach(async () => {
    place = await sqlitePlace();
    stateDir = dirname(place.url.slice('file:'.length));
    const longAgo = Date.now() - 600_000;
    ledger = await openLedger({
      url: place.url,
      payTo: payTo.toBase58(),
      network: DEVNET,
      now: () => longAgo,
    });
    history = [];
    slot = 1_000;
    rpc = await fakeRpc(history);
  });

  afterEach(async () => {
    await ledger.close();
    await rpc.close();
    await place.remove();
  });

  function transfer(amount: bigint, to = account): VersionedTransaction {
    const payer = Keypair.generate();
    const from = getAssociatedTokenAddressSync(USDC, payer.publicKey);
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: Keypair.generate().publicKey.toBase58(),
      instructions: [createTransferCheckedInstruction(from, USDC, to, payer.publicKey, amount, 6)],
    }).compileToV0Message();
    return new VersionedTransaction(message);
  }
  const idOf = (transaction: VersionedTransaction): string =>
    createHash('sha256').update(transaction.message.serialize()).digest('hex');
  const land = (transaction: VersionedTransaction | undefined, extra: Partial<Listed> = {}): string => {
    const signature = `sig${(slot += 1)}`;
    history.unshift({ signature, slot, ...(transaction ? { transaction } : {}), ...extra });
    return signature;
  };
  /** A payment that is on chain as the ledger says. */
  const sold = async (amount = 10_000n, onChain = amount): Promise<string> => {
    const transaction = transfer(onChain);
    return paymentIn(ledger, 'delivered', {
      id: idOf(transaction),
      amount,
      network: DEVNET,
      settlement: land(transaction),
    });
  };
  type Verdict = {
    transfers: number;
    settled: number;
    unjudged: number;
    differences: { kind: string; payment: string | null; transaction: string | null }[];
  };
  const verify = async (...args: string[]): Promise<Outcome & { verdict: Verdict }> => {
    const outcome = await ledgerCommand(
      { STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url },
      'verify',
      '--json',
      ...args,
    );
    if (!outcome.stdout) throw new Error(outcome.stderr);
    return { ...outcome, verdict: JSON.parse(outcome.stdout) as Verdict };
  };

  it('agrees when every settled payment is on chain and every transfer in the ledger', async () => {
    for (let made = 0; made < 5; made += 1) await sold();
    await paymentIn(ledger, 'released');
    await paymentIn(ledger, 'settling');
    land(transfer(5n, Keypair.generate().publicKey), { failed: true });
    const { status, verdict } = await verify();
    expect(verdict).to.include({ transfers: 5, settled: 5, unjudged: 0 });
    expect(verdict.differences).to.deep.equal([]);
    expect(status).to.equal(0);
    const human = await ledgerCommand({ STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(human.stdout).to.include('No differences.');
  });

  it('names what is missing, failed, unknown, uncounted, unreadable, under another signature or of another amount', async () => {
    await sold();
    const missing = await paymentIn(ledger, 'delivered', { network: DEVNET, settlement: 'nowhere' });
    const failed = await paymentIn(ledger, 'owed', { settlement: land(undefined, { failed: true }) });
    const unknown = land(transfer(7_000_000n));
    const doubted = transfer(10_000n);
    const uncounted = await paymentIn(ledger, 'settling', { id: idOf(doubted), amount: 10_000n });
    land(doubted);
    const unreadable = land(undefined);
    const renamed = transfer(10_000n);
    const other = await paymentIn(ledger, 'delivered', {
      id: idOf(renamed),
      amount: 10_000n,
      settlement: 'renamed',
    });
    land(renamed);
    const short = await sold(10_000n, 9_999n);
    const { status, verdict } = await verify();
    expect(status).to.equal(1);
    const named = verdict.differences.map(({ kind, payment, transaction }) => [kind, payment ?? transaction]);
    expect(named).to.have.deep.members([
      ['missing', missing],
      ['failed', failed],
      ['unknown', unknown],
      ['uncounted', uncounted],
      ['unreadable', unreadable],
      ['signature', other],
      ['amount', short],
    ]);
    const human = await ledgerCommand({ STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(human.status).to.equal(1);
    expect(human.stdout).to.include('7 differences').and.include(missing).and.include('7.00 USDC');
  });

  it('pages through a long history, and within --limit judges only what it can see', async () => {
    const old = await paymentIn(ledger, 'delivered', { settlement: 'gone', slot: 1_000 });
    for (let made = 0; made < 1_100; made += 1) land(transfer(1n), { failed: true });
    await sold();
    const whole = await verify();
    expect(whole.verdict.differences.map(({ payment }) => payment)).to.deep.equal([old]);
    expect(rpc.pages()).to.equal(2);
    const part = await verify('--limit', '50');
    expect(part.verdict).to.include({ unjudged: 1, settled: 2, transfers: 1 });
    expect(part.status).to.equal(0);
  });

  it('judges nothing that was settled a moment ago', async () => {
    await ledger.close();
    ledger = await openLedger({ url: place.url, payTo: payTo.toBase58(), network: DEVNET });
    await paymentIn(ledger, 'delivered', { settlement: 'not finalized yet' });
    const { status, verdict } = await verify();
    expect(status).to.equal(0);
    expect(verdict).to.include({ young: 1 });
  });

  it('says what is missing: an RPC server, one of the same network, one that answers', async () => {
    await sold();
    expect((await ledgerCommand({ STATE_DIR: stateDir }, 'verify')).stderr).to.include('Set SOLANA_RPC_URL');
    await rpc.close();
    const down = await ledgerCommand({ STATE_DIR: stateDir, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(down.status).to.equal(1);
    expect(down.stderr).to.include('not reachable');
    const other = await sqlitePlace();
    await (
      await openLedger({
        url: other.url,
        payTo: payTo.toBase58(),
        network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      })
    ).close();
    rpc = await fakeRpc([]);
    const wrong = await ledgerCommand({ DATABASE_URL: other.url, SOLANA_RPC_URL: rpc.url }, 'verify');
    expect(wrong.stderr).to.include('Correct SOLANA_RPC_URL');
    await other.remove();
  });

  it('reads a real chain, which it finds through sandbox.json', async () => {
    const sandbox = await startSandbox({ stateDir, rpcPort: 0, facilitatorPort: 0, slotMs: 20 });
    try {
      const receiver = new PublicKey(sandbox.info.payTo);
      await ledger.close();
      const url = `file:${join(stateDir, 'real.db')}`;
      ledger = await openLedger({
        url,
        payTo: sandbox.info.payTo,
        network: sandbox.info.network,
        now: () => Date.now() - 600_000,
      });
      const secret = JSON.parse(await readFile(join(stateDir, 'buyer.json'), 'utf8')) as number[];
      const buyer = Keypair.fromSecretKey(Uint8Array.from(secret));
      const connection = new Connection(sandbox.rpc.url, 'confirmed');
      await connection.requestAirdrop(buyer.publicKey, LAMPORTS_PER_SOL);
      const mint = new PublicKey(sandbox.info.usdcMint);
      const send = async (
        amount: bigint,
      ): Promise<{ transaction: VersionedTransaction; signature: string }> => {
        const from = getAssociatedTokenAddressSync(mint, buyer.publicKey);
        const to = getAssociatedTokenAddressSync(mint, receiver, true);
        const { blockhash } = await connection.getLatestBlockhash();
        const instructions = [createTransferCheckedInstruction(from, mint, to, buyer.publicKey, amount, 6)];
        const message = new TransactionMessage({
          payerKey: buyer.publicKey,
          recentBlockhash: blockhash,
          instructions,
        });
        const transaction = new VersionedTransaction(message.compileToV0Message());
        transaction.sign([buyer]);
        return { transaction, signature: await connection.sendRawTransaction(transaction.serialize()) };
      };
      const slotNow = await connection.getSlot();
      const { transaction, signature } = await send(10_000n);
      await paymentIn(ledger, 'delivered', {
        id: idOf(transaction),
        amount: 10_000n,
        settlement: signature,
        slot: slotNow,
      });
      const stranger = await send(123n);
      const deadline = Date.now() + 10_000;
      let finalized = false;
      while (!finalized && Date.now() < deadline) {
        const { value } = await connection.getSignatureStatuses([stranger.signature]);
        finalized = value[0]?.confirmationStatus === 'finalized';
        await new Promise(resolve => setTimeout(resolve, 50));
      }
      const outcome = await ledgerCommand({ STATE_DIR: stateDir, DATABASE_URL: url }, 'verify', '--json');
      const verdict = JSON.parse(outcome.stdout || outcome.stderr) as Verdict;
      expect(verdict).to.include({ transfers: 1, settled: 1 });
      expect(verdict.differences.map(({ kind, transaction: named }) => [kind, named])).to.deep.equal([
        ['unknown', stranger.signature],
      ]);
      expect(outcome.status).to.equal(1);
    } finally {
      await sandbox.close();
    }
  });
});
