import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const LINK = /(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g;
const IMAGE = /!\[[^\]]*\]\(([^)\s]+)\)|<img [^>]*?src="([^"]+)"/g;

/** The local file that a page's link names; undefined for an anchor or a URL. */
export function targetOf(page: string, link: string): string | undefined {
  const [file = ''] = link.split('#');
  return file === '' || /^[a-z]+:/.test(link) ? undefined : join(dirname(page), decodeURIComponent(file));
}

/** Replaces links to files that are not packed, such as tests and sources, with their text. @throws Error if an image is not packed */
export function unlinkAbsent(tree: string): void {
  const pages = readdirSync(tree, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.md'));
  for (const page of pages.map(name => join(tree, name))) {
    const isAbsent = (link: string): boolean => {
      const target = targetOf(page, link);
      return target !== undefined && !existsSync(target);
    };
    const text = readFileSync(page, 'utf8');
    for (const [, markdown, html] of text.matchAll(IMAGE)) {
      const image = markdown ?? html ?? '';
      if (isAbsent(image)) throw new Error(`${relative(tree, page)} shows ${image}, which is not packed`);
    }
    writeFileSync(
      page,
      text.replaceAll(LINK, (whole, words: string, link: string) => (isAbsent(link) ? words : whole)),
    );
  }
}
