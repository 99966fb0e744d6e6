import { expect } from 'chai';
import { openLedger, type Ledger, type Use } from '../../src/ledger/store.js';
import { onEachEngine, forServer } from '../support/ledger-places.js';
import type { LedgerPlace } from '../support/ledger-places.js';

const END = 2_000_000;

onEachEngine('Counted uses that are limited for a period', (make, engine) => {
  let place: LedgerPlace;
  let ledgers: Ledger[];
  let now = 1_000_000;
  beforeEach(async () => {
    now = 1_000_000;
    place = await make();
    const options = { ...forServer(place.url), payTo: 'receiver', network: 'solana:test', now: () => now };
    ledgers = [];
    // Two servers, if the engine allows two.
    for (let n = 0; n < (engine === 'PostgreSQL' ? 2 : 1); n++) ledgers.push(await openLedger(options));
  });
  afterEach(async () => {
    for (const ledger of ledgers) await ledger.close();
    await place.remove();
  });

  const use = (name: string, atMost: number, endsAt = END): Use => ({ name, atMost, endsAt });
  const at = (n: number): Ledger => ledgers[n % ledgers.length]!;

  it('are counted once each, even if many are taken concurrently at all servers', async () => {
    const uses = [use('own', 5), use('all', 100)];
    const taken = await Promise.all(Array.from({ length: 60 }, (_, n) => at(n).takeUses(uses)));
    const left = taken.flatMap(each => ('left' in each ? [each.left[0]] : []));
    expect(left.toSorted()).to.deep.equal([0, 1, 2, 3, 4]);
    for (const each of taken) if ('usedUp' in each) expect(each.usedUp.name).to.equal('own');
    // The refused calls have used up nothing else.
    expect(await at(1).takeUses([use('all', 6)])).to.deep.equal({ left: [0] });
    expect(await at(0).takeUses([use('all', 6)])).to.deep.equal({ usedUp: use('all', 6) });
  });

  it('start again with the next period; a server whose clock lags counts in the next period, too', async () => {
    expect(await at(0).takeUses([use('own', 1)])).to.deep.equal({ left: [0] });
    expect(await at(1).takeUses([use('own', 1, 2 * END)])).to.deep.equal({ left: [0] });
    expect(await at(0).takeUses([use('own', 1)])).to.deep.equal({ usedUp: use('own', 1) });
  });

  it('can be given back', async () => {
    const uses = [use('a', 1), use('b', 1)];
    await at(0).takeUses(uses);
    await at(1).giveUsesBack(uses);
    expect(await at(0).takeUses(uses)).to.deep.equal({ left: [0, 0] });
    await at(0).giveUsesBack([use('b', 1, END - 1)]);
    expect(await at(1).takeUses([use('b', 1)])).to.deep.equal({ usedUp: use('b', 1) });
  });

  it('are deleted after their period, so that no caller can fill the ledger', async () => {
    for (let n = 0; n < 30; n++) await at(n).takeUses([use(`old ${n}`, 1)]);
    now = END + 1;
    await at(0).takeUses([use('new', 5, 2 * END)]);
    await at(0).takeUses([use('new', 5, 2 * END)]);
    // If the former period was deleted, its uses start from zero again.
    for (let n = 0; n < 30; n++)
      expect(await at(n).takeUses([use(`old ${n}`, 1)]), `old ${n}`).to.deep.equal({ left: [0] });
  });
});
