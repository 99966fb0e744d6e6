import { expect } from 'chai';
import { FOUND_ON_CHAIN, openLedgerReader, type FoundPayment } from '../../src/ledger/store.js';
import { claimed, delivered, faultOf, OWNER, payment, settles } from '../support/ledgers.js';
import {
  closeLater,
  eachWithANewLedger,
  ledger,
  open,
  place,
  SLOW_MS,
  time,
} from '../support/ledger-suite.js';
import { onEachEngine, paymentIn } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

onEachEngine('ledger', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  const found = (of = payment()): FoundPayment => ({
    id: of.id,
    payer: of.payer,
    amount: of.amount,
    network: of.network,
    evidence: of.evidence,
    settlement: 'its transfer',
    slot: 2_000,
    paidAt: time.now - 60_000,
    payTo: OWNER.payTo,
  });
  const call = (operation = 'summarize', identifier: string | null = null) => ({
    payer: payment().payer,
    operation,
    requestHash: 'b'.repeat(64),
    request: null,
    flow: 'authorization' as const,
    identifier,
    method: 'x402-v2',
  });

  describe('a payment that is only on the chain', () => {
    it('is booked on the day on which it was taken in, even if it was paid long before', async () => {
      const lost = { ...found(), paidAt: time.now - 90 * 86_400_000 };
      await ledger.takeIn(lost);
      const settledAt = (await ledger.find(lost.id))?.settledAt ?? 0;
      const booked = async (from: number, to: number): Promise<string[]> =>
        (await ledger.list({ booked: { from, to } })).map(({ id }) => id);
      expect(await booked(settledAt, settledAt + 1)).to.deep.equal([lost.id]);
      expect(await booked(settledAt + 1, settledAt + 2)).to.deep.equal([]);
      expect(await booked(lost.paidAt, lost.paidAt + 1)).to.deep.equal([]);
    });

    it('is owed once, however many servers take it in concurrently', async () => {
      const operators = await Promise.all(
        [1, 2].map(() => openLedgerReader({ url: place.url, now: () => time.now })),
      );
      operators.forEach(closeLater);
      const lost = found();
      const outcomes = await Promise.all([...operators, ledger].map(each => each.takeIn(lost)));
      expect(outcomes.toSorted()).to.deep.equal(['known', 'known', 'taken']);
      expect(await ledger.takeIn(lost), 'later').to.equal('known');
      const row = await ledger.find(lost.id);
      expect(row).to.include({
        state: 'owed',
        operation: FOUND_ON_CHAIN,
        amount: lost.amount,
        leased: false,
      });
      expect(row).to.include({ settlement: lost.settlement, after: 1_999, createdAt: lost.paidAt, asks: 0 });
      expect((await ledger.identity()).payTo).to.equal(OWNER.payTo);
    });

    it('is either owed or claimed, never both, if a server claims it at the same moment', async () => {
      for (let round = 0; round < 10; round += 1) {
        const request = payment();
        const first = round % 2 === 0 ? ledger.claim(request) : undefined;
        const takenIn = ledger.takeIn(found(request));
        const claim = await (first ?? ledger.claim(request));
        expect(['taken known', 'busy claimed']).to.include(`${await takenIn} ${claim.kind}`);
      }
    });

    it('stays with the server that is working on it, and is taken from a server whose lease has ended', async () => {
      const request = payment();
      const claim = await claimed(ledger, request);
      expect(await ledger.takeIn(found(request)), 'claimed').to.equal('busy');
      time.now += 60_000 + SLOW_MS;
      await ledger.extendLease(request.id, claim, 0);
      expect(await ledger.takeIn(found(request)), 'left').to.equal('taken');
      expect(await settles(ledger, request.id, claim), 'its former worker').to.equal(false);
      const how = { settlement: 'late', answerExpiresAt: time.now + 1 };
      expect(await ledger.deliver(request.id, claim, how), 'its former worker').to.equal(false);
      const row = await ledger.find(request.id);
      expect(row, 'what it was claimed for').to.include({ state: 'owed', operation: 'summarize' });
      expect(row?.after, 'a later claim').to.equal(1_000);
    });

    it('is left to the server that is settling it, unless the claim came after the transfer', async () => {
      const early = await paymentIn(ledger, 'settling', { after: 1_000 });
      expect(await ledger.takeIn({ ...found(), id: early })).to.equal('resolving');
      const late = await paymentIn(ledger, 'settling', { after: 3_000 });
      expect(await ledger.takeIn({ ...found(), id: late })).to.equal('taken');
      const released = await paymentIn(ledger, 'released');
      expect(await ledger.takeIn({ ...found(), id: released })).to.equal('taken');
      expect(await ledger.find(released)).to.include({ state: 'owed', reason: null, answerExpiresAt: null });
      const sold = payment();
      await delivered(ledger, sold);
      expect(await ledger.takeIn(found(sold))).to.equal('known');
    });

    it('is given to only one call', async () => {
      const lost = found();
      await ledger.takeIn(lost);
      const given = await Promise.all([
        ledger.giveCall(lost.id, call('a')),
        ledger.giveCall(lost.id, call('b')),
      ]);
      expect(given.toSorted()).to.deep.equal([false, true]);
      expect((await ledger.find(lost.id))?.operation).to.equal(given[0] ? 'a' : 'b');
      const sold = payment();
      await delivered(ledger, sold);
      expect(await ledger.giveCall(sold.id, call()), 'one that has a call').to.equal(false);
    });

    it('takes no payment-identifier that a later payment has already used', async () => {
      const lost = found();
      await ledger.takeIn(lost);
      await delivered(ledger, payment({ identifier: 'order-1' }));
      expect(await ledger.giveCall(lost.id, call('summarize', 'order-1'))).to.equal(true);
      expect((await ledger.find(lost.id))?.identifier).to.equal(null);
    });
  });

  describe('a restored ledger', () => {
    it("can't be opened by a server until somebody has looked for the payments that it lacks", async () => {
      const reader = await openLedgerReader({ url: place.url });
      closeLater(reader);
      await ledger.close();
      await markRestored(place.url);
      const fault = await faultOf(open());
      expect(fault.code).to.equal('open');
      expect(fault.message).to.include('restored').and.include('adopt');
      await reader.endRestoration();
      await open();
    });
  });
}

/** Does what `restoreLedger` does with a SQLite file. */
async function markRestored(url: string): Promise<void> {
  const { openEngine } = await import('../../src/ledger/engines/open-engine.js');
  const { execute } = await import('../../src/ledger/engine.js');
  const { setMeta } = await import('../../src/ledger/queries/meta.js');
  const engine = await openEngine(url, 'beside');
  await engine.write(() => execute(setMeta({ key: 'restored', value: 'then' })));
  await engine.close();
}
