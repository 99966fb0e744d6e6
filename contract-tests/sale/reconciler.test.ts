import { expect } from 'chai';
import { EXPIRED_AFTER_BLOCKS } from '../../src/rails/solana/blocks.js';
import type { ChainHistory } from '../../src/rails/solana/find-transfer.js';
import type { Payment } from '../../src/sale/check-payment.js';
import { loadFacilitatorTrust, type FacilitatorTrust } from '../../src/facilitators/facilitator-trust.js';
import { Reconciler } from '../../src/sale/reconciler.js';
import { keptEvidence } from '../../src/rails/solana/kept-evidence.js';
import { readTransaction } from '../../src/rails/solana/message.js';
import { sourceAccountOf } from '../../src/rails/solana/transaction.js';
import {
  eachInANewWorld,
  expectPending,
  faulty,
  FEE_PAYER,
  SIGNATURE,
  world,
} from '../support/charge-world.js';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const FACILITATOR = {
  names: ['fake.example/'],
  nameOf: () => 'fake.example/',
  findName: async () => undefined,
};

/** A chain on which every payment of the world is long dead, and these have landed. */
function chainWith(
  landed: { payment: Payment; failed: boolean }[],
  height = 900 + EXPIRED_AFTER_BLOCKS + 1,
): ChainHistory {
  const [one] = landed.map(({ payment, failed }) => ({
    slot: 1_500,
    failed,
    message: readTransaction(Buffer.from(payment.checked.evidence, 'base64')).message,
  }));
  return {
    latestBlockhash: async () => ({ slot: 2_000, lastValidBlockHeight: height + 150 }),
    signaturesFor: async () => (one ? [{ signature: SIGNATURE, ...one }] : []),
    transaction: async () => one ?? null,
  };
}

describe('how the reconciler reads the chain', () => {
  eachInANewWorld();

  /** One round over all payments. */
  async function reconcile(chain: ChainHistory): Promise<FacilitatorTrust> {
    const trust = await loadFacilitatorTrust(world.ledger, FACILITATOR, SILENT);
    const timing = { rest: 0, auditAfter: 0 };
    const reconciler = new Reconciler({
      ledger: world.ledger,
      rail: world.newRail({ chain, trust }),
      log: SILENT,
      timing,
      now: world.clock,
    });
    world.now += 1_000;
    await reconciler.reconcile();
    await reconciler.stop();
    return trust;
  }

  for (const [what, failed, lie] of [
    ['a transfer that took effect', false, false],
    ['a transfer that failed', true, true],
  ] as const)
    it(`a success that was reported for ${what} is ${lie ? 'a lie: no later one is believed unseen' : 'none'}`, async () => {
      const payment = world.payment();
      expect((await world.redeem(payment)).kind).to.equal('sold');
      const trust = await reconcile(chainWith([{ payment, failed }]));
      expect(trust.lied(FEE_PAYER)).to.equal(lie);
      expect((await world.ledger.find(payment.checked.id))?.auditedAt).not.to.equal(null);
    });

  it('a sale whose transfer is final keeps what books and refunds read, and a copy of it is answered and not sold again', async () => {
    const payment = world.payment();
    expect((await world.redeem(payment)).kind).to.equal('sold');
    await reconcile(chainWith([{ payment, failed: false }]));
    const row = await world.ledger.find(payment.checked.id);
    expect(keptEvidence(row?.evidence ?? '')?.source).to.equal(sourceAccountOf(payment.checked.evidence));
    expect(row?.settlement).to.equal(SIGNATURE);
    const again = await world.redeem(payment);
    expect(again.kind).to.equal('sold');
    expect((await world.ledger.counts()).delivered.payments).to.equal(1);
    const other = await world.redeem(payment, { text: 'another call' });
    expect(other.kind).not.to.equal('sold');
  });

  it('a success that was reported for a transfer that is not there is a lie', async () => {
    await world.redeem(world.payment());
    expect((await reconcile(chainWith([]))).lied(FEE_PAYER)).to.equal(true);
  });

  it('on a chain with slots of 200 ms, a payment is not absent while its blockhash may live, however old the view and however far behind', async () => {
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    const payment = world.payment();
    expectPending(await world.redeem(payment));
    const [behind, whileTheViewAged, lifeOfABlockhash] = [50, 40 * 5, 150];
    await reconcile(chainWith([], 900 + behind + whileTheViewAged + lifeOfABlockhash));
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('a payer whose payment the chain proves unpaid is unknown again: verify comes before its work', async () => {
    const payer = await world.knownPayer();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    // As if the server had died before it could record it.
    world.charge = world.newCharge({ ledger: faulty('recordRefusal') });
    const payment = world.payment({ payer });
    expectPending(await world.redeem(payment, { text: 'another' }));
    const known = (): Promise<boolean> => world.isKnown(payer);
    expect(await known()).to.equal(true);
    await reconcile(chainWith([]));
    expect(await world.stateOf(payment)).to.equal('released');
    expect(await known()).to.equal(false);
  });
});
