import type { Contract } from '../contract/contract.js';
import { productName } from '../contract/product-name.js';
import { objectOf } from '../contract/references.js';
import { escapeHtml } from '../pages/escape.js';
import type { Accent } from '../pages/design-tokens.js';

/** Name, texts and colours of a shop, from its contract's `info`. */
export type OwnWords = {
  name: string;
  summary: string;
  /** HTML: the first paragraph of the description, with only code and bold text; empty if that paragraph is too long. */
  lead: string;
  /** `info.x-logo`, if a page of this server may show it. */
  logo?: { src: string; alt: string };
  /** The shop's own colour, `#rrggbb`, and the readable text colour on it, black or white. */
  colour?: Accent;
};

/** A longer paragraph is only shown in the reference, which has the whole description. */
const LEAD_CHARACTERS = 200;

/** @param publicUrl only images of this server and `data:` URLs are shown, because the pages load nothing from other hosts */
export function ownWords(contract: Contract, publicUrl: string): OwnWords {
  const info = objectOf(contract.document.info);
  const [first = ''] = textOf(info.description, '').split(/\n\s*\n/, 1);
  const { backgroundColor, url, altText } = objectOf(info['x-logo']);
  const name = productName(contract);
  const src = typeof url === 'string' ? shownHere(url, publicUrl) : undefined;
  const accent = hexColour(backgroundColor);
  return {
    name,
    summary: textOf(info.summary, name),
    lead: first.length <= LEAD_CHARACTERS ? paragraphs(first) : '',
    ...(src === undefined ? {} : { logo: { src, alt: textOf(altText, '') } }),
    ...(accent === undefined ? {} : { colour: { accent, onAccent: readableOn(accent) } }),
  };
}

function textOf(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : otherwise;
}

function shownHere(url: string, publicUrl: string): string | undefined {
  if (/^data:image\/(svg\+xml|png|jpeg|gif|webp)[;,]/.test(url)) return url;
  if (/^\/(?!\/)/.test(url)) return url;
  return url.startsWith(`${publicUrl}/`) ? url.slice(publicUrl.length) : undefined;
}

/** Paragraphs, code between backticks, and bold text. Other Markdown stays as it is written. */
export function paragraphs(markdown: string): string {
  return markdown
    .trim()
    .split(/\n\s*\n/)
    .filter(text => text !== '')
    .map(text => `<p>${inline(text)}</p>`)
    .join('\n');
}

/** One line of text with code between backticks and bold text between double asterisks, as HTML. */
export function inline(text: string): string {
  return escapeHtml(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
}

function hexColour(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const [, short] = /^#([\da-f]{3})$/i.exec(value) ?? [];
  if (short) return `#${[...short].map(digit => digit + digit).join('')}`;
  return /^#[\da-f]{6}$/i.test(value) ? value : undefined;
}

/** Black or white: the one with the higher contrast (WCAG 2), which is at least 4.5 : 1. */
function readableOn(colour: string): string {
  const luminance = [0.2126, 0.7152, 0.0722]
    .map((weight, index) => weight * linear(Number.parseInt(colour.slice(1 + 2 * index, 3 + 2 * index), 16)))
    .reduce((sum, part) => sum + part, 0);
  return 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 ? '#ffffff' : '#000000';
}

function linear(byte: number): number {
  const share = byte / 255;
  return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
