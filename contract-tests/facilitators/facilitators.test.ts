import { expect } from 'chai';
import { Keypair } from '@solana/web3.js';
import type { OfferedHint } from '../../src/ledger/store.js';
import {
  FacilitatorFault,
  FacilitatorUnreachable,
  type Facilitator,
} from '../../src/facilitators/facilitator.js';
import type { SettleResult, Trouble, VerifyResult } from '../../src/rails/rail.js';
import { Facilitators } from '../../src/facilitators/facilitators.js';
import { facilitatorName } from '../../src/facilitators/http-facilitator.js';
import { DEVNET } from '../support/craft.js';
import { until } from '../support/faults.js';
import { facilitatorRequest } from '../support/http-facilitator.js';

const SIGNATURE = '5'.repeat(88);

/** A facilitator that accepts everything and counts its calls. */
class Fake implements Facilitator {
  readonly feePayer = Keypair.generate().publicKey.toBase58();
  readonly other = Keypair.generate().publicKey.toBase58();
  asked: string[] = [];
  down = false;
  faulty = false;
  onSupported: Trouble | undefined;

  async supported(): Promise<{ feePayer: string; signers: string[] }> {
    this.asked.push('supported');
    if (this.down) throw new FacilitatorUnreachable('down');
    if (this.onSupported) throw new FacilitatorUnreachable('status 500', this.onSupported);
    if (this.faulty) throw new FacilitatorFault('v1 only');
    return { feePayer: this.feePayer, signers: [this.feePayer, this.other] };
  }

  onVerify: () => VerifyResult = () => ({ kind: 'valid' });
  onSettle: () => SettleResult = () => ({ kind: 'settled', signature: SIGNATURE });

  async verify(): Promise<VerifyResult> {
    this.asked.push('verify');
    return this.onVerify();
  }

  async settle(): Promise<SettleResult> {
    this.asked.push('settle');
    return this.onSettle();
  }

  async close(): Promise<void> {
    this.asked.push('close');
  }
}

