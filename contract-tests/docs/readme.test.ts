import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { loadContract } from '../../src/contract/contract.js';

const ROOT = new URL('../../../', import.meta.url);

describe('The README', () => {
  const text = readFileSync(new URL('README.md', ROOT), 'utf8');
  const config = readFileSync(new URL('src/config.ts', ROOT), 'utf8');

  it('names every paid operation with its path and its price as the contract has it', () => {
    for (const { id, path, price } of loadContract(new URL('openapi.yaml', ROOT)).paid) {
      const row = text.split('\n').find(line => line.startsWith(`| \`${id}\``)) ?? '';
      expect(row, id).to.include(`POST ${path}\``);
      expect(row, id).to.include(`| ${price.amount} |`);
    }
  });

  it('names every variable that the server reads, in full or by its ending', () => {
    const names = [...config.matchAll(/read\.\w+\(\s*'([A-Z_]+)'/g)].map(match => match[1] ?? '');
    expect(names.length).to.be.greaterThan(15);
    const missing = [...new Set(names)].filter(name => !text.includes(name) && !name.startsWith('SANDBOX_'));
    expect(missing).to.deep.equal([]);
  });

  it('links to files that exist', () => {
    for (const [, link] of text.matchAll(/\]\((?!https?:)([^)]+)\)/g)) {
      expect(() => readFileSync(new URL(link ?? '', ROOT)), link).not.to.throw();
    }
  });
});
