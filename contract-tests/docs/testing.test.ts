import { expect } from 'chai';
import { stockLines, wordsForSt } from '../fuzz/stock-lines.js';

describe('docs/how-to/testing.md', () => {
  it('gives Docker the same arguments for st as a shell, the settings beside them, and the network of this machine', () => {
    const { st, docker } = stockLines();
    expect(wordsForSt(docker)).to.deep.equal(st.slice(1));
    const line = docker.join(' ');
    expect(line).to.contain('--network host');
    expect(line).to.contain('-v "$PWD/schemathesis.toml:/app/schemathesis.toml:ro" -w /app');
  });
});
