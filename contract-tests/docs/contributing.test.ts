import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('CONTRIBUTING.md', () => {
  it('names every folder of src/ in its tree, and no other', () => {
    const text = readFileSync(`${ROOT}CONTRIBUTING.md`, 'utf8');
    const [, tree = ''] = /^ {4}src\/.*\n((?: {5,}.*\n)+)/m.exec(text) ?? [];
    const named = [...tree.matchAll(/^ {6}([a-z-]+)\/ /gm)].map(([, name]) => name);
    const folders = readdirSync(`${ROOT}src`, { withFileTypes: true })
      .filter(each => each.isDirectory())
      .map(({ name }) => name);
    expect(named).to.have.members(folders);
  });
});
