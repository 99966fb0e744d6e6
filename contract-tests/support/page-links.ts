import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Folders that are installed, compiled or written by a run, and so are not part of the repository. */
const NOT_OURS = /^(?:node_modules|dist.*|state|\..*)$/;

/** The Markdown pages below a folder. */
export function pagesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_OURS.test(entry.name) ? [] : pagesIn(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

/** The links and image files of a page, except those in code blocks. */
export function linksOf(page: string): string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```.*?^```$/gms, '');
  const markdown = [...text.matchAll(/\]\(([^)\s]+)\)/g)];
  const html = [...text.matchAll(/<(?:img|a) [^>]*?(?:src|href)="([^"]+)"/g)];
  return [...markdown, ...html].map(([, link = '']) => link).filter(link => !/^[a-z]+:/.test(link));
}

/** The anchors that GitHub gives the headings of a page. */
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

/** Returns what is wrong with a link of a page, or undefined. */
export function faultOf(page: string, link: string): string | undefined {
  const [file = '', heading] = link.split('#');
  const target = file === '' ? page : join(dirname(page), decodeURIComponent(file));
  if (!existsSync(target)) return `${link}: there is no such file`;
  if (heading === undefined || statSync(target).isDirectory() || !target.endsWith('.md')) return undefined;
  return anchorsOf(target).includes(heading) ? undefined : `${link}: there is no such heading`;
}
