import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { fateOf } from '../../src/wallet/fate.js';
import { knownTransfers } from '../../src/rails/solana/find-transfer.js';
import type { ChainClock } from '../../src/rails/solana/chain-clock.js';
import { readTransaction } from '../../src/rails/solana/message.js';
import { aPayment } from '../support/wallet-payment.js';

const MINUTE = 60_000;
const NOW = Date.parse('2026-11-22T12:00:00Z');
const SIGNATURE = '5'.repeat(88);

type Landed = { slot: number; failed: boolean; message: Uint8Array };
type Chain = Parameters<typeof fateOf>[0];

const SLOTS = { confirmed: 5_000, finalized: 4_968 };

/**
 * A chain on which the payment landed or not, as seen at `confirmed` and at `finalized`. As on a real one, the newest
 * confirmed slot is not finalized yet, and a history is shown only up to the requested commitment.
 */
function chainOf(shows: {
  lives: boolean;
  confirmed?: Landed | undefined;
  finalized?: Landed | undefined;
  behind?: true;
  /** The finalized block's own time. */
  clock?: number;
}): Chain {
  return {
    account: async (_address, _signal, _bytes, finality) => {
      if (finality !== 'finalized') throw new Error('only the finalized clock proves anything');
      const data = Buffer.alloc(40);
      data.writeBigUInt64LE(BigInt(SLOTS.finalized));
      data.writeBigInt64LE(BigInt(Math.floor((shows.clock ?? NOW) / 1_000)), 32);
      return { owner: '', lamports: 1, executable: false, data, slot: SLOTS.finalized };
    },
    blockhashLives: async () => shows.lives,
    latestBlockhash: async (finality: keyof typeof SLOTS) => ({
      slot: SLOTS[finality],
      lastValidBlockHeight: SLOTS[finality] + 150,
      blockhash: 'x',
    }),
    signaturesFor: async (_address, { finality, minContextSlot }) => {
      const reached = SLOTS[finality] - (shows.behind ? 400 : 0);
      if (minContextSlot !== undefined && minContextSlot > reached)
        throw new Error('Minimum context slot has not been reached');
      const landed = finality === 'finalized' ? shows.finalized : shows.confirmed;
      return landed ? [{ signature: SIGNATURE, ...landed }] : [];
    },
    transaction: async (_signature, finality) =>
      (finality === 'finalized' ? shows.finalized : shows.confirmed) ?? null,
  };
}

