import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import type { Answer, Outcome } from '../../src/sale/outcome.js';
import {
  answer,
  eachInANewWorld,
  expectPending,
  expectRefused,
  expectUnavailable,
  failed,
  FEE_PAYER,
  Gate,
  ID,
  world,
} from '../support/charge-world.js';
import { until } from '../support/faults.js';

describe('work that is not paid for', () => {
  eachInANewWorld();

  it('a payer who hangs up after work was done is verified first from then on, and soon has to wait', async () => {
    const payer = await world.knownPayer();
    for (let n = 0; n < 10; n++) {
      const gone = new AbortController();
      const gate = new Gate();
      const work = world.redeem(world.payment({ payer, identifier: `${ID}${n}` }), {
        gone: gone.signal,
        work: () => gate.wait(answer('{}')),
      });
      await gate.reached;
      gone.abort();
      gate.open();
      await work;
      await world.charge.idle();
    }
    expect(await world.isKnown(payer)).to.equal(false);
    world.runs = 0;
    const verifies = world.facilitator.verifies;
    expectUnavailable(await world.redeem(world.payment({ payer })), /not charged/);
    expect(world.runs).to.equal(0);
    expect(world.facilitator.verifies, 'the facilitator is not asked').to.equal(verifies);
    expect((await world.redeem(world.payment())).kind, 'others are served').to.equal('sold');
    world.now += 60_000;
    world.hints.setView({ blockhash: FEE_PAYER, slot: 2_000, height: 950 });
    const later = await world.redeem(world.payment({ payer }), { text: 'another' });
    expect(later.kind, 'it is forgiven').to.equal('sold');
    expect(world.facilitator.settles).to.equal(2);
  });

  it('is never done for a blocked payer, even for one who bought before', async () => {
    const payer = await world.knownPayer();
    const [runs, verifies] = [world.runs, world.facilitator.verifies];
    world.charge = world.newCharge({ blocked: new Set([payer.publicKey.toBase58()]) });
    const payment = world.payment({ payer });
    expectRefused(await world.redeem(payment), /sells nothing to this wallet.*not charged/, true);
    expect([world.runs, world.facilitator.verifies]).to.deep.equal([runs, verifies]);
    expect(await world.ledger.find(payment.checked.id)).to.equal(undefined);
  });

  it('an agent that makes twenty calls at once and hangs up on one in twenty is never refused', async () => {
    const payer = await world.knownPayer();
    const other = { unavailable: 0, sold: 0 };
    const agent = async (of: number): Promise<void> => {
      for (let n = 0; n < 20; n++) {
        world.now += 1;
        const gone = new AbortController();
        const hangsUp = (n + of) % 20 === 7;
        const work = async (): Promise<Answer> => {
          if (hangsUp) gone.abort();
          return answer('{}');
        };
        const text = `${of} ${n}`;
        const { kind } = await world.redeem(world.payment({ payer }), { text, gone: gone.signal, work });
        if (kind === 'sold') other.sold += 1;
        else if (!hangsUp) other.unavailable += 1;
      }
    };
    await Promise.all(Array.from({ length: 20 }, (_, of) => agent(of)));
    expect(other).to.deep.equal({ unavailable: 0, sold: 380 });
  });

  for (const [status, least, most] of [
    [400, 10, 12],
    [502, 36, 48],
  ] as const)
    it(`a wallet whose calls all end as ${status} soon has to wait, although nobody hung up`, async () => {
      const payer = Keypair.generate();
      const work = async (): Promise<Answer> => {
        world.runs += 1;
        return failed(status);
      };
      for (let n = 0; n < 60; n++) await world.redeem(world.payment({ payer }), { text: `${n}`, work });
      expect(world.runs).to.be.within(least, most);
      expectUnavailable(await world.redeem(world.payment({ payer })), /ended without a sale.*not charged/);
      expect((await world.redeem(world.payment())).kind, 'others are served').to.equal('sold');
    });

  it('a payer without standing may have ten runs under way at once, and has to wait before starting more', async () => {
    const payer = Keypair.generate();
    const gate = new Gate();
    const sent = Array.from({ length: 14 }, (_, n) =>
      world.redeem(world.payment({ payer, identifier: `${ID}${n}` }), {
        work: () => gate.wait(answer('{}')),
      }),
    );
    await gate.reached;
    await new Promise(resolve => setTimeout(resolve, 300));
    gate.open();
    const kinds = (await Promise.all(sent)).map(({ kind }) => kind);
    expect(kinds.filter(kind => kind === 'unavailable')).to.have.length(4);
    expect(world.facilitator.settles).to.equal(10);
  });

  it("a run that can't be settled because of too many equal payments still counts as a run of its payment", async () => {
    const ledger = { ...world.ledger, settle: async () => ({ kind: 'limit' as const }) };
    world.charge = world.newCharge({ ledger });
    const payment = world.payment();
    for (let n = 0; n < 3; n++) expectUnavailable(await world.redeem(payment), /Too many new signatures/);
    expectRefused(await world.redeem(payment), /failed 3 times\. You were not charged/, false);
    expect(world.runs).to.equal(3);
  });

  it('a settlement of unknown outcome costs a payer its standing', async () => {
    const payer = await world.knownPayer();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    expectPending(await world.redeem(world.payment({ payer })));
    expect(await world.isKnown(payer)).to.equal(false);
  });

  it('settlements of unknown outcome each count as only a quarter of a run, like failures of a backend, however long they take', async () => {
    const payer = await world.knownPayer();
    world.facilitator.onSettle = () => {
      world.now += 2_000;
      return { kind: 'unknown', reason: 'status 502', signature: '' };
    };
    for (let n = 0; n < 15; n++)
      expectPending(await world.redeem(world.payment({ payer }), { text: `${n}` }));
  });

  it('work that takes too long costs a payer its standing', async () => {
    const payer = await world.knownPayer();
    world.charge = world.newCharge({ workDeadlineMs: 50 });
    const work = (): Promise<Answer> => new Promise(() => {});
    const outcome = await world.redeem(world.payment({ payer }), { work });
    expect(outcome).to.have.nested.property('answer.status', 502);
    expect(await world.isKnown(payer)).to.equal(false);
  });

  it('new payers who waited for a slow verify share one burst of work, however many they are', async () => {
    world.charge = world.newCharge({ unknownPayers: { rate: 10, burst: 3 } });
    const gate = new Gate();
    world.facilitator.onVerify = () => gate.wait({ kind: 'valid' });
    const buy = (n: number): Promise<Outcome> =>
      world.redeem(world.payment(), { source: `source ${n}`, text: `text ${n}` });
    const first = [0, 1, 2].map(buy);
    await until('the first are verified', () => world.facilitator.verifies === 3);
    await new Promise(resolve => setTimeout(resolve, 350));
    const second = [3, 4, 5].map(buy);
    await until('all are verified', () => world.facilitator.verifies === 6);
    gate.open();
    const refused = (await Promise.all([...first, ...second])).filter(({ kind }) => kind === 'unavailable');
    expect(refused).to.not.be.empty;
    expect(world.runs).to.equal(6 - refused.length);
    for (const outcome of refused) expectUnavailable(outcome, /Too many new payers.*not charged/);
  });

  it('new payers from one source leave room for those from another', async () => {
    world.charge = world.newCharge({ unknownPayers: { rate: 0, burst: 50 } });
    let refused = 0;
    for (let n = 0; n < 60; n++)
      if ((await world.redeem(world.payment(), { source: 'crowd' })).kind === 'unavailable') refused += 1;
    expect(refused).to.be.greaterThan(10);
    expect((await world.redeem(world.payment(), { source: 'somebody else' })).kind).to.equal('sold');
  });
});
