import { expect } from 'chai';
import { CanaryRuns, readCanaryRun, type CanaryRun } from '../../src/operator/canary-runs.js';
import { eachWithANewLedger, ledger } from '../support/ledger-suite.js';
import { onEachEngine } from '../support/ledger-places.js';

const PAYER = '7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU';
const PAYMENT = 'ab'.repeat(32);

function run(number: number, more: Partial<CanaryRun> = {}): CanaryRun {
  return { id: `run-${String(number).padStart(8, '0')}`, at: number, tookMs: 400, payer: PAYER, ...more };
}

onEachEngine('The runs of the canary', make => {
  eachWithANewLedger(make);

  it('are stored once, no matter how many times they are reported, newest first', async () => {
    const runs = new CanaryRuns(ledger);
    for (const at of [9, 10, 9, 1_800_000_000_000]) await runs.keep(run(at));
    expect((await runs.newest()).map(({ at }) => at)).to.deep.equal([1_800_000_000_000, 10, 9]);
  });

  it('are kept up to a limit', async () => {
    const runs = new CanaryRuns(ledger);
    for (let at = 0; at < 90; at++) await runs.keep(run(at));
    const kept = await runs.newest();
    expect([kept.length, kept[0]?.at, kept.at(-1)?.at]).to.deep.equal([84, 89, 6]);
  });

  it('notify the operator of a failed run, once, with its payment and the reason', async () => {
    await ledger.setTargets([{ name: 'shop.example-1', kinds: [] }]);
    await ledger.refreshTargets();
    const runs = new CanaryRuns(ledger);
    const failed = run(1, {
      operation: 'summarize',
      payment: PAYMENT,
      amount: '10000',
      fault: 'It is cold.',
    });
    for (const each of [run(2), failed, failed]) await runs.keep(each);
    const events = await ledger.events(10);
    expect(events.map(({ kind, subject }) => [kind, subject])).to.deep.equal([['canary.failed', PAYMENT]]);
    expect(events[0]?.facts).to.deep.equal({
      ...{ operation: 'summarize', payment: PAYMENT, amount: '10000', payer: PAYER, why: 'It is cold.' },
    });
  });
});

describe("A canary's report", () => {
  it('is read back as it was written', () => {
    const whole = run(1, {
      operation: 'summarize',
      payment: PAYMENT,
      amount: '1',
      settlement: 's',
      fault: 'f',
    });
    expect(readCanaryRun(JSON.stringify(whole))).to.deep.equal(whole);
  });

  for (const [name, wrong] of Object.entries({
    'invalid JSON': '{',
    'null in place of an object': 'null',
    'an invalid time': JSON.stringify({ ...run(1), at: 1.5 }),
    'no wallet': JSON.stringify({ ...run(1), payer: '' }),
    'an id that could be part of another key': JSON.stringify({ ...run(1), id: 'a%_ b c d e f' }),
    'an invalid payment': JSON.stringify({ ...run(1), payment: '<b>' }),
    'an invalid amount': JSON.stringify({ ...run(1), amount: '-1' }),
    'a text that is too long': JSON.stringify({ ...run(1), fault: 'x'.repeat(501) }),
  }))
    it(`is refused with ${name}`, () => expect(readCanaryRun(wrong)).to.equal(undefined));
});
