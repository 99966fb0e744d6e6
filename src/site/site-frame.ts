import { escapeHtml } from '../pages/escape.js';
import { pageFrame } from '../pages/page-frame.js';
import type { OwnWords } from './own-words.js';
import { favicon } from './social-card.js';

export type SitePage = {
  title: string;
  /** HTML. */
  main: string;
  /** Further HTML for the head, and for the end of the page. */
  head?: string;
  footer?: string;
  /** Links in the header: address and name. */
  links: [href: string, name: string][];
  script?: string | false;
  isPublic?: boolean;
};

/** The frame of the shop's public pages: its name on top, and the navigation. */
export function sitePage(words: OwnWords, page: SitePage): string {
  const { title, main, head = '', footer = '', links, script = '/site/page.js', isPublic = false } = page;
  const nav = links.map(([href, text]) => `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>`).join('');
  const body = `<a class="skip" href="#main">Skip to the content</a>
<header class="bar"><div class="wide">
<a class="brand" href="/">${logo(words)}<span>${escapeHtml(words.name)}</span></a>
<nav aria-label="Page">${nav}</nav>
</div></header>
<main id="main">
${main}
</main>
${footer}`;
  return pageFrame({
    title,
    head: head + favicon(words),
    style: '/site/style.css',
    ...(script === false ? {} : { script }),
    isModule: true,
    isPublic,
    body,
  });
}

function logo({ logo: own, name }: OwnWords): string {
  if (own) return `<img src="${escapeHtml(own.src)}" alt="${escapeHtml(own.alt)}" height="32">`;
  return `<span class="coin" aria-hidden="true">${escapeHtml([...name][0] ?? '')}</span>`;
}
