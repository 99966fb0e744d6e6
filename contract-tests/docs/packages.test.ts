import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (file: string): string => readFileSync(`${ROOT}${file}`, 'utf8');

/** The rows of the table "The packages": a package, and the files and folders that import it. */
function rows(): [string, string[]][] {
  const [, section = ''] = read('docs/explanation/design.md').split('\n## The packages\n');
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)].map(([, name = '', places = '']) => [
    name,
    [...places.matchAll(/`([^`]+)`/g)].map(([, place = '']) => place),
  ]);
}

const sources = readdirSync(`${ROOT}src`, { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.ts'))
  .map(file => `src/${file.replaceAll('\\', '/')}`);

function importersOf(name: string): string[] {
  const imports = [`from '${name}'`, `import('${name}')`, `import '${name}'`];
  return sources.filter(file => imports.some(each => read(file).includes(each)));
}

describe('The packages of docs/explanation/design.md', () => {
  it('include those that the specification requires', () => {
    const names = rows().map(([name]) => name);
    const dependencies = ['package.json', 'packages/sandbox/package.json'].flatMap(file =>
      Object.keys((JSON.parse(read(file)) as { dependencies: object }).dependencies),
    );
    expect(names).to.deep.equal([
      'koa',
      'openapi-backend',
      'koa-body',
      '@koa/router',
      '@solana/web3.js',
      '@solana/spl-token',
    ]);
    expect(dependencies).to.include.members(names);
  });

  for (const [name, places] of rows())
    it(`${name} is imported where the table says, and nowhere else`, () => {
      const importers = importersOf(name);
      const covers = (place: string, file: string): boolean =>
        place.endsWith('/') ? file.startsWith(place) : file === place;
      expect(importers.filter(file => !places.some(place => covers(place, file)))).to.deep.equal([]);
      expect(places.filter(place => !importers.some(file => covers(place, file)))).to.deep.equal([]);
    });
});
