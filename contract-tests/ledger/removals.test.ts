import { inspect } from 'node:util';
import { expect } from 'chai';
import { execute } from '../../src/ledger/engine.js';
import { idBytes } from '../../src/ledger/ids.js';
import { openLedgerReader, REMOVED_PAYER, type Anonymizer } from '../../src/ledger/store.js';
import { sql } from '../../src/ledger/sql.js';
import { closeLater, eachWithANewLedger, ledger, place, time } from '../support/ledger-suite.js';
import { onEachEngine, type LedgerPlace, PAYER } from '../support/ledger-places.js';
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

  it('from an answered order: question, answer and replies are gone, and the books are unchanged', async () => {
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

  it('does not include what a buyer is still waiting for', async () => {
    const { id } = await ordered();
    const working = payment();
    await claimed(ledger, working);
    expect(await ledger.removeContents(id)).to.equal('open');
    expect(await ledger.removeContents(working.id)).to.equal('open');
    expect(await ledger.removeContents('f'.repeat(64))).to.equal('unknown');
    expect((await ledger.order(id))?.request).to.equal(REQUEST);
  });

  it('from an order that is rejected: no server works on it or starts it again, and all of it can be refunded', async () => {
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

  it('includes a rejected order only if that order is owed', async () => {
    const request = payment();
    await delivered(ledger, request);
    expect(await ledger.rejectOrder(request.id, 'No.')).to.equal(false);
    expect(await ledger.rejectOrder('f'.repeat(64), 'No.')).to.equal(false);
    expect(await ledger.answer(request.id)).not.to.equal(undefined);
  });

  const anonymizer: Anonymizer = {
    sale: evidence => `${evidence} without`,
    refund: (evidence, signature) => (signature === 'own' ? `${evidence} without` : null),
  };
  const [payer, other] = [PAYER, 'Payer222'];

  async function final(of: Parameters<typeof payment>[0] = {}): Promise<string> {
    const request = payment({ payer, ...of });
    await delivered(ledger, request, time.now + 60_000);
    await ledger.audited(request.id, 'kept');
    return request.id;
  }

  describe('of a payer, in every finished payment', () => {
    it('deletes its address, contents and refunds, and leaves the books unchanged', async () => {
      const [sale, refunded, another] = [await final(), await final(), await final({ payer: other })];
      const started = await ledger.startRepayment({ payment: refunded, amount: 1n, way: 'wallet', after: 1 });
      if (started.kind !== 'started') throw new Error(started.kind);
      const landed = { signature: 'back', slot: 2_000, at: time.now, source: 'Receiver111' };
      await ledger.landRepayment(started.repayment.id, landed);
      const sums = async (): Promise<unknown> => [await ledger.counts(), await ledger.turnover()];
      const before = await sums();
      expect(await ledger.removePayer(payer, anonymizer)).to.deep.equal({ removed: 2, open: 0 });
      expect(await sums()).to.deep.equal(before);
      for (const id of [sale, refunded]) {
        const found = await ledger.find(id);
        expect(found).to.include({ payer: REMOVED_PAYER, evidence: 'kept without', requestId: null });
        expect(await ledger.answer(id)).to.equal(undefined);
      }
      const left = [await ledger.repaymentsOf(refunded), await ledger.paymentsNamed(payer)];
      expect(inspect(left, { depth: null })).not.to.include(payer);
      expect((await ledger.lookUp('0'.repeat(64), payer)).payerKnown).to.equal(false);
      expect(await ledger.find(another)).to.include({ payer: other, evidence: 'kept' });
      expect((await ledger.lookUp('0'.repeat(64), other)).payerKnown).to.equal(true);
    });

    it('leaves payments that are unfinished, not final or being refunded, and says how many', async () => {
      const { id: owed } = await ordered();
      const young = payment({ payer });
      await delivered(ledger, young);
      const refunding = await final();
      await ledger.startRepayment({ payment: refunding, amount: 1n, way: 'wallet', after: 1 });
      expect(await ledger.removePayer(payer, anonymizer)).to.deep.equal({ removed: 0, open: 3 });
      for (const id of [owed, young.id, refunding]) expect((await ledger.find(id))?.payer).to.equal(payer);
    });

    it('keeps a copy of the payment recognizable: it is never claimed a second time', async () => {
      const request = payment({ payer });
      await delivered(ledger, request, time.now + 60_000);
      await ledger.audited(request.id, 'kept');
      await ledger.removePayer(payer, anonymizer);
      expect((await ledger.claim(request)).kind).to.equal('known');
    });

    it('includes payments that were never settled, even if there are more rows than one batch reads', async () => {
      const request = payment({ payer });
      const number = await claimed(ledger, request);
      await settles(ledger, request.id, number);
      await ledger.release(request.id, number, 'expired');
      await ledger.audited(request.id, 'kept');
      for (let n = 0; n < 150; n += 1) await final();
      expect(await ledger.removePayer(payer, anonymizer)).to.deep.equal({ removed: 151, open: 0 });
      expect((await ledger.find(request.id))?.payer).to.equal(REMOVED_PAYER);
    });
  });

  describe('after a set time', () => {
    const texts = async (): Promise<void> => {
      while (await ledger.removeOldTexts(time.now));
    };
    const kept = { own: new Set(['Mine']), anonymizer };
    const payers = async (): Promise<void> => {
      while (await ledger.removeOldPayers(time.now, kept));
    };

    it('includes the request and the answer once the answer has expired; for an open payment, only once it is finished', async () => {
      const young = await ordered();
      const orders = [];
      for (let n = 0; n < 120; n += 1) {
        const { id, claim } = await ordered();
        await ledger.deliver(id, claim, { settlement: `sig ${id}`, answerExpiresAt: time.now + 60_000 });
        orders.push(id);
      }
      time.now += 1_000;
      await texts();
      expect((await ledger.order(orders[0] ?? ''))?.request).to.equal(REQUEST);
      time.now += 60_000;
      while (await ledger.prune());
      await texts();
      await texts();
      for (const id of orders) expect((await ledger.order(id))?.request).to.equal('');
      expect((await ledger.order(young.id))?.request).to.equal(REQUEST);
      await ledger.deliver(young.id, young.claim, { settlement: 'sig', answerExpiresAt: time.now });
      time.now += 1;
      while (await ledger.prune());
      await texts();
      await texts();
      expect((await ledger.order(young.id))?.request).to.equal('');
      expect((await ledger.find(young.id))?.request).to.equal(null);
    });

    it('includes the id of the last request, even of an open payment', async () => {
      const request = payment({ requestId: 'a request' });
      await claimed(ledger, request);
      const { id } = request;
      expect(await ledger.removeOldTexts(time.now)).to.equal(false);
      expect((await ledger.find(id))?.requestId).to.equal('a request');
      time.now += 1;
      await texts();
      expect((await ledger.find(id))?.requestId).to.equal(null);
    });

    it('includes the payer, except wallets of the operator and a payer that is still waiting', async () => {
      const [sale, mine, young] = [await final(), await final({ payer: 'Mine' }), payment({ payer })];
      await delivered(ledger, young, time.now + 120_000);
      time.now += 60_001;
      while (await ledger.prune());
      await payers();
      expect((await ledger.find(sale))?.payer).to.equal(REMOVED_PAYER);
      expect((await ledger.find(mine))?.payer).to.equal('Mine');
      expect((await ledger.find(young.id))?.payer).to.equal(payer);
      expect((await ledger.lookUp('0'.repeat(64), payer)).payerKnown).to.equal(true);
    });
  });
}
