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

/** A chain on which these payments have landed, and the blockhash of every payment has long expired. */
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
    it(`a success reported for ${what} is ${lie ? 'a false report, and later ones are believed only once the transfer has been seen' : 'believed'}`, async () => {
      const payment = world.payment();
      expect((await world.redeem(payment)).kind).to.equal('sold');
      const trust = await reconcile(chainWith([{ payment, failed }]));
      expect(trust.lied(FEE_PAYER)).to.equal(lie);
      expect((await world.ledger.find(payment.checked.id))?.auditedAt).not.to.equal(null);
    });

  it('a sale whose transfer is final keeps the data that books and refunds need, and a copy of its payment is answered and not sold again', async () => {
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

  it('a success reported for a transfer that does not exist is a false report', async () => {
    await world.redeem(world.payment());
    expect((await reconcile(chainWith([]))).lied(FEE_PAYER)).to.equal(true);
  });

  it("on a chain with 200 ms slots, a payment does not count as absent while its blockhash may be valid, however old the server's view is", async () => {
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    const payment = world.payment();
    expectPending(await world.redeem(payment));
    const [behind, whileTheViewAged, lifeOfABlockhash] = [50, 40 * 5, 150];
    await reconcile(chainWith([], 900 + behind + whileTheViewAged + lifeOfABlockhash));
    expect(await world.stateOf(payment)).to.equal('settling');
  });

  it('a payer whose payment proves to be unpaid is unknown again, so that verify comes before its work', async () => {
    const payer = await world.knownPayer();
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'status 502', signature: '' });
    // Simulates a server that died before it could record the refusal.
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