describe('what the chain shows about a payment', () => {
  const { transaction } = aPayment();
  const { message } = readTransaction(Buffer.from(transaction, 'base64'));
  const id = createHash('sha256').update(message).digest('hex');
  const landed: Landed = { slot: 4_960, failed: false, message };
  const fate = (chain: Chain, ageMs: number, signedOnChain?: ChainClock) =>
    fateOf(
      chain,
      { id, transaction, blockhash: 'x', signedAt: NOW - ageMs, ...(signedOnChain ? { signedOnChain } : {}) },
      NOW,
      AbortSignal.timeout(1_000),
    );

  it('a transfer that is on the chain landed, however recent it is', async () => {
    const chain = chainOf({ lives: true, confirmed: landed });
    expect(await fate(chain, 1_000)).to.deep.equal({ kind: 'landed', signature: SIGNATURE });
  });

  it('without a transfer, the payment is open while its blockhash is valid', async () => {
    expect(await fate(chainOf({ lives: true }), 10 * MINUTE)).to.have.property('kind', 'open');
  });

  it('a recent payment is open even if a server says that its blockhash is dead', async () => {
    expect(await fate(chainOf({ lives: false }), 89_000)).to.have.property('kind', 'open');
  });

  it('a server that makes no progress proves nothing, however long that lasts', async () => {
    for (const ageMs of [2 * MINUTE, 60 * MINUTE]) {
      const signedAt = NOW - ageMs;
      for (const clock of [signedAt - 10 * MINUTE, signedAt, signedAt + 90_000])
        expect(await fate(chainOf({ lives: false, clock }), ageMs), String(clock - signedAt)).to.deep.equal({
          kind: 'open',
          why: 'the RPC server does not show yet that its transaction can no longer be settled',
        });
    }
  });

  it('a payment is dead once the server has a finalized block more than 90 s after the signature', async () => {
    const clock = NOW - 2 * MINUTE + 91_000;
    expect(await fate(chainOf({ lives: false, clock }), 2 * MINUTE)).to.deep.equal({ kind: 'dead' });
  });

  it("this machine's clock proves nothing: a payment that is old by it is recent on a chain whose clock is ahead", async () => {
    const ahead = NOW + 60 * MINUTE;
    const signed = { slot: 4_900, time: ahead };
    const behind = chainOf({ lives: false, clock: ahead - MINUTE });
    expect(await fate(behind, 10 * MINUTE, signed)).to.have.property('kind', 'open');
    const past = chainOf({ lives: false, clock: ahead + 91_000 });
    expect(await fate(past, 10 * MINUTE, signed)).to.deep.equal({ kind: 'dead' });
  });

  it('the time that a lagging server reported when the payment was signed proves nothing', async () => {
    const signed = { slot: 4_000, time: NOW - 30 * MINUTE };
    const behind = chainOf({ lives: false, clock: NOW - 20 * MINUTE });
    expect(await fate(behind, 2 * MINUTE, signed)).to.have.property('kind', 'open');
  });

  it("the search goes back to the slot in which the payment was signed, even if this machine's clock has been set back since then", async () => {
    const early = { ...landed, slot: 3_000 };
    const chain = chainOf({ lives: false, confirmed: early, finalized: early });
    expect(await fate(chain, 0, { slot: 2_999, time: NOW - 20 * MINUTE })).to.have.property('kind', 'landed');
  });

  it('an old payment with an expired blockhash is dead if its transfer is not in the finalized history', async () => {
    expect(await fate(chainOf({ lives: false }), 2 * MINUTE)).to.deep.equal({ kind: 'dead' });
  });

  it('a transfer that failed on the chain moved nothing and is dead', async () => {
    const failed = { ...landed, failed: true };
    const chain = chainOf({ lives: false, confirmed: failed, finalized: failed });
    expect(await fate(chain, 2 * MINUTE)).to.deep.equal({ kind: 'dead' });
  });

  it("a payment is not dead if its transfer was finalized only now, or if the server's finalized history is behind", async () => {
    expect(await fate(chainOf({ lives: false, finalized: landed }), 2 * MINUTE)).to.have.property(
      'kind',
      'open',
    );
    const behind = fate(chainOf({ lives: false, behind: true }), 2 * MINUTE);
    expect(
      await behind.then(
        () => 'answered',
        () => 'rejected',
      ),
    ).to.equal('rejected');
  });

  it('a long history is read in parts, and nothing is decided until all of it is read', async () => {
    const others = Array.from({ length: 200 }, (_, at) => ({
      slot: 4_970 - at * 0.01,
      failed: false,
      message,
    }));
    const known = knownTransfers();
    let reads = 0;
    const chain: Chain = {
      ...chainOf({ lives: false }),
      signaturesFor: async () => others.map((each, at) => ({ ...each, signature: `other ${at}` })),
      transaction: async () => {
        reads += 1;
        return { slot: 4_970, failed: false, message: Buffer.from('another') };
      },
    };
    const payment = { id, transaction, blockhash: 'x', signedAt: NOW - 2 * MINUTE };
    const looks: [string, number][] = [];
    for (let look = 0; look < 3; look++) {
      const { kind } = await fateOf(chain, payment, NOW, AbortSignal.timeout(1_000), known);
      looks.push([kind, reads]);
      reads = 0;
    }
    expect(looks).to.deep.equal([
      ['open', 80],
      ['open', 80],
      ['dead', 40],
    ]);
  });
});
