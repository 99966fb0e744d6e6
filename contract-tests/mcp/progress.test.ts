import { expect } from 'chai';
import { withProgress } from '../../src/mcp/progress.js';

type Notified = { progress: number; total?: number; message: string };

const EVERY_MS = 5;

/** Runs a call that ends after `count` notifications. @returns the notifications */
async function toldUntil(count: number, doneAt: (told: number) => number | undefined): Promise<Notified[]> {
  const told: Notified[] = [];
  let finish: (answer: string) => void = () => {};
  const answer = new Promise<string>(resolve => (finish = resolve));
  const charge = {
    progressOf: async () => {
      const done = doneAt(told.length);
      return done === undefined ? undefined : { done, wanted: 5 };
    },
  };
  const notify = async (progress: Notified): Promise<void> => {
    told.push(progress);
    if (told.length === count) finish('answer');
  };
  expect(await withProgress(answer, charge, () => 'payment', notify, EVERY_MS)).to.equal('answer');
  return told;
}

describe('progress of a call over MCP', () => {
  it('is the number of finished parts, each greater than the one before', async () => {
    const told = await toldUntil(6, sent => Math.floor(sent / 2));
    expect(told[5]).to.deep.include({ total: 5, message: '2 of 5 done' });
    for (let at = 1; at < told.length; at++)
      expect(told[at]?.progress).to.be.greaterThan(told[at - 1]?.progress ?? Infinity);
  });

  it('has no total if no people are asked, and a failing ledger does not stop the call', async () => {
    const told = await toldUntil(2, () => undefined);
    expect(told.every(each => each.total === undefined && each.message === 'in progress')).to.equal(true);
    const failing = { progressOf: async () => Promise.reject(new Error('away')) };
    const late = new Promise<string>(resolve => setTimeout(() => resolve('answer'), 4 * EVERY_MS));
    expect(
      await withProgress(
        late,
        failing,
        () => 'payment',
        async () => {},
        EVERY_MS,
      ),
    ).to.equal('answer');
  });
});
