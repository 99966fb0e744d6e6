import { join } from 'node:path';
import { expect } from 'chai';
import { findPayments } from '../../src/operator/find-payment.js';
import { openLedgerReader } from '../../src/ledger/store.js';
import { openWorld, post, signFor, TEXT, type World } from '../support/world.js';

describe('A payment searched for by request id', () => {
  let world: World;
  before(async () => void (world = await openWorld()));
  after(() => world?.close());

  async function found(text: string): Promise<string[]> {
    const reader = await openLedgerReader({ url: `file:${join(world.stateDir, 'ledger.db')}` });
    try {
      const rows = await findPayments(reader, text).catch(() => []);
      return rows.map(({ requestId }) => String(requestId));
    } finally {
      await reader.close();
    }
  }

  it('is found by the X-Request-Id of the last answer to it, whether the server or the buyer chose that id', async () => {
    const [path, body] = ['/v1/summarize', { text: TEXT }];
    const payment = await signFor(world, path);
    const url = `${world.url}${path}`;
    const first = await post(url, body, payment);
    const made = first.headers.get('x-request-id') ?? '';
    expect([first.status, await found(made)]).to.deep.equal([200, [made]]);
    const again = await post(url, body, { ...payment, 'x-request-id': 'ticket-4711' });
    expect([again.status, await found('ticket-4711')]).to.deep.equal([200, ['ticket-4711']]);
    expect(await found('ticket-4712')).to.deep.equal([]);
  });
});
