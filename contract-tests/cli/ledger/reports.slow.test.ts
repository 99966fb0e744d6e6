import { expect } from 'chai';
import { csvLine } from '../../../src/cli/ledger/csv.js';
import { publicName } from '../../../src/ledger/move-ledger.js';
import { openLedger } from '../../../src/ledger/store.js';
import type { Ledger } from '../../../src/ledger/store.js';
import { ChainHeights } from '../../../src/rails/solana/chain-heights.js';
import { openReplies } from '../../support/brand-replies.js';
import { OWNER } from '../../support/ledgers.js';
import { aRefund, PLACES, paymentIn, sqlitePlace, forServer } from '../../support/ledger-places.js';
import type { LedgerPlace } from '../../support/ledger-places.js';
import { SLOW_MS, jsonOf, ledgerCommand } from '../../support/ledger-command.js';

const SIGNATURE = '5'.repeat(88);
const DAY_1 = Date.parse('2026-11-20T23:59:59.500Z');

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

/** All commands run while the server that wrote the ledger is running. */
function reports(make: () => Promise<LedgerPlace>): void {
  let place: LedgerPlace;
  let ledger: Ledger;
  let clock: number;
  let env: Record<string, string>;

  beforeEach(async () => {
    clock = DAY_1;
    place = await make();
    env = { DATABASE_URL: place.url };
    ledger = await openLedger({ ...forServer(place.url), ...OWNER, now: () => clock });
  });

  afterEach(async () => {
    await ledger.close();
    await place.remove();
  });

  it('sums revenue by operation and UTC day, and counts payments by state', async () => {
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

  it("shows the purchases of the operator's own wallets separately, in the summary and in the export", async () => {
    const [mine, theirs] = ['Mine11111', 'Theirs111'];
    const sold = { operation: 'summarize', amount: 10_000n };
    for (const payer of [mine, theirs, theirs]) await paymentIn(ledger, 'delivered', { ...sold, payer });
    const owning = { ...env, OWN_WALLETS: `${mine}, ` };
    const { revenue, totals } = await jsonOf<{ revenue: object[]; totals: object }>(owning, 'summary');
    expect(revenue[0]).to.include({ payments: 3, revenue: '0.03', ownPayments: 1, ownRevenue: '0.01' });
    expect(totals).to.include({ revenue: '0.03', ownRevenue: '0.01' });
    expect((await ledgerCommand(owning, 'summary')).stdout).to.include(
      'your own wallets (OWN_WALLETS): 0.01',
    );
    const lines = (await ledgerCommand(owning, 'export')).stdout.trim().split('\r\n');
    expect(lines.map(line => line.split(',').at(-1))).to.have.members(['own', 'yes', 'no', 'no']);
    expect((await ledgerCommand(env, 'export')).stdout).not.to.include(',own');
  });

  it('shows the greatest block height seen, and resets a wrong one, while the server is running', async () => {
    expect((await ledgerCommand(env, 'height')).stdout).to.include('No server of this ledger has seen');
    const heights = new ChainHeights(ledger, { now: () => clock });
    await heights.record(9_000_000);
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

  it('lists the newest payments, or only those of one state, payer or operation', async () => {
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

  it('shows everything about one payment except its answer, with the signed transaction only on request', async () => {
    const id = await paymentIn(ledger, 'delivered', { evidence: 'U0lHTkVE', identifier: 'order 7' });
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

  it('lists all payments that match a text if there are several, and reports if there are none', async () => {
    const one = await paymentIn(ledger, 'owed', { id: `abcdef12${'1'.repeat(56)}` });
    await paymentIn(ledger, 'owed', { id: `abcdef12${'f'.repeat(56)}` });
    const outcomes = await Promise.all(
      ['abcdef12', 'abcdef1', '%', 'abcdef13', one].map(text => ledgerCommand(env, 'show', text)),
    );
    expect(outcomes.map(({ status }) => status)).to.deep.equal([0, 1, 1, 1, 0]);
    expect(outcomes[0]?.stdout).to.include('abcdef1211').and.include('abcdef12ff');
    expect(outcomes[1]?.stderr).to.include('first 8 digits');
    expect(outcomes[3]?.stderr).to.include('There is no payment abcdef13');
  });

  it('shows an order with its replies, without control characters for a terminal', async () => {
    const payment = await paymentIn(ledger, 'owed');
    await ledger.openOrder({ payment, request: '{"q":1}', wanted: 2, deadline: clock + 1 });
    const reply = { sentiment: 'negative', respondent: 'p1', isSample: false } as const;
    const replies = await openReplies(ledger);
    await replies.add(payment, { ...reply, id: 'r1', text: 'bad\u001b[2J\u202e' });
    await replies.add(payment, { ...reply, id: 'r2', text: 'spam', respondent: 'p2' });
    await replies.reject(payment, 'r2');
    type Shown = { order: unknown; stored: Record<string, Record<string, unknown>[]> };
    const shown = await jsonOf<Shown>(env, 'show', payment);
    expect(shown.order).to.include({ wanted: 2, done: 1, attempts: 1, request: '{"q":1}' });
    const [first, second, ...rest] = shown.stored['brand_feedback_replies'] ?? [];
    const bad = {
      reply: 'r1',
      text: 'bad\u001b[2J\u202e',
      sentiment: 'negative',
      respondent: 'p1',
      inferred: 0,
    };
    expect(first)
      .to.include({ ...bad, sample: 0, rejected_at: null })
      .and.not.have.property('payment');
    expect(second).to.include({ reply: 'r2' });
    expect([second?.['rejected_at'], rest]).to.deep.equal([clock, []]);
    const { stdout } = await ledgerCommand(env, 'show', payment);
    expect(stdout)
      .to.include('brand_feedback_replies')
      .and.include('negative')
      .and.not.include('\u001b')
      .and.not.include('\u202e');
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
    expect(first?.why).to.include('not yet answered');
    expect(second).to.include({ id: failed, attempts: 2 });
    expect(second?.why).to.include('attempt 2 ended without an answer (0 of 3 done)');
    expect((await ledgerCommand(env, 'owed')).stdout).to.include('2 payments, 1.00 USDC owed');
  });

  it('starts another attempt at an order that only the operator may retry, while the server is running', async () => {
    const payment = await paymentIn(ledger, 'owed');
    await ledger.openOrder({ payment, request: '{}', wanted: 0, deadline: clock });
    const early = await ledgerCommand(env, 'retry', payment);
    expect(early.status).to.equal(1);
    expect(early.stderr).to.match(
      /an attempt is in progress.*ledger -- show [0-9a-f]{64}\. Nothing was changed/,
    );
    const { claim } = (await ledger.adopt(payment, 60_000))!;
    const failed = { attempt: 1, failure: 'It broke. All 5 attempts are used up.', againMs: null };
    await ledger.failOrder(payment, claim, failed);
    const [{ why }] = await jsonOf<[{ why: string }]>(env, 'owed');
    expect(why)
      .to.include('All 5 attempts are used up. Retry it')
      .and.include(`retry ${payment.slice(0, 16)}`);
    const { stdout } = await ledgerCommand(env, 'retry', payment.slice(0, 16));
    expect(stdout).to.include(`Requested attempt 2 at the order ${payment}`);
    expect(await ledger.order(payment)).to.include({ finishedAt: null, tries: 2 });
    const delivered = await paymentIn(ledger, 'delivered');
    expect((await ledgerCommand(env, 'retry', delivered)).stderr).to.include('not an owed order');
  });

  it('exports every payment that was or may have been settled in the given days', async () => {
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

  it('exports more than a page, completely and in order', async () => {
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

  it('refuses to record a refund of an unpaid payment, and one without a signature or a check on the chain', async () => {
    const owed = await paymentIn(ledger, 'owed');
    expect((await ledgerCommand(env, 'refund', owed, '--tx', 'not a signature')).status).to.equal(1);
    const unasked = await ledgerCommand(env, 'refund', owed, '--tx', SIGNATURE);
    expect(unasked).to.include({ status: 1, stdout: '' });
    expect(unasked.stderr).to.include('Set SOLANA_RPC_URL');
    expect((await ledger.find(owed))?.state).to.equal('owed');
    for (const state of ['claimed', 'settling', 'released'] as const) {
      const id = await paymentIn(ledger, state);
      const { status, stderr } = await ledgerCommand(env, 'refund', id, '--tx', SIGNATURE);
      expect(status).to.equal(1);
      expect(stderr).to.include(`is ${state}: its money has not moved`).and.include('Nothing was changed');
      expect((await ledger.find(id))?.state).to.equal(state);
    }
  });
}

describe('npm run ledger', function () {
  this.timeout(SLOW_MS);
  it('describes itself, and fails for an unknown command', async () => {
    const help = await ledgerCommand({}, '--help');
    expect(help).to.include({ status: 0, stderr: '' });
    expect(help.stdout).to.include('Usage: npm run --silent ledger');
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
      expect(stderr).to.include('Usage: npm run --silent ledger');
    }
  });

  it('says where it looked for a ledger if there is none', async () => {
    const { status, stderr } = await ledgerCommand({ STATE_DIR: '/nowhere' }, 'summary');
    expect(status).to.equal(1);
    expect(stderr).to.include('There is no ledger at /nowhere/ledger.db').and.not.include('    at ');
  });

  it('never shows the password of a database', () => {
    const shown = publicName('postgres://user:secret@host:5432/db?sslmode=require&password=secret');
    expect(shown).to.equal('postgres://user@host:5432/db?sslmode=require');
    expect(publicName('postgres://user:secret@/db?host=/tmp')).to.equal('postgres://user@/db?host=/tmp');
    expect(publicName('postgres://user:secret@one:5432,two/db')).to.equal('postgres://user@one:5432,two/db');
    expect(publicName('file:/a/b.db')).to.equal('file:/a/b.db');
  });

  it('quotes as RFC 4180 requires, and neutralizes formulas', () => {
    expect(csvLine(['a', null, 'b"c', 'd,e', 'f\r\ng', 7n])).to.equal('a,,"b""c","d,e","f\r\ng",7\r\n');
    for (const start of ['=', '+', '-', '@', '\t', '\r'])
      expect(csvLine([`${start}1`])).to.include(`'${start}1`);
  });
});
