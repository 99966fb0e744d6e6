import { Keypair } from '@solana/web3.js';
import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import type { ChainHistory } from '../../../src/rails/solana/find-transfer.js';
import { EXPIRED_AFTER_BLOCKS } from '../../../src/rails/solana/blocks.js';
import { Reconciler } from '../../../src/sale/reconciler.js';
import { sharedHistory } from '../../../src/rails/solana/shared-history.js';
import { loadFacilitatorTrust } from '../../../src/facilitators/facilitator-trust.js';
import { eachInANewWorld, expectPending, world } from '../../support/charge-world.js';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const NOBODY = { names: [], nameOf: () => undefined, findName: async () => undefined };
const PAYMENTS = 7;
const TRANSFERS = 30;

/** A chain with thirty unrelated transfers, on which the blockhash of every payment has long expired. */
function strangersOnly(): { chain: ChainHistory; asked: Record<keyof ChainHistory, number> } {
  const asked = { latestBlockhash: 0, signaturesFor: 0, transaction: 0 };
  const messages = new Map(Array.from({ length: TRANSFERS }, (_, n) => [`transfer ${n}`, randomBytes(200)]));
  const chain: ChainHistory = {
    latestBlockhash: async () => {
      asked.latestBlockhash += 1;
      return { slot: 2_000, lastValidBlockHeight: 900 + EXPIRED_AFTER_BLOCKS + 1 + 150 };
    },
    signaturesFor: async () => {
      asked.signaturesFor += 1;
      return [...messages.keys()].map(signature => ({ signature, slot: 1_500, failed: false }));
    },
    transaction: async signature => {
      asked.transaction += 1;
      return { slot: 1_500, failed: false, message: messages.get(signature)! };
    },
  };
  return { chain, asked };
}

describe('The requests to the chain in one round for several payments', () => {
  eachInANewWorld();

  it('are one search for seven unresolved payments by one payer, not seven', async () => {
    world.facilitator.onSettle = () => ({ kind: 'unknown', reason: 'no answer', signature: '' });
    const payer = Keypair.generate();
    const payments = Array.from({ length: PAYMENTS }, () => world.payment({ payer }));
    await Promise.all(
      payments.map(async (each, n) => expectPending(await world.redeem(each, { text: `${n}` }))),
    );
    const { chain, asked } = strangersOnly();
    const trust = await loadFacilitatorTrust(world.ledger, NOBODY, SILENT);
    const reconciler = new Reconciler({
      ledger: world.ledger,
      rail: world.newRail({ chain, trust }),
      log: SILENT,
      timing: { rest: 0 },
    });
    await reconciler.reconcile();
    for (const each of payments) expect(await world.stateOf(each)).to.equal('released');
    // One search is `confirmed`, to find a transfer soon; the other is `finalized`, to prove that it is absent.
    expect(asked.signaturesFor, 'searches').to.be.at.most(2);
    expect(asked.latestBlockhash).to.equal(1);
    expect(asked.transaction, 'transactions').to.be.at.most(TRANSFERS);
    await reconciler.stop();
  });

  it("are repeated if another caller's request was not answered in time", async () => {
    const { chain, asked } = strangersOnly();
    let fail: ((why: Error) => void) | undefined;
    const shared = sharedHistory({
      ...chain,
      transaction: (...args) =>
        fail ? chain.transaction(...args) : new Promise<never>((_, reject) => (fail = reject)),
    });
    const { signal } = new AbortController();
    const first = shared.transaction('transfer 0', 'confirmed', signal);
    const second = shared.transaction('transfer 0', 'confirmed', signal);
    fail?.(new Error('its time is up'));
    expect(await first.catch((error: Error) => error.message)).to.equal('its time is up');
    expect((await second)?.slot).to.equal(1_500);
    expect(asked.transaction).to.equal(1);
  });
});
