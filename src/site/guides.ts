import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GUIDES_PATH, REFERENCE_PATH } from '../contract/reserved-names.js';
import { escapeHtml } from '../pages/escape.js';
import type { OwnWords } from './own-words.js';
import { sitePage } from './site-frame.js';

/** The guides of this server, next to dist/; they are in the package, too. */
const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url));
const INDEX = 'README.md';
/** Shorter pages have no list of their headings. */
const LISTED_FROM = 3;

/** The guides by their addresses: the files of docs/, whose index is at `/docs/guides`. A server without docs/ has none. */
export function guides(): Map<string, string> {
  if (!existsSync(DOCS)) return new Map();
  const files = readdirSync(DOCS, { recursive: true, encoding: 'utf8' })
    .map(file => file.replaceAll('\\', '/'))
    .filter(file => file.endsWith('.md'));
  return new Map(files.map(file => [addressOf(file), file]));
}

function addressOf(file: string): string {
  return file === INDEX ? GUIDES_PATH : `${GUIDES_PATH}/${file.slice(0, -'.md'.length)}`;
}

/** The page of a guide in the style of the shop, without a script. `file` must be one of those in `guides`. */
export async function guidePage(file: string, words: OwnWords, all: Map<string, string>): Promise<string> {
  // Markdown is read only when a guide is requested.
  const { articleOf } = await import('./markdown.js');
  const markdown = await readFile(DOCS + file, 'utf8');
  const { title, contents, html } = articleOf(markdown, link => linkOf(link, file, all));
  const list = contents.map(
    ({ id, text }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(text)}</a></li>`,
  );
  const index =
    contents.length < LISTED_FROM || file === INDEX
      ? ''
      : `<nav aria-label="On this page"><ul>\n${list.join('\n')}\n</ul></nav>\n`;
  return sitePage(words, {
    title: `${title} – ${words.name}`,
    links: [
      ['/', 'Front page'],
      [GUIDES_PATH, 'Guides'],
      [REFERENCE_PATH, 'API reference'],
    ],
    main: `<article class="guide"><div class="wide">\n<h1>${escapeHtml(title)}</h1>\n${index}${html}</div></article>`,
    script: false,
  });
}

/** The target of a link in a guide: another guide, a place in the page or another host. Other files of the repository are not served. */
function linkOf(link: string, file: string, all: Map<string, string>): string | undefined {
  if (/^(?:https?:|mailto:|#)/.test(link)) return link;
  const [target = '', heading] = link.split('#');
  const address = addressOf(posix.join(posix.dirname(file), target));
  if (!all.has(address)) return undefined;
  return heading === undefined ? address : `${address}#${heading}`;
}
