import { expect } from 'chai';
import { Keypair } from '@solana/web3.js';
import {
  FacilitatorFault,
  FacilitatorUnreachable,
  type Facilitator,
  type FacilitatorRequest,
  type SettleResult,
  type VerifyResult,
} from '../../src/payments/facilitator.js';
import { Facilitators } from '../../src/payments/facilitators.js';
import { facilitatorName } from '../../src/payments/http-facilitator.js';
import { DEVNET, DEVNET_USDC } from '../support/craft.js';

const SIGNATURE = '5'.repeat(88);

/** A facilitator that says yes and counts. */
class Fake implements Facilitator {
  readonly feePayer = Keypair.generate().publicKey.toBase58();
  readonly other = Keypair.generate().publicKey.toBase58();
  asked: string[] = [];
  down = false;
  faulty = false;

  async supported(): Promise<{ feePayer: string; signers: string[] }> {
    this.asked.push('supported');
    if (this.down) throw new FacilitatorUnreachable('down');
    if (this.faulty) throw new FacilitatorFault('v1 only');
    return { feePayer: this.feePayer, signers: [this.feePayer, this.other] };
  }

  async verify(): Promise<VerifyResult> {
    this.asked.push('verify');
    return { kind: 'valid' };
  }

  async settle(): Promise<SettleResult> {
    this.asked.push('settle');
    return { kind: 'settled', signature: SIGNATURE };
  }

  async close(): Promise<void> {
    this.asked.push('close');
  }
}

function requestFor(feePayer: string): FacilitatorRequest {
  return {
    transaction: 'AAAA',
    requirements: {
      scheme: 'exact',
      network: DEVNET,
      amount: '10000',
      asset: DEVNET_USDC,
      payTo: 'Receiver',
      maxTimeoutSeconds: 60,
      extra: { feePayer },
    },
  };
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

  it('a payment goes to the facilitator whose fee payer it names, also after a restart', async () => {
    facilitators.learn([
      { feePayer: b.feePayer, lastOfferedAt: 1, facilitator: 'b' },
      { feePayer: a.feePayer, lastOfferedAt: 1 },
    ]);
    await facilitators.verify(requestFor(b.feePayer));
    await facilitators.settle(requestFor(b.feePayer));
    expect(b.asked).to.deep.equal(['verify', 'settle']);
    await facilitators.settle(requestFor(a.feePayer));
    expect(a.asked, 'a record without a name is one of the first').to.deep.equal(['settle']);
    expect(facilitators.nameOf(b.feePayer)).to.equal('b');
  });

  it('a fee payer that the ledger does not know is looked for at all, once', async () => {
    const asks = [1, 2, 3].map(() => facilitators.verify(requestFor(b.other)));
    for (const ask of asks) expect(await ask).to.deep.equal({ kind: 'valid' });
    expect(a.asked).to.deep.equal(['supported']);
    expect(b.asked.filter(each => each === 'supported')).to.have.length(1);
    const stranger = Keypair.generate().publicKey.toBase58();
    for (let n = 0; n < 3; n++)
      expect(await facilitators.verify(requestFor(stranger))).to.include({ kind: 'unavailable' });
    expect(await facilitators.settle(requestFor(stranger))).to.include({ kind: 'unknown', signature: '' });
    expect(a.asked.filter(each => each === 'supported')).to.have.length(2);
  });

  it('offers the first one that answers, and refuses one that is wrong', async () => {
    expect((await facilitators.supported(DEVNET)).feePayer).to.equal(a.feePayer);
    a.down = true;
    expect((await facilitators.supported(DEVNET)).feePayer).to.equal(b.feePayer);
    b.down = true;
    await facilitators.supported(DEVNET).then(
      () => expect.fail('nobody answered'),
      error => expect(error).to.be.instanceOf(FacilitatorUnreachable),
    );
    [a.down, a.faulty] = [false, true];
    const failures = await new Facilitators([{ name: 'a', facilitator: a }]).refresh(DEVNET);
    expect(failures.get('a')).to.be.instanceOf(FacilitatorFault);
  });

  it('only one that sends transactions itself signs before', async () => {
    facilitators.learn([{ feePayer: a.feePayer, lastOfferedAt: 1 }]);
    expect(await facilitators.sign(requestFor(a.feePayer))).to.deep.equal({ kind: 'not-needed' });
    const signed = { kind: 'signed' as const, transaction: 'BBBB', signature: SIGNATURE };
    const signing = new Facilitators([
      { name: 's', facilitator: Object.assign(a, { sign: async () => signed }) },
    ]);
    signing.learn([{ feePayer: a.feePayer, lastOfferedAt: 1 }]);
    expect(await signing.sign(requestFor(a.feePayer))).to.equal(signed);
  });

  it('a name has no credentials', () => {
    expect(facilitatorName('https://user:secret@f.example/x402?key=secret')).to.equal('f.example/x402');
    expect(facilitatorName('https://f.example')).to.equal('f.example/');
    expect(facilitatorName(`https://f.example/v1/${'k3y'.repeat(9)}`)).to.equal('f.example/v1/…');
  });
});
