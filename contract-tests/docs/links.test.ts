import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** What is installed, compiled or left by a run is not the repository's. */
const NOT_OURS = /^(?:node_modules|dist.*|state|\..*)$/;

function pagesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_OURS.test(entry.name) ? [] : pagesIn(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

/** The links of a page, and the files of its images, outside code. */
function linksOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```.*?^```$/gms, '');
  const markdown = [...text.matchAll(/\]\(([^)\s]+)\)/g)];
  const html = [...text.matchAll(/<(?:img|a) [^>]*?(?:src|href)="([^"]+)"/g)];
  return [...markdown, ...html].map(([, link = '']) => link).filter(link => !/^[a-z]+:/.test(link));
}

/** The names by which GitHub links to the headings of a page. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```.*?^```$/gms, '');
  const seen = new Map<string, number>();
  return [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const name = plain.replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-');
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    return times === 0 ? name : `${name}-${times}`;
  });
}

function faultOf(page: string, link: string): string | undefined {
  const [file = '', heading] = link.split('#');
  const target = file === '' ? page : join(dirname(page), decodeURIComponent(file));
  if (!existsSync(target)) return `${link}: there is no such file`;
  if (heading === undefined || statSync(target).isDirectory() || !target.endsWith('.md')) return undefined;
  return anchorsOf(target).includes(heading) ? undefined : `${link}: there is no such heading`;
}

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
