import { escapeHtml } from '../pages/escape.js';
import { ICON } from '../pages/page-frame.js';
import type { OwnWords } from './own-words.js';

const ICON_PNG = '/icon.png';
/** Social networks accept no SVG. */
const PICTURE = /\.(png|jpe?g|gif|webp)$/i;

/** The preview of a link to the shop in chats and social networks: name, summary and logo, from `info`. */
export function socialTags({ name, summary, logo }: OwnWords, publicUrl: string): string {
  const picture = logo && PICTURE.test(logo.src) ? logo.src : ICON_PNG;
  const tags = {
    'og:type': 'website',
    'og:site_name': name,
    'og:title': summary === name ? name : `${name}: ${summary}`,
    'og:description': summary,
    'og:url': `${publicUrl}/`,
    'og:image': publicUrl + picture,
    'twitter:card': 'summary',
  };
  return Object.entries(tags)
    .map(([property, content]) => `<meta property="${property}" content="${escapeHtml(content)}">\n`)
    .join('');
}

/** The shop's logo as the icon of its pages, if `info` has one. */
export function favicon({ logo }: OwnWords): string {
  return logo ? `<link rel="icon" href="${escapeHtml(logo.src)}">\n` : ICON;
}
