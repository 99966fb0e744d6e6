import { expect } from 'chai';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { faultOf, linksOf, pagesIn } from '../support/page-links.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('The pages of the repository', () => {
  const pages = pagesIn(ROOT);

  it('are found', () => {
    expect(pages.map(page => relative(ROOT, page))).to.include.members(['README.md', 'CONTRIBUTING.md']);
    expect(pages.length).to.be.above(30);
  });

  for (const page of pages)
    it(`link to files and headings that exist: ${relative(ROOT, page)}`, () => {
      const faults = linksOf(page).map(link => faultOf(page, link));
      expect(faults.filter(fault => fault !== undefined)).to.deep.equal([]);
    });
});
