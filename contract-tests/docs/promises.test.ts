import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { titlesOf } from '../support/test-titles.js';

const PAGE = new URL('../../../docs/explanation/promises.md', import.meta.url);
/** A test file, and the quotes that follow it up to the next file or code. */
const QUOTED = /`([\w/.-]+\.test\.ts)`([^`]*)/g;

/** Numbers and values look the same, because a title may take them from a variable. */
function comparable(title: string): string {
  return title
    .replace(/\$\{[^}]*\}|\d+/g, '#')
    .replace(/\s+/g, ' ')
    .toLowerCase();
}

describe('docs/explanation/promises.md', () => {
  it('quotes only titles of tests that exist', () => {
    const quotes = [...readFileSync(PAGE, 'utf8').matchAll(QUOTED)].flatMap(([, file = '', text = '']) =>
      [...text.matchAll(/"([^"]+)"/g)].map(([, title = '']) => ({ file, title })),
    );
    expect(quotes).to.have.length.greaterThan(40);
    const unknown = quotes.filter(
      ({ file, title }) => !titlesOf(file).some(each => comparable(each).includes(comparable(title))),
    );
    expect(unknown).to.deep.equal([]);
  });
});
