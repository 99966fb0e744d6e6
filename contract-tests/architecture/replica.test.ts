import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';

/** The modules that show sales. `ledger/replica.ts` says what they may read from the replica. */
const READERS = /^(?:admin\/|cli\/ledger\/through-replica\.ts$|compose\.ts$|operator\/replica-sentence\.ts$)/;

describe('a replica of the ledger', () => {
  it('is read by code that shows sales, and by no code that decides about money', () => {
    const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(name =>
      name.endsWith('.ts'),
    );
    const importing = files.filter(name =>
      /from '[./a-z]*(?<!queries)\/replica\.js'/.test(readFileSync(join('src', name), 'utf8')),
    );
    expect(importing).to.include('compose.ts');
    expect(importing.filter(name => !READERS.test(name))).to.deep.equal([]);
    const asked = files.filter(name => /databaseReadUrl/.test(readFileSync(join('src', name), 'utf8')));
    expect(asked).to.have.members(['compose.ts', 'config.ts']);
  });
});
