import { expect } from 'chai';
import { ChainHeights, resetHeight, seenHeight } from '../../../src/rails/solana/chain-heights.js';
import type { ChainView } from '../../../src/rails/solana/solana-hints.js';
import { readView } from '../../../src/rails/solana/refresh-hints.js';

const HOUR = 3_600_000;
const FAR = 10_000_000;
const MINUTE = 60_000;
const FIVE_A_SECOND = 5 * 60;

describe('promise 4: the height that is stored with a claim', () => {
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

  /** The heights as another server on this ledger would read them, or this server after a restart. */
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

  it('is never far below what was seen before, even by another server or before a restart', async () => {
    expect(await viewAt(1_000)).to.deep.equal({ blockhash: 'hash', slot: 1_007, height: 1_000 });
    expect((await viewAt(950)).height, 'a little behind').to.equal(950);
    expect(await failureAt(949)).to.match(/51 blocks behind.*SOLANA_RPC_URL/);
    await viewAt(1_100);
    expect(await failureAt(1_000, restarted())).to.match(/100 blocks behind/);
    expect((await viewAt(1_060, restarted())).height).to.equal(1_060);
  });

  it('never rises faster than the chain can, so a single far-future answer changes nothing', async () => {
    await viewAt(1_000);
    now += 10_000;
    expect(await failureAt(FAR)).to.match(/more than the chain can have reached.*ledger -- height --reset/);
    expect(await failureAt(FAR, restarted()), 'after a restart').to.match(/more than the chain can/);
    expect((await viewAt(1_025)).height, 'the true one').to.equal(1_025);
    expect(await seenHeight(ledger)).to.deep.equal({ height: 1_025, seenAt: now });
  });

  it('may rise as far as the chain advanced while no server was running', async () => {
    await viewAt(1_000);
    now += HOUR;
    expect(await failureAt(1_000 + 5 * 3_600)).to.match(/more than the chain can/);
    expect((await viewAt(1_000 + 2.5 * 3_600, restarted())).height).to.equal(10_000);
  });

  it('also limits the height that proves a payment absent', async () => {
    await viewAt(1_000);
    now += 10_000;
    expect(() => heights.checkRise({ lastValidBlockHeight: 1_000 + 150 + 191 })).to.throw(/1 blocks more/);
    heights.checkRise({ lastValidBlockHeight: 1_000 + 150 + 190 });
    heights.checkRise({ lastValidBlockHeight: 150 });
  });

  it('can be reset by the operator while the server runs, if a wrong height was stored', async () => {
    await viewAt(FAR);
    expect(await failureAt(1_000)).to.match(/blocks behind.*ledger -- height --reset/);
    await resetHeight(ledger);
    expect(await seenHeight(ledger)).to.equal(undefined);
    expect((await viewAt(1_000)).height).to.equal(1_000);
    expect(await failureAt(FAR)).to.match(/more than the chain can/);
  });

  it('is believed if an earlier version stored it without its time', async () => {
    notes.set('chain-height', '1000');
    expect(await failureAt(900)).to.match(/100 blocks behind/);
    expect((await viewAt(90_000)).height).to.equal(90_000);
  });

  describe('on a chain whose rate is measured', () => {
    /** Lets a minute pass for each entry, which lists the blocks that each server claims to have advanced in that minute. */
    async function measure(minutes: (number | undefined)[][], by = heights): Promise<void> {
      let reported = (minutes[0] ?? []).map(() => 1_000);
      await by.measure(reported);
      for (const rises of minutes) {
        now += MINUTE;
        reported = reported.map((height, server) => height + (rises[server] ?? 0));
        await by.measure(
          reported.map((height, server) => (rises[server] === undefined ? undefined : height)),
        );
      }
    }
    const same = (rises: (number | undefined)[], minutes = 5): (number | undefined)[][] =>
      Array.from({ length: minutes }, () => rises);
    /** How many blocks a height may rise while the server is stopped for ten minutes. */
    async function mostInTenMinutes(): Promise<number> {
      await resetHeight(ledger);
      await viewAt(1_000);
      now += 10 * MINUTE;
      const text = await failureAt(FAR, restarted());
      return FAR - Number(/is (\d+) blocks more/.exec(text)?.[1]) - 1_000;
    }
    const UNMEASURED = 150 + 600 * 4;
    const AT_MOST = 150 + 600 * 10;

    it('may rise by ten minutes of 200 ms slots while the server is stopped', async () => {
      await measure(same([FIVE_A_SECOND, FIVE_A_SECOND]));
      await viewAt(1_000);
      now += 10 * MINUTE;
      expect((await viewAt(1_000 + 600 * 5, restarted())).height).to.equal(4_000);
    });

    it('may rise with a single RPC server, even if that one was stuck before it was measured', async () => {
      await viewAt(1_000);
      now += 10 * MINUTE;
      expect(await failureAt(4_000)).to.match(/more than the chain can/);
      await measure(same([FIVE_A_SECOND], 3));
      expect((await viewAt(1_000 + 780 * 5)).height).to.equal(4_900);
    });

    it('never rises by more than ten blocks a second, even if the only server reports huge heights', async () => {
      await measure(same([FAR]));
      expect(await mostInTenMinutes()).to.equal(AT_MOST);
      notes.set('chain-rate', '100000');
      expect(await mostInTenMinutes(), 'a wrong rate in the ledger').to.equal(AT_MOST);
    });

    it('is not affected by a single huge height', async () => {
      await measure([[150], [150], [FAR], [150], [150]]);
      expect(await mostInTenMinutes()).to.equal(UNMEASURED);
    });

    it('is not affected by one of two servers, or one of three, that lies about the rate', async () => {
      await measure(same([150, FAR]));
      expect(await mostInTenMinutes()).to.equal(UNMEASURED);
      heights = restarted();
      await measure(same([FAR, 150, 150]));
      expect(await mostInTenMinutes()).to.equal(UNMEASURED);
    });

    it('is not taken from one server only because the other does not answer', async () => {
      await measure(same([undefined, FAR]));
      expect(await mostInTenMinutes()).to.equal(UNMEASURED);
    });

    it('does not follow a rate that was read only twice', async () => {
      await measure(same([FAR], 2));
      expect(await mostInTenMinutes()).to.equal(UNMEASURED);
    });

    it('may rise as before once a stopped chain resumes', async () => {
      await measure(same([0, 0]));
      expect(await mostInTenMinutes()).to.equal(UNMEASURED);
      expect((await viewAt(1_000 + 600 * 2.5, restarted())).height).to.equal(2_500);
    });
  });
});
