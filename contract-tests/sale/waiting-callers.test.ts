import { expect } from 'chai';
import type { Caller, Ledger } from '../../src/ledger/store.js';
import { WaitingCallers } from '../../src/sale/waiting-callers.js';
import { Gate } from '../support/charge-world.js';

describe('Requests at a server that are waiting for payments', () => {
  it('are renewed for the payment that they move to, even if they move during a renewal', async () => {
    const gate = new Gate();
    const asked: Caller[][] = [];
    const ledger = {
      renewCallers: async (callers: readonly Caller[]) => {
        const seen = [...callers];
        asked.push(seen);
        if (asked.length === 1) await gate.wait(undefined);
        return seen;
      },
    } as unknown as Ledger;
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const callers = new WaitingCallers({ ledger, log, now: Date.now, emptied: () => {} });
    callers.add({ id: 'first', number: 1 }, new AbortController().signal);
    const round = callers.renew(['first']);
    await gate.reached;
    callers.reassign({ id: 'first', number: 1 }, { id: 'second', number: 2 });
    gate.open();
    await round;
    await callers.renew(['first', 'second']);
    expect(asked.at(-1)).to.deep.equal([{ id: 'second', number: 2 }]);
    callers.removeAll('second');
  });
});
