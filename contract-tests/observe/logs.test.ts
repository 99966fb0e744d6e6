import { expect } from 'chai';
import { faultLog } from '../../src/observe/fault-log.js';
import type { Event } from '../../src/observe/observer.js';
import { withoutRepeats } from '../../src/observe/repeats.js';
import { saleLog } from '../../src/observe/sale-log.js';

type Line = { level: string; message: string; [field: string]: unknown };

function logOf(lines: Line[]) {
  // Pino omits undefined fields.
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push(JSON.parse(JSON.stringify({ ...fields, level, message })) as Line);
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    isLevelEnabled: () => true,
  };
}

const MONEY = { operation: 'summarize', payment: 'ab'.repeat(32), payer: 'Payer', amount: 10_000n };
const ANSWERED = {
  kind: 'answered',
  transport: 'http',
  requestId: 'r1',
  paid: false,
  ms: 12.34,
  ...MONEY,
} as const;

describe('The log of sales', () => {
  let lines: Line[];
  const hear = (event: Event): void => saleLog(logOf(lines)).hear(event);
  beforeEach(() => (lines = []));

  it('has one line per sale: request, operation, payment, payer, USDC and how long each step took', () => {
    const spent = { verify: 3.04, work: 20, settle: 400.06 };
    hear({ kind: 'sold', ...MONEY, settlement: 'Sig', requestId: 'r1', spent });
    hear({ ...ANSWERED, status: 200, paid: true, spent });
    const [sale, answer] = lines;
    expect(sale).to.deep.equal({
      level: 'info',
      message: 'sold summarize for 0.01 USDC',
      requestId: 'r1',
      operation: 'summarize',
      payment: MONEY.payment,
      payer: 'Payer',
      usdc: '0.01',
      settlement: 'Sig',
      verifyMs: 3,
      workMs: 20,
      settleMs: 400.1,
    });
    expect(answer?.level).to.equal('debug');
  });

  it('has a line for each refused and each failed paid call; a 5xx is a warning', () => {
    for (const status of [400, 402, 502, 503]) hear({ ...ANSWERED, status, error: 'amount: too little' });
    expect(lines.map(({ level, status }) => [level, status])).to.deep.equal([
      ['info', 400],
      ['info', 402],
      ['warn', 502],
      ['warn', 503],
    ]);
    expect(lines[1]?.message).to.equal('refused a payment for summarize: amount: too little');
  });

  it('marks a sale that was found on the chain later', () => {
    hear({ kind: 'sold', ...MONEY, settlement: 'Sig' });
    expect(lines[0]?.message).to.match(/^sold summarize for 0\.01 USDC, found on chain after/);
  });

  it('has a line for every change of an order', () => {
    hear({ kind: 'order', change: 'paid', ...MONEY, requestId: 'r1' });
    hear({ kind: 'order', change: 'failed', ...MONEY, why: 'nobody answered' });
    expect(lines.map(({ level, message }) => `${level}: ${message}`)).to.deep.equal([
      'info: an order for summarize was paid',
      'warn: an order for summarize failed and stays owed: nobody answered',
    ]);
  });

  it('says when no further attempt at an order starts automatically', () => {
    hear({ kind: 'order', change: 'given up', ...MONEY, why: 'All 5 attempts are used up.' });
    expect(lines[0]).to.include({ level: 'error', payment: MONEY.payment });
    expect(lines[0]?.message).to.match(
      /no further attempt starts automatically: All 5 attempts are used up\.$/,
    );
  });

  it('has a line for calls that wait for an order only at level debug', () => {
    for (const status of [503, 502])
      hear({ ...ANSWERED, status, paid: true, error: 'Paid.', reported: true });
    expect(lines.map(({ level }) => level)).to.deep.equal(['debug', 'debug']);
  });

  it('has an error when a facilitator reports a settlement that is not on the chain', () => {
    hear({ kind: 'false settlement', ...MONEY, settlement: 'Sig' });
    expect(lines[0]).to.include({ level: 'error', payment: MONEY.payment, usdc: '0.01', settlement: 'Sig' });
    expect(lines[0]?.message).to.match(/^THE FACILITATOR REPORTED A SETTLEMENT THAT IS NOT ON CHAIN/);
  });

  it('shows decisions only at level debug', () => {
    hear({ kind: 'decided', requestId: 'r1', payment: MONEY.payment, next: 'sell' });
    expect(lines.map(({ level, next }) => [level, next])).to.deep.equal([['debug', 'sell']]);
  });
});

