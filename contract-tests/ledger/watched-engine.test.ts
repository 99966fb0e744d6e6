import { expect } from 'chai';
import { SQLITE, type Engine } from '../../src/ledger/engine.js';
import { watched } from '../../src/ledger/watched-engine.js';

const FAULT = new Error('disk I/O error');

/** An engine whose operations end as given. */
function engineOf(operation: () => Promise<never>): Engine {
  return {
    dialect: SQLITE,
    owner: 'owner',
    read: operation,
    write: operation,
    transact: operation,
    close: () => Promise.resolve(),
  };
}

describe('An engine whose operations are reported', () => {
  let told: { write: boolean; error: Error | undefined }[];
  const watchedWith = (operation: () => Promise<never>): Engine =>
    watched(engineOf(operation), (write, _ms, error) => void told.push({ write, error }));
  beforeEach(() => (told = []));

  it('reports writes before their caller goes on, and no read that was served', async () => {
    const engine = watchedWith(() => Promise.resolve('value' as never));
    expect(await engine.read(() => 'value' as never)).to.equal('value');
    expect(told).to.deep.equal([]);
    expect(await engine.write(() => 'value' as never)).to.equal('value');
    expect(told).to.deep.equal([{ write: true, error: undefined }]);
  });

  it('reports reads and writes that failed, and fails as they did', async () => {
    const engine = watchedWith(() => Promise.reject(FAULT));
    for (const [operation, write] of [
      ['read', false],
      ['write', true],
    ] as const) {
      const failed = await engine[operation](() => 'value' as never).catch((error: unknown) => error);
      expect(failed).to.equal(FAULT);
      expect(told.pop()).to.deep.equal({ write, error: FAULT });
    }
  });
});
