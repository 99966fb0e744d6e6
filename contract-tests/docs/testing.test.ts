import { expect } from 'chai';
import { stockLines, wordsForSt } from '../fuzz/stock-lines.js';

describe('docs/how-to/testing.md', () => {
  it('gives st the same arguments in Docker as in a shell, mounts the settings, and uses the network of this machine', () => {
    const { st, docker } = stockLines();
    expect(wordsForSt(docker)).to.deep.equal(st.slice(1));
    const line = docker.join(' ');
    expect(line).to.contain('--network host');
    expect(line).to.contain('-v "$PWD/schemathesis.toml:/app/schemathesis.toml:ro" -w /app');
  });
});
