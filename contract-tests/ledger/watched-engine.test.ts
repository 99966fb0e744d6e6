import { expect } from 'chai';
import { SQLITE, type Engine } from '../../src/ledger/engine.js';
import { watched } from '../../src/ledger/watched-engine.js';

const FAULT = new Error('disk I/O error');

/** An engine whose operations all have the given outcome. */
function engineOf(operation: () => Promise<never>): Engine {
  return {
    dialect: SQLITE,
    owner: 'owner',
    read: operation,
    write: operation,
    transact: operation,
    notifyChange: () => undefined,
    changeOf: () => Promise.resolve(),
    show: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

describe('An engine whose operations are reported', () => {
  let told: (Error | 'committed')[];
  const watch = {
    committed: () => void told.push('committed'),
    failed: (error: Error) => void told.push(error),
  };
  beforeEach(() => (told = []));

  it('reports writes before their caller continues, and no read that succeeded', async () => {
    const engine = watched(
      engineOf(() => Promise.resolve('value' as never)),
      watch,
    );
    expect(await engine.read(() => 'value' as never)).to.equal('value');
    expect(told).to.deep.equal([]);
    expect(await engine.write(() => 'value' as never)).to.equal('value');
    expect(told).to.deep.equal(['committed']);
  });

  it('reports reads and writes that failed, and fails as they did', async () => {
    const engine = watched(
      engineOf(() => Promise.reject(FAULT)),
      watch,
    );
    for (const operation of ['read', 'write'] as const) {
      const failed = await engine[operation](() => 'value' as never).catch((error: unknown) => error);
      expect(failed).to.equal(FAULT);
      expect(told.splice(0)).to.deep.equal([FAULT]);
    }
  });
});