describe('several facilitators', () => {
  let a: Fake;
  let b: Fake;
  let facilitators: Facilitators;

  beforeEach(() => {
    [a, b] = [new Fake(), new Fake()];
    facilitators = new Facilitators([
      { name: 'a', facilitator: a },
      { name: 'b', facilitator: b },
    ]);
  });

  it('a payment goes to the facilitator whose fee payer it names, even after a restart', async () => {
    facilitators.learn([{ hint: b.feePayer, by: 'b' }, { hint: a.feePayer }]);
    await facilitators.verify(facilitatorRequest(b.feePayer));
    await facilitators.settle(facilitatorRequest(b.feePayer));
    expect(b.asked).to.deep.equal(['verify', 'settle']);
    await facilitators.settle(facilitatorRequest(a.feePayer));
    expect(a.asked, 'a record without a name is one of the first').to.deep.equal(['settle']);
    expect(facilitators.nameOf(b.feePayer)).to.equal('b');
  });

  it('a facilitator with its own key has only that fee payer, whatever the ledger lists under its name', async () => {
    const former = Keypair.generate().publicKey.toBase58();
    const own = new Facilitators([
      { name: 'own', facilitator: a, onlyFeePayer: a.feePayer },
      { name: 'b', facilitator: b },
    ]);
    const of = (hint: string, by?: string): OfferedHint => (by ? { hint, by } : { hint });
    const known = own.learn([of(former, 'own'), of(former), of(b.feePayer, 'b'), of(a.feePayer, 'own')]);
    expect(known.map(({ hint }) => hint)).to.deep.equal([b.feePayer, a.feePayer]);
    expect(own.nameOf(former)).to.equal(undefined);
    expect(own.feePayers).to.deep.equal([a.feePayer, b.feePayer]);
    expect(own.namesFor(former)).to.deep.equal(['b']);
    expect(own.namesFor(a.feePayer)).to.deep.equal(['own', 'b']);
  });

  it('a fee payer that another server has offered since this server started is looked up in the ledger, without a request', async () => {
    facilitators.recorded = async () => [{ hint: b.other, by: 'b' }];
    expect(await facilitators.verify(facilitatorRequest(b.other))).to.deep.equal({ kind: 'valid' });
    expect([a.asked, b.asked]).to.deep.equal([[], ['verify']]);
    expect(await facilitators.findName(b.other)).to.equal('b');
  });

  it('a fee payer that is not in the ledger belongs to nobody, and no facilitator is asked', async () => {
    await facilitators.refresh(DEVNET);
    [a.asked, b.asked] = [[], []];
    expect(await facilitators.verify(facilitatorRequest(b.other)), 'one of its signers').to.include({
      kind: 'valid',
    });
    const stranger = facilitatorRequest(Keypair.generate().publicKey.toBase58());
    expect(await facilitators.verify(stranger)).to.include({ kind: 'unavailable' });
    expect(await facilitators.settle(stranger)).to.include({ kind: 'unknown', signature: '' });
    expect([a.asked, b.asked]).to.deep.equal([[], ['verify']]);
  });

  it("a facilitator used only for its directory gets none of the other facilitators' payments, whichever fee payers it names", async () => {
    const greedy: Facilitator = {
      supported: async () => ({ feePayer: a.feePayer, signers: [a.feePayer, a.other] }),
      verify: () => b.verify(),
      settle: () => b.settle(),
      close: () => b.close(),
    };
    const own = new Facilitators([
      { name: 'a', facilitator: a },
      { name: 'greedy', facilitator: greedy, forDirectory: true },
    ]);
    await own.refresh(DEVNET);
    await own.refresh(DEVNET);
    for (const feePayer of [a.feePayer, a.other]) {
      expect(own.nameOf(feePayer)).to.equal('a');
      await own.settle(facilitatorRequest(feePayer));
    }
    expect(b.asked).to.deep.equal([]);
    expect(own.isHealthy(a.feePayer), 'nor are they verified as its own').to.equal(true);
    expect(own.offerable('greedy')).to.equal(undefined);
  });

  it('challenges name the first facilitator that answers, and one that gives a wrong answer is refused', async () => {
    const offered = async (): Promise<string | undefined> => {
      await facilitators.refresh(DEVNET);
      return facilitators.choice;
    };
    expect(await offered()).to.equal(a.feePayer);
    a.down = true;
    expect(await offered()).to.equal(b.feePayer);
    b.down = true;
    expect(await offered()).to.equal(undefined);
    expect(facilitators.firstFeePayer([{ hint: b.other }]), 'the last one in the ledger').to.equal(b.other);
    expect(() => facilitators.firstFeePayer([])).to.throw(FacilitatorFault, 'No facilitator answers');
    [a.down, a.faulty] = [false, true];
    const failures = await new Facilitators([{ name: 'a', facilitator: a }]).refresh(DEVNET);
    expect(failures.get('a')).to.be.instanceOf(FacilitatorFault);
  });

  it('only a facilitator that sends transactions itself signs them beforehand', async () => {
    facilitators.learn([{ hint: a.feePayer }]);
    expect(await facilitators.sign(facilitatorRequest(a.feePayer))).to.deep.equal({ kind: 'not-needed' });
    const signed = { kind: 'signed' as const, transaction: 'BBBB', signature: SIGNATURE };
    const signing = new Facilitators([
      { name: 's', facilitator: Object.assign(a, { sign: async () => signed }) },
    ]);
    signing.learn([{ hint: a.feePayer }]);
    expect(await signing.sign(facilitatorRequest(a.feePayer))).to.equal(signed);
  });

  it('a name contains no credentials', () => {
    expect(facilitatorName('https://user:secret@f.example/x402?key=secret')).to.equal('f.example/x402');
    expect(facilitatorName('https://f.example')).to.equal('f.example/');
    expect(facilitatorName(`https://f.example/v1/${'k3y'.repeat(9)}`)).to.equal('f.example/v1/…');
  });

  describe('that fail', () => {
    const USELESS: Trouble = { rest: false, answered: true };
    let clock: number;

    beforeEach(async () => {
      clock = 1_700_000_000_000;
      facilitators = new Facilitators(
        [
          { name: 'a', facilitator: a, rate: 10 },
          { name: 'b', facilitator: b },
        ],
        () => clock,
      );
      expect(await facilitators.refresh(DEVNET)).to.have.property('size', 0);
      expect(facilitators.choice).to.equal(a.feePayer);
    });

    const tick = (): Promise<unknown> => new Promise(resolve => setImmediate(resolve));

    it('new challenges name the next facilitator while the first is down, and the first again once it answers', async () => {
      a.onVerify = () => ({ kind: 'unavailable', detail: 'no connection', trouble: { rest: true } });
      a.down = true;
      await facilitators.verify(facilitatorRequest(a.feePayer));
      await tick();
      expect(facilitators.choice).to.equal(b.feePayer);
      expect(facilitators.outage(a.feePayer)).to.deep.equal({ name: 'a', retryAfterSeconds: 1 });
      expect(facilitators.outage(b.feePayer)).to.equal(undefined);
      expect(facilitators.report()).to.include({ status: 'degraded' });
      expect(facilitators.report().detail).to.match(/^a: down since .*: no connection; b: ok$/);
      a.asked = [];
      await facilitators.probe(DEVNET);
      expect(a.asked, 'it rests').to.deep.equal([]);
      [a.down, a.onVerify] = [false, () => ({ kind: 'valid' })];
      await until('it is asked and answers', async () => {
        await facilitators.probe(DEVNET);
        return facilitators.choice === a.feePayer;
      });
      expect(facilitators.outage(a.feePayer)).to.equal(undefined);
      expect(facilitators.isHealthy(a.feePayer), 'until it has answered about a payment').to.equal(false);
      await facilitators.verify(facilitatorRequest(a.feePayer));
      expect(facilitators.isHealthy(a.feePayer)).to.equal(true);
    });

    const unanswered = (trouble: Trouble): void => {
      a.onVerify = () => ({ kind: 'unavailable', detail: 'no use', trouble });
      a.onSettle = () => ({ kind: 'unknown', reason: 'no use', signature: '', trouble });
    };

    async function threePayments(): Promise<void> {
      await facilitators.verify(facilitatorRequest(a.feePayer));
      await facilitators.settle(facilitatorRequest(a.feePayer));
      await tick();
      expect(facilitators.choice).to.equal(a.feePayer);
      expect(facilitators.isHealthy(a.feePayer)).to.equal(false);
      await facilitators.verify(facilitatorRequest(a.feePayer));
      await tick();
    }

    it('one that still accepts connections counts as down only after three requests in a row without an answer', async () => {
      unanswered({ rest: false });
      await threePayments();
      expect(facilitators.choice).to.equal(b.feePayer);
      expect(facilitators.outage(a.feePayer)).to.deep.equal({ name: 'a', retryAfterSeconds: 1 });
    });

    it('after three useless answers, new challenges name the next facilitator for a time; payments that name the first still go to it', async () => {
      unanswered(USELESS);
      await threePayments();
      expect(facilitators.choice).to.equal(b.feePayer);
      expect(facilitators.outage(a.feePayer), 'it is not down').to.equal(undefined);
      a.asked = [];
      for (let n = 0; n < 3; n++) await facilitators.probe(DEVNET);
      expect(a.asked, 'asked once whether it is').to.deep.equal(['supported']);
      expect(facilitators.outage(a.feePayer)).to.equal(undefined);
      clock += 5_001;
      await facilitators.probe(DEVNET);
      expect(facilitators.choice).to.equal(a.feePayer);
      await facilitators.verify(facilitatorRequest(a.feePayer));
      await tick();
      expect(facilitators.choice, 'still useless').to.equal(b.feePayer);
      a.onVerify = () => ({ kind: 'valid' });
      await facilitators.verify(facilitatorRequest(a.feePayer));
      await tick();
      expect(facilitators.choice, 'a good one').to.equal(a.feePayer);
    });

    it('after three useless answers, the only facilitator is still named and asked', async () => {
      const only = new Facilitators([{ name: 'a', facilitator: a }]);
      await only.refresh(DEVNET);
      unanswered(USELESS);
      for (let n = 0; n < 4; n++) await only.verify(facilitatorRequest(a.feePayer));
      await tick();
      expect(only.choice).to.equal(a.feePayer);
      expect(only.outage(a.feePayer)).to.equal(undefined);
      expect(only.report()).to.include({ status: 'degraded' });
    });

    it('one that also gives useless answers to /supported is paused', async () => {
      unanswered(USELESS);
      a.onSupported = USELESS;
      await threePayments();
      await facilitators.probe(DEVNET);
      expect(facilitators.outage(a.feePayer)).to.deep.equal({ name: 'a', retryAfterSeconds: 1 });
    });

    it('one that gives useless answers only to /supported is not paused', async () => {
      a.onSupported = USELESS;
      for (let n = 0; n < 5; n++) expect((await facilitators.refresh(DEVNET)).has('a')).to.equal(true);
      expect(facilitators.choice).to.equal(a.feePayer);
      expect(facilitators.isHealthy(a.feePayer)).to.equal(true);
      await facilitators.verify(facilitatorRequest(a.feePayer));
      expect(facilitators.report()).to.include({ status: 'ok' });
    });

    it('a settlement that is unknown for other reasons does not count against the facilitator', async () => {
      a.onSettle = () => ({ kind: 'unknown', reason: 'duplicate_settlement', signature: '' });
      for (let n = 0; n < 5; n++) await facilitators.settle(facilitatorRequest(a.feePayer));
      await tick();
      expect(facilitators.isHealthy(a.feePayer)).to.equal(true);
    });

    it('one that asks callers to wait gets no request before then, and its 429 answers are counted', async () => {
      a.onVerify = () => ({ kind: 'unavailable', detail: 'status 429', trouble: { rest: true, seconds: 7 } });
      await facilitators.verify(facilitatorRequest(a.feePayer));
      await tick();
      expect(facilitators.outage(a.feePayer)).to.deep.equal({ name: 'a', retryAfterSeconds: 7 });
      expect(facilitators.report().detail).to.include('1 answers with 429');
    });

    it('new challenges name the next facilitator when the first is near its limit, and the first again later', async () => {
      for (let n = 0; n < 7; n++) await facilitators.verify(facilitatorRequest(a.feePayer));
      expect(facilitators.choice).to.equal(a.feePayer);
      await facilitators.settle(facilitatorRequest(a.feePayer));
      expect(facilitators.choice).to.equal(b.feePayer);
      expect(facilitators.outage(a.feePayer), 'what names it goes on').to.equal(undefined);
      clock += 1_001;
      await facilitators.probe(DEVNET);
      expect(facilitators.choice).to.equal(a.feePayer);
    });

    it('if all are down, none is chosen, and /health shows their errors', async () => {
      [a.down, b.down] = [true, true];
      expect([...(await facilitators.refresh(DEVNET)).keys()]).to.deep.equal(['a', 'b']);
      expect(facilitators.choice).to.equal(undefined);
      expect(facilitators.report()).to.include({ status: 'down' });
    });
  });
});
