import { expect } from 'chai';
import { createObserver } from '../../src/observe/create-observer.js';
import type { Spent } from '../../src/observe/observer.js';

const BUG = new Error('a bug');
const fail = (): never => {
  throw BUG;
};
const OPERATION = { id: 'summarize' };

describe('An observer', () => {
  it('reports the errors of its listeners, and no call fails because of them', async () => {
    const faults: unknown[] = [];
    const listeners = { events: [{ hear: fail }], unpaid: () => {}, committed: [fail], measured: fail };
    const observer = createObserver(listeners, error => void faults.push(error));
    observer.tell({ kind: 'throttled' });
    observer.committed(1);
    const step = observer.step('work', { operation: OPERATION }, () => Promise.resolve('an answer'));
    expect(await step).to.equal('an answer');
    await new Promise(resolve => setImmediate(resolve));
    expect(faults).to.deep.equal([BUG, BUG, BUG]);
  });

  it("records the duration of a step before the step's caller continues, whether the step succeeds or fails", async () => {
    const measured: string[] = [];
    const observer = createObserver(
      { events: [], unpaid: () => {}, committed: [], measured: step => void measured.push(step) },
      fail,
    );
    const spent: Spent = {};
    await observer.step('claim', { operation: OPERATION, spent }, () => Promise.resolve());
    expect(spent.claim).to.be.a('number');
    const failed = observer.step('settle', { operation: OPERATION, spent }, () => Promise.reject(BUG));
    expect(await failed.catch((error: unknown) => error)).to.equal(BUG);
    expect(spent.settle).to.be.a('number');
    expect(measured).to.deep.equal(['claim', 'settle']);
  });
});
