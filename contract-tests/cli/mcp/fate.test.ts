import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { fateOf } from '../../../src/cli/mcp/fate.js';
import { knownTransfers } from '../../../src/payments/find-transfer.js';
import { readTransaction } from '../../../src/solana/message.js';
import { aPayment } from '../../support/wallet-payment.js';

const MINUTE = 60_000;
const NOW = Date.parse('2026-11-22T12:00:00Z');
const SIGNATURE = '5'.repeat(88);

type Landed = { slot: number; failed: boolean; message: Uint8Array };
type Chain = Parameters<typeof fateOf>[0];

const SLOTS = { confirmed: 5_000, finalized: 4_968 };

/**
 * A chain on which the payment landed or not, as it is seen at `confirmed` and at `finalized`. As on a real one, the newest confirmed slot
 * is not finalized yet, and a history is only shown as far as the finality that is asked for.
 */
function chainOf(shows: {
  lives: boolean;
  confirmed?: Landed | undefined;
  finalized?: Landed | undefined;
  behind?: true;
}): Chain {
  return {
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

describe('what the chain shows of a payment', () => {
  const { transaction } = aPayment();
  const { message } = readTransaction(Buffer.from(transaction, 'base64'));
  const id = createHash('sha256').update(message).digest('hex');
  const landed: Landed = { slot: 4_960, failed: false, message };
  const fate = (chain: Chain, ageMs: number) =>
    fateOf(
      chain,
      { id, transaction, blockhash: 'x', signedAt: NOW - ageMs },
      NOW,
      AbortSignal.timeout(1_000),
    );

  it('a transfer that is on the chain landed, however young it is', async () => {
    const chain = chainOf({ lives: true, confirmed: landed });
    expect(await fate(chain, 1_000)).to.deep.equal({ kind: 'landed', signature: SIGNATURE });
  });

  it('without one, a living blockhash leaves it open', async () => {
    expect(await fate(chainOf({ lives: true }), 10 * MINUTE)).to.have.property('kind', 'open');
  });

  it('a young payment is open even if a server says that its blockhash is dead', async () => {
    expect(await fate(chainOf({ lives: false }), 89_000)).to.have.property('kind', 'open');
  });

  it('an old one with a dead blockhash that is not in the finalized history is dead', async () => {
    expect(await fate(chainOf({ lives: false }), 2 * MINUTE)).to.deep.equal({ kind: 'dead' });
  });

  it('a transfer that failed on the chain moved nothing and is dead', async () => {
    const failed = { ...landed, failed: true };
    const chain = chainOf({ lives: false, confirmed: failed, finalized: failed });
    expect(await fate(chain, 2 * MINUTE)).to.deep.equal({ kind: 'dead' });
  });

  it('a transfer that is finalized only now, or a server whose finalized history is behind, is not dead', async () => {
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

  it('a history that is long is read a part at a time; until it is read, nothing is said', async () => {
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
