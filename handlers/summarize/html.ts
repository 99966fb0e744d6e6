import { decodeHTMLStrict } from 'entities';

/**
 * Converts HTML to plain text in linear time. Text that only uses `<` (code, mail addresses, comparisons) is unchanged. An HTML parser
 * takes everything after an unclosed comment, script or quoted attribute as its content; here, the text after it is kept.
 */

const BLOCK_TAGS = new Set(
  (
    'address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure ' +
    'footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol optgroup option p pre section select ' +
    'summary table tbody tfoot thead title tr ul'
  ).split(' '),
);
const INLINE_TAGS = new Set(
  (
    'a abbr acronym area audio b base bdi bdo big button cite code col colgroup data datalist del dfn em embed font i ' +
    'img input ins kbd label link map mark meta meter output param picture progress q rp rt ruby s samp slot small ' +
    'source span strike strong sub sup path td th textarea time track tt u var video wbr center iframe'
  ).split(' '),
);
/** Elements whose content is not shown to readers. */
const SILENT_TAGS = new Set(['script', 'style', 'noscript', 'template', 'object', 'canvas', 'svg']);
const HEADING = /^h[1-6]$/;

/** The text that replaces a tag; undefined if HTML has no element of this name. */
function tagText(name: string, closing: boolean): string | undefined {
  if (name === 'br') return '\n';
  if (name === 'li') return closing ? '\n' : '\n- ';
  if (name === 'td' || name === 'th') return closing ? '  ' : '';
  if (name === 'tr') return '\n';
  if (HEADING.test(name) || name === 'title') return closing ? '\n\n' : '\n\n# ';
  if (BLOCK_TAGS.has(name)) return '\n\n';
  if (INLINE_TAGS.has(name) || SILENT_TAGS.has(name)) return '';
  return undefined;
}

/**
 * Finds the ends of constructs. Failed searches are remembered, and scanning for quotes has a budget, so that hostile text (a
 * million `<a "`) takes linear time.
 */
class Finder {
  readonly #text: string;
  readonly #absent = new Set<string>();
  #budget: number;

  constructor(text: string) {
    this.#text = text;
    this.#budget = 2 * text.length + 1_000;
  }

  /** Index of `mark` at or after `from`, or -1. */
  find(mark: string, from: number): number {
    if (this.#absent.has(mark)) return -1;
    const at = this.#text.indexOf(mark, from);
    if (at < 0) this.#absent.add(mark);
    return at;
  }

  /** Index just after `</name>` at or after `from`, or -1. */
  afterClosing(name: string, from: number): number {
    if (this.#absent.has(`/${name}`)) return -1;
    const closing = new RegExp(`</${name}(?![a-z0-9-])`, 'gi');
    closing.lastIndex = from;
    const match = closing.exec(this.#text);
    if (!match) this.#absent.add(`/${name}`);
    const end = match ? this.find('>', closing.lastIndex) : -1;
    return end < 0 ? -1 : end + 1;
  }

  /** Index of the `>` that ends the tag whose name ends at `from`, or -1. Quoted attribute values are skipped. */
  tagEnd(from: number): number {
    const plain = this.find('>', from);
    if (plain < 0 || this.#budget <= 0) return plain;
    let at = from;
    while (at < this.#text.length) {
      const char = this.#text.charAt(at);
      if (char === '>') return at;
      const previous = this.#text.charAt(at - 1);
      const close = (char === '"' || char === "'") && previous === '=' ? this.find(char, at + 1) : at;
      if (close < 0) break;
      at = close + 1;
      if (at - from > this.#budget) break;
    }
    this.#budget -= at - from;
    return plain;
  }
}

const TAG_NAME = /(\/?)([a-z][a-z0-9]{0,15})(?=[\s/>])/iy;

type Markup = { end: number; leaves: string };

/** Comments, CDATA marks, doctypes and processing instructions. */
function readDeclaration(text: string, at: number, finder: Finder): Markup | undefined {
  if (text.startsWith('<![CDATA[', at)) return { end: at + 9, leaves: '' };
  const comment = text.startsWith('<!--', at);
  if (!comment && !/^<[!?][a-z]/i.test(text.slice(at, at + 3))) return undefined;
  const end = comment ? finder.find('-->', at + 4) : finder.find('>', at);
  return end < 0 ? undefined : { end: end + (comment ? 3 : 1), leaves: '' };
}

/** Reads the construct that begins with the `<` at `at`: its end and its replacement; undefined if it is text. */
function readMarkup(text: string, at: number, finder: Finder): Markup | undefined {
  const first = text.charAt(at + 1);
  if (first === '!' || first === '?') return readDeclaration(text, at, finder);
  TAG_NAME.lastIndex = at + 1;
  const match = TAG_NAME.exec(text);
  if (!match?.[2]) return undefined;
  const name = match[2].toLowerCase();
  const closing = match[1] === '/';
  const leaves = tagText(name, closing);
  const close = leaves === undefined ? -1 : finder.tagEnd(TAG_NAME.lastIndex);
  if (leaves === undefined || close < 0) return undefined;
  const shown = name === 'script' && /type=["']?text\/(?:html|x-)/i.test(text.slice(at, close));
  const after = SILENT_TAGS.has(name) && !closing && !shown ? finder.afterClosing(name, close) : -1;
  return after > 0 ? { end: after, leaves: ' ' } : { end: close + 1, leaves };
}

function removeMarkup(text: string): string {
  const finder = new Finder(text);
  const out: string[] = [];
  let from = 0;
  for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at)) {
    const markup = readMarkup(text, at, finder);
    if (markup === undefined) {
      at += 1;
      continue;
    }
    out.push(text.slice(from, at), markup.leaves);
    from = at = markup.end;
  }
  out.push(text.slice(from));
  return out.join('');
}

/** Removes tags, comments, scripts and styles, puts block elements on separate lines, and decodes entities. */
export function stripHtml(text: string): string {
  const bare = text.includes('<') ? removeMarkup(text) : text;
  return decodeHTMLStrict(bare);
}
