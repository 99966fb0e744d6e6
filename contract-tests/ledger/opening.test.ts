import { expect } from 'chai';
import { openLedgerReader } from '../../src/ledger/store.js';
import { OWNER, delivered, faultOf, payment } from '../support/ledgers.js';
import { eachWithANewLedger, ledger, open, place, reopen } from '../support/ledger-suite.js';
import { onEachEngine } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

onEachEngine('ledger', promises);

function promises(make: () => Promise<LedgerPlace>): void {
  eachWithANewLedger(make);

  describe('a ledger within one turn of the event loop', () => {
    it('lets only the invalid write fail', async () => {
      const requests = Array.from({ length: 20 }, () => payment());
      const writes = requests.map(request => ledger.claim(request));
      const bad = faultOf(ledger.setMeta('key', null as unknown as string));
      writes.push(...requests.map(request => ledger.claim(request)));
      expect((await bad).code).to.equal('failed');
      const kinds = (await Promise.all(writes)).map(result => result.kind);
      expect(kinds.filter(kind => kind === 'claimed')).to.have.length(20);
      expect((await ledger.counts()).claimed.payments).to.equal(20);
    });

    it('limits the number of queued writes, and carries out those that it accepted', async () => {
      const results = await Promise.allSettled(
        Array.from({ length: 9_000 }, (_, index) => ledger.markWritten({ id: String(index), number: 1 }, 0)),
      );
      const refused = results.filter(result => result.status === 'rejected');
      expect(refused).to.not.have.length(0);
      for (const { reason } of refused) expect(reason).to.include({ name: 'LedgerFault', code: 'busy' });
      expect((await ledger.claim(payment())).kind).to.equal('claimed');
    });
  });

  describe('a value that the first server creates', () => {
    it('is the same for all servers that ask for it, concurrently or later', async () => {
      const kept = await Promise.all(['a', 'b', 'c'].map(value => ledger.keepMeta('secret', value)));
      const [first] = kept;
      expect(['a', 'b', 'c']).to.include(first);
      expect(new Set(kept).size).to.equal(1);
      await reopen();
      expect(await ledger.keepMeta('secret', 'd')).to.equal(first);
      expect(await ledger.keepMeta('other', 'd')).to.equal('d');
    });
  });

  describe('opening a ledger', () => {
    it('changes nothing the second time', async () => {
      const request = payment();
      await delivered(ledger, request);
      const before = await ledger.find(request.id);
      await reopen();
      await reopen();
      const still = { leaseUntil: 0, callerUntil: 0, leased: false, attended: false };
      expect({ ...(await ledger.find(request.id)), ...still }).to.deep.equal({ ...before, ...still });
    });

    for (const wrong of [{ payTo: 'Somebody' }, { network: 'solana:other' }])
      it(`refuses a ledger that sold for another ${Object.keys(wrong)[0]} and names both`, async () => {
        await delivered(ledger, payment());
        await ledger.close();
        const fault = await faultOf(open(wrong));
        expect(fault.code).to.equal('open');
        expect(fault.message)
          .to.include(OWNER.payTo)
          .and.include(Object.values(wrong)[0])
          .and.include('STATE_DIR');
        await reopen();
      });

    it('fails for a reader if there is none', async () => {
      if (!place.url.startsWith('file:')) return;
      const fault = await faultOf(openLedgerReader({ url: place.url.replace('ledger.db', 'missing.db') }));
      expect(fault.message).to.include('missing.db').and.include('start the server once');
    });

    it('creates no ledger in a folder that does not exist', async () => {
      if (!place.url.startsWith('file:')) return;
      const fault = await faultOf(open({ url: place.url.replace('ledger.db', 'misspelt/ledger.db') }));
      expect(fault.message).to.include('misspelt').and.include('its folder exists');
    });

    it('refuses an unknown kind of URL', async () => {
      expect((await faultOf(open({ url: 'mysql://x' }))).message).to.include('postgres://');
    });

    it('returns one that rejects calls once it is closed', async () => {
      await ledger.close();
      expect((await faultOf(ledger.claim(payment()))).name).to.equal('LedgerFault');
    });
  });
}
