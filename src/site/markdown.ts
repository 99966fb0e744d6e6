import { Marked, type Renderer, type Tokens } from 'marked';
import { escapeHtml } from '../pages/escape.js';

/** A page of Markdown as HTML, with its first heading separate. */
export type Article = { title: string; contents: { id: string; text: string }[]; html: string };

/**
 * Renders Markdown as GitHub does, with the same heading anchors. HTML in it is shown as text.
 * @param addressOf the address to which a link leads; a link without one becomes text
 */
export function articleOf(markdown: string, addressOf: (link: string) => string | undefined): Article {
  const article: Article = { title: '', contents: [], html: '' };
  const nameOf = headingNames();
  const marked = new Marked({
    renderer: {
      html: ({ text }) => escapeHtml(text),
      image: ({ text }) => escapeHtml(text),
      code: ({ text }) => `<pre><code>${escapeHtml(text)}</code></pre>\n`,
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        const address = addressOf(href);
        return address === undefined ? text : `<a href="${escapeHtml(address)}">${text}</a>`;
      },
      heading({ depth, text, tokens }) {
        if (depth === 1 && article.title === '') {
          article.title = plainOf(text);
          return '';
        }
        const id = nameOf(plainOf(text));
        if (depth === 2) article.contents.push({ id, text: plainOf(text) });
        return `<h${depth} id="${escapeHtml(id)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      table({ header, rows }) {
        const head = rowOf(header, 'th', this.parser);
        const body = rows.map(cells => rowOf(cells, 'td', this.parser)).join('\n');
        // A table may be wider than the screen, so it can be scrolled, including with the keyboard.
        return `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n<thead>${head}</thead>\n<tbody>\n${body}\n</tbody></table></div>\n`;
      },
    },
  });
  article.html = marked.parse(markdown, { async: false });
  return article;
}

function rowOf(cells: Tokens.TableCell[], tag: 'th' | 'td', parser: Renderer['parser']): string {
  const html = cells.map(({ tokens }) => {
    const text = parser.parseInline(tokens);
    return tag === 'th' && text !== '' ? `<th scope="col">${text}</th>` : `<td>${text}</td>`;
  });
  return `<tr>${html.join('')}</tr>`;
}

/** The plain text of a heading, without links and code marks. */
function plainOf(heading: string): string {
  return heading.replaceAll(/\[([^[\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '');
}

/** Names headings as GitHub does: in lower case, with - for spaces, and with a number if a name is repeated. */
function headingNames(): (text: string) => string {
  const seen = new Map<string, number>();
  return text => {
    const name = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    return times === 0 ? name : `${name}-${times}`;
  };
}
