import type { Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { objectOf } from '../contract/references.js';
import { escapeHtml } from '../pages/escape.js';
import { ICON, pageFrame } from '../pages/page-frame.js';
import { STATUS_MEANINGS } from '../documents/status-meanings.js';
import type { OwnWords } from './own-words.js';

/** The page at `/docs`: Redoc renders the contract into it. */
export function referencePage({ name }: OwnWords): string {
  const title = escapeHtml(name);
  const body = `<header class="front"><h1><a href="/">${title}</a></h1> <a href="/#operations">Try and pay</a> <a href="/openapi.json">openapi.json</a></header>
<div id="reference"><p class="loading">The reference needs JavaScript. The same contract is at <a href="/openapi.json">openapi.json</a>.</p></div>`;
  return pageFrame({
    title: `${name}: API reference`,
    head: ICON,
    style: '/docs/style.css',
    script: '/docs/reference.js',
    isModule: true,
    isPublic: true,
    body,
  });
}

/** Redoc's own sizes in pixels. As parts of the reader's text size, they grow where the reader enlarged that. */
const SIZES = {
  '--font-size-': { sm: 12, base: 14, lg: 16, md: 18, xl: 20 },
  '--line-height-': { sm: 20, base: 22, lg: 24, xl: 28, xxl: 30 },
  '--h': {
    '1-font-size': 36,
    '2-font-size': 28,
    '3-font-size': 24,
    '4-font-size': 20,
    '5-font-size': 14,
    '6-font-size': 12,
  },
};
const PIXELS_OF_A_REM = 16;

const sizes = Object.entries(SIZES).flatMap(([prefix, named]) =>
  Object.entries(named).map(([name, pixels]) => `${prefix}${name}: ${pixels / PIXELS_OF_A_REM}rem;`),
);

/** Redoc's own colours of secondary text have too little contrast. */
export const REFERENCE_STYLE = `body { margin: 0; }
html:root { ${sizes.join(' ')} }
#reference :is(h1, h2, h3, h4, h5, h6) { line-height: 1.3 !important; overflow-wrap: anywhere; }
.front { display: flex; flex-wrap: wrap; gap: 0 1.5rem; padding: 0 1.5rem; font: 1rem/1.5 system-ui, sans-serif; border-bottom: 1px solid #8885; }
.front a { display: inline-flex; align-items: center; min-height: 2.75rem; color: inherit; }
.front h1 { font-size: 1rem; margin: 0; }
.front h1 a { text-decoration: none; }
.loading { padding: 1.5rem; font: 1rem/1.5 system-ui, sans-serif; }
html:root:not(.dark) .tag-post, html:root:not(.dark) .tag-get { --tag-color: #1550c8; }
html:root:not(.dark) { --search-highlight-text-color: #0b57d0; --code-block-tokens-string-color: #1550c8; --code-block-tokens-property-color: #1550c8; --input-content-placeholder-color: #5f606b; --link-color-primary: #0b57d0; }
html:root.dark { --search-highlight-text-color: #8ab8ff; --input-content-placeholder-color: #b6b8c4; --link-color-primary: #8ab8ff; }
a[href="https://redocly.com/redoc/"] p::after { content: " Redoc"; }
[data-testid=search-dialog] [data-component-name="Badge/Badge"] { background: #0b57d0 !important; color: #fff !important; }
:focus-visible { outline: 3px solid #0b57d0 !important; outline-offset: 2px; }
html.dark :focus-visible { outline-color: #8ab8ff !important; }
`;

/**
 * The served contract for readers: each paid operation has its price as a badge, and a link to where it can be tried; the introduction
 * says what each answer means for the money.
 * @param served the document at /openapi.json; `tryUrl` of an operation on the landing page
 */
export function readableContract(
  served: Json,
  { paid }: Contract,
  tryUrl: (operation: PricedOperation) => string,
): Json {
  const document = structuredClone(served) as { info: Json; paths: Record<string, Record<string, Json>> };
  // Crawlers read it there; it repeats what the pages say.
  delete document.info['x-guidance'];
  delete document.info['x-schemathesis'];
  delete document.info['x-logo'];
  document.info.description = `${typeof document.info.description === 'string' ? document.info.description : ''}\n\n${money()}`;
  for (const operation of paid) {
    const described = objectOf(document.paths[operation.path]?.[operation.method.toLowerCase()]);
    described['x-badges'] = [{ name: operation.price.shown, position: 'after' }];
    const text = typeof described.description === 'string' ? described.description : '';
    described.description = `${text}\n\n[Try this call, and pay for it](${tryUrl(operation)})`;
  }
  return document;
}

function money(): string {
  const rows = STATUS_MEANINGS.map(([status, meaning]) => `| ${status} | ${meaning} |`);
  return ['## What each answer means for your money', '', '| Status | Meaning |', '|---|---|', ...rows].join(
    '\n',
  );
}