describe('Repeated errors', () => {
  it('are logged in one line, and in a second one with their count when they end', () => {
    const lines: Line[] = [];
    let now = 1_000_000;
    const faults = faultLog(logOf(lines), () => now);
    const ledger = (failed: string): void => faults.hear({ kind: 'ledger', failed });
    faults.committed();
    for (let n = 0; n < 25; n++) {
      ledger('the database is gone');
      now += 1_000;
    }
    expect(faults.failing()).to.deep.equal(['the ledger']);
    faults.committed();
    expect(lines.map(({ level, message }) => `${level}: ${message}`)).to.deep.equal([
      'error: the ledger fails: the database is gone',
      'info: the ledger is back after 25 s (25 failures)',
    ]);
    expect(faults.failing()).to.deep.equal([]);
  });

  it('that continue are logged once a minute', () => {
    const lines: Line[] = [];
    let now = 0;
    const faults = faultLog(logOf(lines), () => now);
    for (; now <= 120_000; now += 100) faults.hear({ kind: 'ledger', failed: 'gone' });
    expect(lines.map(({ message }) => message)).to.deep.equal([
      'the ledger fails: gone',
      'the ledger is still failing, 601 times in 60 s: gone',
      'the ledger is still failing, 1201 times in 120 s: gone',
    ]);
  });

  it('are still one error if some calls in between succeed', () => {
    const lines: Line[] = [];
    let now = 0;
    const faults = faultLog(logOf(lines), () => now);
    for (let n = 0; n < 20; n++, now += 100)
      faults.hear({
        kind: 'upstream',
        upstream: 'summarizer',
        operation: 'summarize',
        ms: 1,
        ...(n % 2 === 0 ? { result: 'failed', why: 'no answer' } : { result: 'ok' }),
      });
    expect(lines.map(({ message }) => message)).to.deep.equal(['backend summarizer fails: no answer']);
  });

  it('are summed up in one line with the payments concerned', () => {
    const lines: Line[] = [];
    const log = withoutRepeats(logOf(lines), 60_000);
    for (const payment of ['a', 'b', 'c']) log.warn({ payment, error: new Error('gone') }, 'could not look');
    log.warn({ payment: 'd' }, 'a settlement is unresolved');
    log.warn({ payment: 'e' }, 'a settlement is unresolved');
    expect(lines.map(({ message, payment }) => [message, payment])).to.deep.equal([
      ['could not look', 'a'],
      ['a settlement is unresolved', 'd'],
      ['a settlement is unresolved', 'e'],
    ]);
    log.flush();
    expect(lines.at(-1)).to.deep.equal({
      level: 'warn',
      message: 'could not look (2 more within 60 s)',
      count: 2,
      payments: ['b', 'c'],
    });
  });

  it("are logged in one line with their count and payer if a payer's calls fail in the same way", () => {
    const lines: Line[] = [];
    const log = withoutRepeats(logOf(lines), 60_000);
    const sales = saleLog({ ...logOf(lines), ...log });
    for (let calls = 0; calls < 300; calls++)
      sales.hear({ ...ANSWERED, requestId: `r${calls}`, status: 503, error: 'It keeps failing.' });
    sales.hear({ ...ANSWERED, status: 503, error: 'It is busy.' });
    log.flush();
    expect(lines.map(({ message }) => message)).to.deep.equal([
      '503 for summarize: It keeps failing.',
      '503 for summarize: It is busy.',
      '503 for summarize: It keeps failing. (299 more within 60 s)',
    ]);
    expect(lines[2]).to.deep.include({ count: 299, payers: ['Payer'], payments: [MONEY.payment] });
  });
});
