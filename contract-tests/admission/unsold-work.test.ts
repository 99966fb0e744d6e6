import { expect } from 'chai';
import type { Fault } from '../../src/net/failure.js';
import { UnsoldWork, type Party, type UsedUp, type Working } from '../../src/admission/unsold-work.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe('work that ends unsold', () => {
  let now = 0;
  let unsold: UnsoldWork;
  beforeEach(() => {
    now = 1_700_000_000_000;
    unsold = new UnsoldWork({ now: () => now });
  });

  const party = (payer: string, more: Partial<Party> = {}): Party => ({
    payer,
    source: '203.0.113.7',
    backend: 'api',
    known: true,
    ...more,
  });

  function begin(of: Party): Working {
    const begun = unsold.begin(of);
    if (!('end' in begun)) throw new Error(`refused: ${JSON.stringify(begun)}`);
    return begun;
  }

  /** One call whose work takes `ms`. @returns the reason if it may not begin */
  function run(of: Party, ended: Fault | 'sold', ms = 0): UsedUp | undefined {
    const begun = unsold.begin(of);
    if (!('end' in begun)) return begun;
    now += ms;
    if (ended === 'sold') begun.sold();
    else begun.unsold(ended);
    begun.end();
    return undefined;
  }

  /** How many of `count` calls may begin. */
  function begun(count: number, of: (n: number) => Party, ended: Fault | 'sold' = 'caller'): number {
    return Array.from({ length: count }, (_, n) => run(of(n), ended)).filter(no => no === undefined).length;
  }

  it('an agent that pays for 95 of 100 calls and hangs up on 5, at 40 calls a second for ten minutes, is never refused', () => {
    const slow: Working[] = [];
    for (let n = 0; n < 40 * 600; n++) {
      now += 25;
      if (n % 100 >= 5) expect(run(party('agent'), 'sold')).to.equal(undefined);
      else slow.push(begin(party('agent', { known: n % 100 !== 4 })));
      // The agent hangs up on calls that take more than a second, which count double.
      if (n % 100 === 60)
        for (const call of slow.splice(0)) {
          call.unsold('caller');
          call.end();
        }
    }
  });

  it('counts for as long as the work took, without the settlement', () => {
    const refused = (): boolean => {
      const begun = unsold.begin(party('agent', { known: false }));
      if (!('end' in begun)) return true;
      begun.done();
      now += 5 * SECOND;
      begun.unsold('caller');
      begun.end();
      return false;
    };
    expect(Array.from({ length: 10 }, refused)).to.not.include(true);
  });

  it('counts only against its payer if the call was paid for', () => {
    const paid = (payer: string): Party => party(payer, { source: undefined, backend: undefined });
    const strangers = (n: number): Party => party(`stranger ${n}`, { known: false });
    expect(begun(200, strangers)).to.be.below(200);
    expect(begun(200, n => party(`other ${n}`, { source: undefined, known: false }))).to.be.greaterThan(0);
    expect(begun(30, () => paid('buyer'))).to.be.within(10, 12);
    expect(run(paid('another buyer'), 'sold')).to.equal(undefined);
  });

  it('an agent with forty calls at once that loses its connection is served as soon as it is back', () => {
    for (let n = 0; n < 2_000; n++) run(party('agent'), 'sold');
    const open = Array.from({ length: 40 }, () => begin(party('agent')));
    now += 2 * SECOND;
    for (const call of open) {
      call.unsold('caller');
      call.end();
    }
    expect(begun(40, () => party('agent'), 'sold')).to.equal(40);
  });

  it('a wallet that buys nothing gets ten unsold calls, and then four a minute', () => {
    const stranger = party('stranger', { known: false });
    expect(begun(400, () => stranger)).to.equal(10);
    expect(unsold.usedUp(stranger)).to.deep.equal({ whose: 'payer', seconds: 15 });
    now += MINUTE;
    expect(begun(400, () => stranger)).to.equal(4);
  });

  it('a wallet gets a hundred unsold calls for its first eight hundred purchases, and none for the next eight hundred', () => {
    for (let n = 0; n < 1_600; n++) run(party('buyer', { source: undefined }), 'sold');
    expect(begun(400, () => party('buyer', { source: undefined }))).to.equal(110);
  });

  it('the wait is at most five minutes, however many calls ran at once', () => {
    const open = Array.from({ length: 80 }, () => begin(party('known')));
    expect(unsold.begin(party('known'))).to.have.property('whose', 'payer');
    for (const call of open) {
      call.unsold('caller');
      call.end();
    }
    expect(unsold.usedUp(party('known'))?.seconds).to.be.within(60, 300);
    now += 5.5 * MINUTE;
    expect(unsold.usedUp(party('known'))).to.equal(undefined);
  });

  it('a new payer may have ten runs under way', () => {
    const of = party('new', { known: false });
    const open = Array.from({ length: 10 }, () => begin(of));
    expect(unsold.begin(of)).to.have.property('whose', 'payer');
    open[0]?.end();
    begin(of);
  });

  it('many wallets at one address share fifty runs, and other addresses are not affected', () => {
    expect(begun(400, n => party(`wallet ${n}`, { known: false }))).to.equal(50);
    expect(unsold.usedUp(party('another', { known: false }))).to.deep.equal({ whose: 'source', seconds: 3 });
    expect(unsold.usedUp(party('another', { source: '198.51.100.1' }))).to.equal(undefined);
  });

  it('a payer whose purchases cover its call is served even if its address or the whole backend is over its limit', () => {
    for (let n = 0; n < 20; n++) run(party('buyer'), 'sold');
    begun(400, n => party(`wallet ${n}`));
    begun(4_000, n => party(`wallet ${n}`, { source: `2001:db8:0:${n}` }));
    expect(unsold.usedUp(party('stranger', { source: '198.51.100.1' }))).to.have.property('whose', 'backend');
    expect(unsold.usedUp(party('buyer'))).to.equal(undefined);
  });

  it('one wallet that calls from many addresses gets ten unsold calls', () => {
    expect(begun(400, n => party('wallet', { source: `2001:db8:0:${n}`, known: false }))).to.equal(10);
  });

  it('many wallets at many addresses share the hourly limit of one backend, and other backends are not affected', () => {
    const wallet = (n: number): Party => party(`wallet ${n}`, { source: `2001:db8:0:${n}`, known: false });
    let all = 0;
    for (let from = 0; from < 60; from++) {
      all += begun(500, n => wallet(from * 500 + n));
      now += MINUTE;
    }
    expect(all).to.be.within(900, 1_000);
    expect(unsold.usedUp(party('another', { backend: 'another api', source: undefined }))).to.equal(
      undefined,
    );
    now += HOUR;
    expect(unsold.usedUp(wallet(0))).to.equal(undefined);
  });

  it('a few addresses leave part of the hourly limit to others', () => {
    for (let n = 0; n < 60 * 60; n++) {
      now += SECOND;
      begun(1, () => party(`wallet ${n}`, { source: `2001:db8:0:${n % 10}`, known: false }));
    }
    expect(begun(10, () => party('honest', { source: '198.51.100.1', known: false }))).to.equal(10);
  });

  it('failures of the backend count as a quarter, and lock a payer out for at most 15 seconds', () => {
    expect(begun(400, () => party('waiting', { source: undefined }), 'backend')).to.be.within(36, 40);
    expect(unsold.usedUp(party('waiting', { source: undefined }))?.seconds).to.be.at.most(15);
    now += 15 * SECOND;
    expect(begun(1_000, () => party('waiting', { source: undefined }), 'sold')).to.equal(1_000);
  });

  it('even an outage that ends eighty calls at once locks their payer out for at most 15 seconds', () => {
    const open = Array.from({ length: 80 }, () => begin(party('busy')));
    for (const call of open) {
      call.unsold('backend');
      call.end();
    }
    expect(unsold.usedUp(party('busy'))?.seconds).to.be.at.most(15);
  });

  it('an outage that affects every call from one address locks nobody there out', () => {
    begun(2_000, n => party(`buyer ${n % 100}`), 'backend');
    now += 5 * SECOND;
    expect(begun(100, n => party(`buyer ${n}`), 'sold')).to.equal(100);
  });

  it('work that was not done, or whose outcome is unknown, does not count', () => {
    expect(begun(400, () => party('turned away', { known: false }), 'none')).to.equal(400);
    for (let n = 0; n < 400; n++) begin(party('unclear', { known: false })).end();
  });

  it('work of more than a second counts double', () => {
    const slow = party('slow', { source: undefined, known: false });
    let done = 0;
    while (run(slow, 'caller', 1_001) === undefined) done += 1;
    expect(done).to.be.within(5, 6);
  });
});
