import { expect } from 'chai';
import { ChainHeights, resetHeight, seenHeight } from '../../src/payments/chain-heights.js';
import type { ChainView } from '../../src/payments/offers.js';
import { readView } from '../../src/payments/refresh-offers.js';

const HOUR = 3_600_000;
const FAR = 10_000_000;

describe('promise 4: the height that a claim is dated with', () => {
  let notes: Map<string, string>;
  let now: number;
  let heights: ChainHeights;
  const ledger = {
    getMeta: async (key: string) => notes.get(key),
    setMeta: async (key: string, value: string) => void notes.set(key, value),
  };

  beforeEach(() => {
    notes = new Map();
    now = 1_700_000_000_000;
    heights = new ChainHeights(ledger, { now: () => now });
  });

  /** What another server of this ledger knows, or this one after a restart. */
  const restarted = (): ChainHeights => new ChainHeights(ledger, { now: () => now });

  const viewAt = (height: number, by = heights): Promise<ChainView> =>
    readView(
      {
        latestBlockhash: async (_finality, _signal, check) => {
          const latest = { blockhash: 'hash', slot: height + 7, lastValidBlockHeight: height + 150 };
          check?.(latest);
          return latest;
        },
      },
      by,
      new AbortController().signal,
    );
  const failureAt = (height: number, by = heights): Promise<string> =>
    viewAt(height, by).then(
      () => 'none',
      (error: Error) => error.message,
    );

  it('is never far below what was seen before, also by another server or before a restart', async () => {
    expect(await viewAt(1_000)).to.deep.equal({ blockhash: 'hash', slot: 1_007, height: 1_000 });
    expect((await viewAt(950)).height, 'a little behind').to.equal(950);
    expect(await failureAt(949)).to.match(/51 blocks behind.*SOLANA_RPC_URL/);
    await viewAt(1_100);
    expect(await failureAt(1_000, restarted())).to.match(/100 blocks behind/);
    expect((await viewAt(1_060, restarted())).height).to.equal(1_060);
  });

  it('never rises faster than the chain can: a single far-future answer changes nothing', async () => {
    await viewAt(1_000);
    now += 10_000;
    expect(await failureAt(FAR)).to.match(/more than the chain can have reached.*ledger -- height --reset/);
    expect(await failureAt(FAR, restarted()), 'after a restart').to.match(/more than the chain can/);
    expect((await viewAt(1_025)).height, 'the true one').to.equal(1_025);
    expect(await seenHeight(ledger)).to.deep.equal({ height: 1_025, seenAt: now });
  });

  it('may rise as far as the chain went while no server was running', async () => {
    await viewAt(1_000);
    now += HOUR;
    expect(await failureAt(1_000 + 5 * 3_600)).to.match(/more than the chain can/);
    expect((await viewAt(1_000 + 2.5 * 3_600, restarted())).height).to.equal(10_000);
  });

  it('bounds the height that proves a payment absent, too', async () => {
    await viewAt(1_000);
    now += 10_000;
    expect(() => heights.checkRise({ lastValidBlockHeight: 1_000 + 150 + 191 })).to.throw(/1 blocks more/);
    heights.checkRise({ lastValidBlockHeight: 1_000 + 150 + 190 });
    heights.checkRise({ lastValidBlockHeight: 150 });
  });

  it('that was stored wrong can be reset by the operator, beside the running server', async () => {
    await viewAt(FAR);
    expect(await failureAt(1_000)).to.match(/blocks behind.*ledger -- height --reset/);
    await resetHeight(ledger);
    expect(await seenHeight(ledger)).to.equal(undefined);
    expect((await viewAt(1_000)).height).to.equal(1_000);
    expect(await failureAt(FAR)).to.match(/more than the chain can/);
  });

  it('is believed where an earlier version kept it without its time', async () => {
    notes.set('chain-height', '1000');
    expect(await failureAt(900)).to.match(/100 blocks behind/);
    expect((await viewAt(90_000)).height).to.equal(90_000);
  });
});
