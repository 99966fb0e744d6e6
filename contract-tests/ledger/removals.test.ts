import { inspect } from 'node:util';
import { expect } from 'chai';
import { execute } from '../../src/ledger/engine.js';
import { idBytes } from '../../src/ledger/ids.js';
import { openLedgerReader } from '../../src/ledger/store.js';
import { sql } from '../../src/ledger/sql.js';
import { closeLater, eachWithANewLedger, ledger, place, time } from '../support/ledger-suite.js';
import { onEachEngine, type LedgerPlace } from '../support/ledger-places.js';
import { claimed, delivered, payment, settles } from '../support/ledgers.js';

const TEXT = 'Something that nobody should read.';
const REQUEST = JSON.stringify({ question: TEXT });
const PAID = 10_000n;

onEachEngine('what the operator removes', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  async function ordered(): Promise<{ id: string; claim: number }> {
    const request = payment({ flow: 'upfront', request: REQUEST });
    const { id } = request;
    const claim = await claimed(ledger, request);
    await settles(ledger, id, claim);
    await ledger.owe(id, claim, { settlement: `sig ${id}` });
    await ledger.openOrder({ payment: id, request: REQUEST, wanted: 1, deadline: time.now + 60_000 });
    return { id, claim };
  }

  const ANSWER = { status: 200, headers: {}, body: Buffer.from(TEXT) };

  it('from an answered order: what was asked, answered and written is gone, and the books are whole', async () => {
    const store = await ledger.openStore({
      name: 'survey',
      tables: { survey_replies: ['payment', 'reply'] },
      migrations: [
        ['create table survey_replies (payment {bytes} not null, reply bigint not null, text text not null)'],
      ],
    });
    const [{ id, claim }, other] = [await ordered(), await ordered()];
    for (const each of [id, other.id])
      await store.write(function* () {
        yield* execute(sql`insert into survey_replies values (${idBytes(each)}, ${1}, ${TEXT})`);
      });
    await ledger.saveAnswer(id, claim, ANSWER);
    await ledger.deliver(id, claim, { settlement: `sig ${id}`, answerExpiresAt: time.now + 60_000 });
    const before = await ledger.counts();
    const beside = await openLedgerReader({ url: place.url, now: () => time.now });
    closeLater(beside);
    expect(await beside.removeContents(id)).to.equal('removed');
    expect(await ledger.answer(id)).to.equal(undefined);
    expect(await ledger.find(id)).to.include({ state: 'delivered', request: null, amount: PAID, repaid: 0n });
    expect((await ledger.order(id))?.request).to.equal('');
    const left = [await ledger.storedRows(id), await ledger.find(id), await ledger.order(id)];
    expect(inspect(left, { depth: null })).not.to.include(TEXT);
    expect(await ledger.counts()).to.deep.equal(before);
    expect(JSON.stringify(await ledger.storedRows(other.id))).to.include(TEXT);
    expect((await ledger.order(other.id))?.request).to.equal(REQUEST);
  });

  it('is not what a buyer still waits for', async () => {
    const { id } = await ordered();
    const working = payment();
    await claimed(ledger, working);
    expect(await ledger.removeContents(id)).to.equal('open');
    expect(await ledger.removeContents(working.id)).to.equal('open');
    expect(await ledger.removeContents('f'.repeat(64))).to.equal('unknown');
    expect((await ledger.order(id))?.request).to.equal(REQUEST);
  });

  it('from an order that is rejected: nobody works on it or starts it again, and all of it can be refunded', async () => {
    const { id, claim } = await ordered();
    await ledger.holdTarget('somebody', [], time.now + 60_000);
    expect(await ledger.rejectOrder(id, 'It insults people.')).to.equal(true);
    expect(await ledger.saveAnswer(id, claim, ANSWER)).to.equal(false);
    expect(await ledger.deliver(id, claim, { settlement: 's', answerExpiresAt: time.now })).to.equal(false);
    expect(await ledger.retryOrder(id, time.now + 60_000)).to.equal(undefined);
    expect(await ledger.reopenOrder(id, time.now + 60_000)).to.equal(undefined);
    expect(await ledger.order(id)).to.include({
      ...{ request: '', failure: 'It insults people.' },
      ...{ nextAttemptAt: null, finishedAt: time.now },
    });
    expect(await ledger.find(id)).to.include({ state: 'owed', request: null });
    expect((await ledger.givenUpOrders(0)).map(each => each.id)).to.deep.equal([id]);
    expect((await ledger.events(10)).map(({ kind, facts }) => [kind, facts['final']])).to.deep.equal([
      ['payment.owed', true],
    ]);
    const started = await ledger.startRepayment({ payment: id, amount: PAID, way: 'key', after: 1_000 });
    expect(started.kind).to.equal('started');
    expect(await ledger.removeContents(id)).to.equal('removed');
  });

  it('is rejected only where an order is owed', async () => {
    const request = payment();
    await delivered(ledger, request);
    expect(await ledger.rejectOrder(request.id, 'No.')).to.equal(false);
    expect(await ledger.rejectOrder('f'.repeat(64), 'No.')).to.equal(false);
    expect(await ledger.answer(request.id)).not.to.equal(undefined);
  });
}
