import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SETTING_TEXTS } from '../../src/config/setting-texts.js';
import { namesRead, referencePages } from '../tools/reference.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('docs/reference', function () {
  this.timeout(60_000);

  it('matches the code: make generate writes it', async () => {
    const pages = [...(await referencePages())];
    expect(pages.map(([file]) => basename(file))).to.include.members([
      'cli.md',
      'contract-extensions.md',
      'errors.md',
      'metrics.md',
      'settings.md',
    ]);
    for (const [file, { before, after }] of pages) expect(before, file).to.equal(after);
  });

  it('settings.md describes every variable that the server reads, and no others', () => {
    const described = Object.keys(SETTING_TEXTS).filter(name => !name.includes('<n>'));
    const numbered = /^FACILITATOR_\d_(?:HEADER|RATE)$/;
    // Read only for Coinbase's facilitator.
    const others = ['CDP_API_KEY_ID', 'CDP_API_KEY_SECRET'];
    const names = [...new Set([...namesRead(), ...others])].filter(name => !numbered.test(name));
    expect(described.sort()).to.deep.equal(names.sort());
  });

  it('contract-extensions.md names every extension and every key that the server reads', () => {
    const page = readFileSync(`${ROOT}docs/reference/contract-extensions.md`, 'utf8');
    const sources = ['contract', 'read-operation', 'read-upstream'].map(name =>
      readFileSync(`${ROOT}src/contract/${name}.ts`, 'utf8'),
    );
    const extensions = sources.flatMap(text => [...text.matchAll(/'(x-[a-z]+)'/g)]);
    const keys = sources.flatMap(text => [...text.matchAll(/^const (?:PRICE_)?KEYS = \[(.*)\]/gm)]);
    const names = [
      ...extensions.map(([, name = '']) => name),
      ...keys.flatMap(([, list = '']) => [...list.matchAll(/'(\w+)'/g)].map(([, name = '']) => name)),
    ];
    expect(names).to.include.members(['x-price', 'x-health', 'flow', 'timeoutMs']);
    expect([...new Set(names)].filter(name => !page.includes(`\`${name}\``))).to.deep.equal([]);
  });
});
