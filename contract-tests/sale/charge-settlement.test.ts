import { expect } from 'chai';
import type { FacilitatorRequest } from '../../src/facilitators/facilitator.js';
import type { SettleResult, SignResult } from '../../src/rails/rail.js';
import {
  answer,
  asked,
  bodyOf,
  eachInANewWorld,
  expectPending,
  expectRefused,
  expectUnavailable,
  faulty,
  MINUTE,
  SIGNATURE,
  SUMMARIZE,
  world,
} from '../support/charge-world.js';
import { DEVNET } from '../support/craft.js';

describe('charge: promise 4, an unknown settlement is never a 402', () => {
  eachInANewWorld();

  const doubts: Record<string, () => SettleResult | Promise<SettleResult>> = {
    duplicate_settlement: () => ({ kind: 'unknown', reason: 'duplicate_settlement', signature: '' }),
    transaction_failed: () => ({
      kind: 'unknown',
      reason: 'invalid_exact_svm_transaction_failed',
      signature: '',
    }),
    settlement_pending: () => ({ kind: 'unknown', reason: 'settlement_pending', signature: SIGNATURE }),
    'status 502': () => ({ kind: 'unknown', reason: 'status 502', signature: '' }),
    'a timeout': () => ({
      kind: 'unknown',
      reason: 'The operation was aborted due to timeout',
      signature: '',
    }),
    'a facilitator that throws': () => Promise.reject(new Error('bug')),
  };
  for (const [name, onSettle] of Object.entries(doubts)) {
    it(`after ${name}, every resend gets a 503 with a receipt, even after a restart, and settle is requested only once`, async () => {
      const payment = world.payment();
      world.facilitator.onSettle = onSettle;
      expectPending(await world.redeem(payment));
      world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
      expectPending(await world.redeem(payment));
      await world.restart();
      expectPending(await world.redeem(payment));
      world.now += 30 * MINUTE;
      expectPending(await world.redeem(payment));
      expect(await world.stateOf(payment)).to.equal('settling');
      expect(world.facilitator.settles).to.equal(1);
      expect(world.runs).to.equal(1);
    });
  }

  const TOO_MANY: SettleResult = {
    kind: 'unknown',
    reason: 'status 429',
    signature: '',
    trouble: { rest: true, seconds: 1 },
  };

  it('a facilitator that asks to wait gets one more request within the same call, which is then sold without repeating the work', async () => {
    const payer = await world.knownPayer();
    world.charge = world.newCharge({ confirm: async () => true });
    const answers: SettleResult[] = [TOO_MANY, { kind: 'settled', signature: SIGNATURE }];
    world.facilitator.onSettle = () => answers.shift() ?? TOO_MANY;
    const payment = world.payment({ payer });
    expect(bodyOf(await world.redeem(payment))).to.equal('{"summary":"run 1"}');
    expect(await world.stateOf(payment)).to.equal('delivered');
    expect(world.facilitator.settles).to.equal(2);
    expect(await world.isKnown(payer), 'still trusted').to.equal(true);
  });

  it('if the facilitator asks to wait twice, the payment is unresolved, and the payer is verified first from then on', async () => {
    const payer = await world.knownPayer();
    world.facilitator.onSettle = () => TOO_MANY;
    const payment = world.payment({ payer });
    expectPending(await world.redeem(payment));
    expect(world.facilitator.settles).to.equal(2);
    expect(await world.stateOf(payment)).to.equal('settling');
    expect(await world.isKnown(payer)).to.equal(false);
  });

  it('a facilitator is not asked again if it asks to wait for longer than a call is held, or if the caller leaves', async () => {
    const long: SettleResult = { ...TOO_MANY, trouble: { rest: true, seconds: 120 } };
    world.facilitator.onSettle = () => long;
    expectPending(await world.redeem(world.payment()));
    expect(world.facilitator.settles).to.equal(1);
    const gone = new AbortController();
    world.charge = world.newCharge();
    world.facilitator.onSettle = () => {
      setTimeout(() => gone.abort(), 50);
      return TOO_MANY;
    };
    await world.redeem(world.payment(), { gone: gone.signal, text: 'another' });
    await world.charge.idle();
    expect(world.facilitator.settles).to.equal(2);
  });

  it('the receipt names the signature if the facilitator gave one', async () => {
    world.facilitator.onSettle = () => ({
      kind: 'unknown',
      reason: 'settlement_pending',
      signature: SIGNATURE,
    });
    expect(await world.redeem(world.payment())).to.have.nested.property('receipt.transaction', SIGNATURE);
  });

  it("a payment whose refusal the ledger can't record is still unresolved", async () => {
    const payment = world.payment();
    world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    world.charge = world.newCharge({ ledger: faulty('release') });
    expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('a payment that is refused after somebody else took it over is still unresolved', async () => {
    const payment = world.payment();
    world.facilitator.onSettle = async () => {
      world.now += 10 * MINUTE;
      expect(await world.ledger.adopt(payment.checked.id, MINUTE)).to.have.property('state', 'settling');
      return { kind: 'refused', reason: 'insufficient_funds' };
    };
    expectPending(await world.redeem(payment));
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('if the first request is refused for a listed reason, the buyer gets a 402 with a receipt, and the payment is released and never claimed again', async () => {
    const payer = await world.knownPayer();
    const payment = world.payment({ payer });
    world.facilitator.onSettle = () => ({ kind: 'refused', reason: 'insufficient_funds' });
    const outcome = await world.redeem(payment);
    // A new signature over the same message would be the same payment, so no blockhash is offered.
    expectRefused(outcome, /funds/, false);
    expect(outcome).to.have.nested.property('receipt.errorReason', 'insufficient_funds');
    expect(await world.stateOf(payment)).to.equal('released');
    expect(await world.isKnown(payer)).to.equal(false);
    world.facilitator.onSettle = () => ({ kind: 'settled', signature: SIGNATURE });
    expectRefused(
      await world.redeem(payment),
      /was refused when it was settled \(insufficient_funds\)/,
      false,
    );
    expect(world.facilitator.settles).to.equal(1);
    expect(world.runs).to.equal(1);
  });
});

describe('charge: promise 10, once the money moved the answer is delivered', () => {
  eachInANewWorld();

  it('if the ledger fails after the settlement, the answer is delivered, and the failure is logged', async () => {
    const payment = world.payment();
    world.charge = world.newCharge({ ledger: faulty('deliver') });
    const outcome = await world.redeem(payment);
    expect(bodyOf(outcome)).to.equal('{"summary":"run 1"}');
    expect(outcome).to.have.nested.property('receipt.transaction', SIGNATURE);
    expect(world.logged).to.include('the ledger could not record a settlement');
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  for (const method of ['claim', 'settle'] as const) {
    it(`if the ledger fails at ${method}, the call gets a 503, nothing is settled, and the payment can be sent again`, async () => {
      const payment = world.payment();
      world.charge = world.newCharge({ ledger: faulty(method) });
      expectUnavailable(await world.redeem(payment), /could not be processed/);
      expect(world.facilitator.settles).to.equal(0);
      world.charge = world.newCharge();
      expect((await world.redeem(payment)).kind).to.equal('sold');
    });
  }

  it('a claim that was lost to another server is not settled', async () => {
    const payment = world.payment();
    const outcome = await world.redeem(payment, {
      work: async () => {
        world.now += 10 * MINUTE;
        const { checked } = payment;
        await world.ledger.claim({
          id: checked.id,
          operation: SUMMARIZE.id,
          requestHash: world.call(payment).requestHash,
          payer: checked.payer,
          amount: 10_000n,
          network: DEVNET,
          method: 'x402-v2',
          evidence: checked.evidence,
          flow: 'authorization',
          after: 1,
          position: 1,
          leaseMs: 60_000,
          limits: { maxUnsettledPerPayer: 9, maxUnsettledAmountPerPayer: 10n ** 9n, maxRuns: 3 },
        });
        return answer('{}');
      },
      holdMs: 10 * MINUTE + 200,
    });
    expectUnavailable(outcome, /being worked on/);
    expect(world.facilitator.settles).to.equal(0);
  });
});

describe('charge: a facilitator that sends transactions itself', () => {
  eachInANewWorld();

  const TRANSACTION = Buffer.from('signed by all').toString('base64');
  const signing = (sign: () => SignResult | Promise<SignResult>, seen: FacilitatorRequest[] = []) => ({
    supported: () => world.facilitator.supported(),
    verify: () => world.facilitator.verify(),
    sign: async () => sign(),
    settle: async (request: FacilitatorRequest) => {
      seen.push(request);
      return world.facilitator.settle();
    },
    close: async () => {},
  });
  const yes = (): SignResult => ({ kind: 'signed', transaction: TRANSACTION, signature: SIGNATURE });

  it('signature and bytes are in the ledger before anything is sent, and the same bytes are sent', async () => {
    const seen: FacilitatorRequest[] = [];
    const payment = world.payment();
    world.facilitator.onSettle = async () => {
      const row = await world.ledger.find(payment.checked.id);
      expect(row).to.include({ state: 'settling', settlement: SIGNATURE, evidence: TRANSACTION });
      return { kind: 'settled', signature: SIGNATURE };
    };
    world.charge = world.newCharge({ facilitator: asked(signing(yes, seen)) });
    expect((await world.redeem(payment)).kind).to.equal('sold');
    expect(seen.map(({ transaction }) => transaction)).to.deep.equal([TRANSACTION]);
  });

  it('a signed transaction is withdrawn if the buyer hung up before it was stored, but not if it was sent', async () => {
    const withdrawn: string[] = [];
    const withdraw = (): void => void withdrawn.push('it');
    const gone = new AbortController();
    let hangUp = (): void => gone.abort();
    const sign = async (): Promise<SignResult> => {
      hangUp();
      await new Promise(resolve => setTimeout(resolve, 300));
      return { ...(yes() as SignResult & { kind: 'signed' }), withdraw };
    };
    world.charge = world.newCharge({ facilitator: asked(signing(sign)) });
    const payment = world.payment();
    await world.redeem(payment, { gone: gone.signal });
    await world.charge.idle();
    expect(await world.stateOf(payment)).to.not.equal('settling');
    expect(withdrawn).to.deep.equal(['it']);
    hangUp = () => undefined;
    expect((await world.redeem(payment)).kind).to.equal('sold');
    expect(withdrawn).to.deep.equal(['it']);
  });

  it('if it refuses to sign, the payment gets a 402, and nothing is stored or sent', async () => {
    world.charge = world.newCharge({
      facilitator: asked(signing(() => ({ kind: 'refused', reason: 'fees' }))),
    });
    const payment = world.payment();
    expectRefused(await world.redeem(payment), /refused by the facilitator: fees/, true);
    expect(await world.stateOf(payment)).to.equal(undefined);
    expect(world.facilitator.settles).to.equal(0);
  });

  it('if it can’t sign, the payment gets a 503, uncharged, and may be sent again', async () => {
    let sign: () => SignResult | Promise<SignResult> = () => Promise.reject(new Error('no balance'));
    world.charge = world.newCharge({ facilitator: asked(signing(() => sign())) });
    const payment = world.payment();
    expectUnavailable(await world.redeem(payment), /charged/);
    sign = () => ({ kind: 'unavailable', detail: 'no balance' });
    expectUnavailable(await world.redeem(payment), /charged/);
    expect(await world.stateOf(payment)).to.equal('claimed');
    expect(world.facilitator.settles).to.equal(0);
    sign = yes;
    expect((await world.redeem(payment)).kind).to.equal('sold');
  });
});
