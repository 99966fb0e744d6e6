import { expect } from 'chai';
import { mock } from 'node:test';
import { ChainHeights } from '../../../src/rails/solana/chain-heights.js';
import { HintRefresher } from '../../../src/rails/solana/refresh-hints.js';

type Parts = ConstructorParameters<typeof HintRefresher>[0];

describe('the refresh of the hints', () => {
  it('deletes claims only once their blockhash has expired at the height of the view', async () => {
    const deleted: unknown[] = [];
    const nothing = async (): Promise<void> => {};
    const parts = {
      hints: { setView: nothing, view: () => ({ height: 5_000 }), nextReadAfterMs: () => Infinity },
      chain: { latestBlockhash: async () => ({ blockhash: 'hash', slot: 1, lastValidBlockHeight: 5_150 }) },
      heights: { refresh: nothing, check: nothing, record: nothing },
      feePayers: { ask: nothing, probe: nothing, follow: nothing, share: nothing },
      ledger: { deleteExpiredClaims: async (claimed: object) => deleted.push(claimed) < 1, prune: nothing },
      log: { info: nothing, warn: nothing },
    } as unknown as Parts;
    const watch = new HintRefresher(parts);
    await watch.start();
    watch.stop();
    expect(deleted[0]).to.deep.equal({ before: 4_550 });
  });

  it('measures the chain once a minute, and reports the result', async () => {
    let now = 0;
    let height = 1_000;
    const notes = new Map<string, string>();
    const ledger = {
      getMeta: async (key: string) => notes.get(key),
      setMeta: async (key: string, value: string) => void notes.set(key, value),
      deleteExpiredClaims: async () => false,
      prune: async () => false,
    };
    const chain = {
      latestBlockhash: async () => ({ blockhash: 'hash', slot: 1, lastValidBlockHeight: height + 150 }),
      heights: async () => [height, height],
    };
    const heights = new ChainHeights(ledger, { now: () => now });
    const hints = { setView: () => {}, view: () => undefined, nextReadAfterMs: () => Infinity };
    const nothing = async (): Promise<void> => {};
    const feePayers = { ask: nothing, probe: nothing, follow: nothing, share: nothing };
    const found: string[] = [];
    const log = {
      info: (_fields: object, text: string) => found.push(text),
      warn: (_fields: object, text: string) => found.push(text),
    };
    mock.timers.enable({ apis: ['setInterval'] });
    const parts = { hints, chain, heights, feePayers, ledger, log } as unknown as Parts;
    const watch = new HintRefresher(parts);
    try {
      await watch.start();
      for (let minute = 0; minute < 4; minute++) {
        now += 60_000;
        height += 60 * 5;
        mock.timers.tick(60_000);
        await new Promise(resolve => setImmediate(resolve));
      }
      expect(found.join()).to.match(/may now rise by up to 6.3 a second/);
      expect(notes.get('chain-rate')).to.equal('6.3');
    } finally {
      watch.stop();
      mock.timers.reset();
    }
  });
});
