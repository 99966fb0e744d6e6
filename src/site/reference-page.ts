import type { Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import { formName } from '../contract/answer-forms.js';
import { follow, objectOf } from '../contract/references.js';
import { GUIDES_PATH } from '../contract/reserved-names.js';
import type { Methods } from '../methods/methods.js';
import { escapeHtml } from '../pages/escape.js';
import { ICON, pageFrame } from '../pages/page-frame.js';
import { tokensByClass } from '../pages/design-tokens.js';
import { STATUS_MEANINGS } from '../documents/status-meanings.js';
import type { Terms } from '../methods/x402/requirements.js';
import type { OwnWords } from './own-words.js';
import { agentPrompt, examplePath, snippetsFor } from './snippets.js';

/** The page at `/docs`: Redoc renders the contract into it. */
export function referencePage({ name }: OwnWords, hasGuides: boolean): string {
  const title = escapeHtml(name);
  const guides = hasGuides ? ` <a href="${GUIDES_PATH}">Guides</a>` : '';
  const body = `<header class="front"><h1><a href="/">${title}</a></h1> <a href="/">Try and pay</a>${guides} <a href="/openapi.json">openapi.json</a></header>
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

/** Redoc's own sizes in pixels, converted to `rem` so that they follow the reader's text size. */
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

/** The style sheet of the reference, in the colours of the shop. Redoc's own colours for secondary text have too little contrast. */
export function referenceStyle({ colour }: OwnWords): string {
  return `${tokensByClass(colour)}${RULES}`;
}

/** The colours of code, because Redoc's own have too little contrast. */
const TOKEN_COLOURS = {
  good: ['string', 'attr-value', 'char', 'inserted'],
  warn: [
    'function',
    'keyword',
    'boolean',
    'number',
    'constant',
    'class-name',
    'regex',
    'important',
    'atrule',
  ],
  soft: ['comment', 'punctuation', 'operator', 'prolog', 'cdata', 'doctype'],
  ink: [
    'property',
    'default',
    'variable',
    'attr-name',
    'tag',
    'selector',
    'symbol',
    'entity',
    'url',
    'builtin',
  ],
};
const TOKENS = Object.entries(TOKEN_COLOURS)
  .flatMap(([colour, names]) => names.map(name => `--code-block-tokens-${name}-color: var(--${colour});`))
  .join(' ');

const RULES = `body { margin: 0; background: var(--ground); color: var(--ink); }
html:root { ${sizes.join(' ')} }
html:root:root {
  --bg-color: var(--ground); --bg-color-raised: var(--card); --text-color-primary: var(--ink); --text-color-secondary: var(--soft);
  --text-color-description: var(--soft); --text-color-helper: var(--soft); --border-color-primary: var(--line); --border-color-secondary: var(--line);
  --link-color-primary: var(--ink); --link-color-primary-hover: var(--ink); --link-color-primary-pressed: var(--ink);
  --search-highlight-text-color: var(--warn); ${TOKENS}
  --input-content-placeholder-color: var(--soft); --button-bg-color-primary: var(--accent); --button-content-color-primary: var(--on-accent);
  --font-family-base: var(--font); --code-font-family: var(--mono);
}
html:root:root :is(.tag-post, .tag-get) { --tag-color: var(--ink); }
#reference :is(h1, h2, h3, h4, h5, h6) { line-height: 1.3 !important; overflow-wrap: anywhere; }
.front { display: flex; flex-wrap: wrap; gap: 0 1.5rem; padding: 0 1.5rem; font: var(--text)/1.5 var(--font); border-bottom: 1px solid var(--line); }
.front a { display: inline-flex; align-items: center; min-height: var(--touch); color: inherit; }
.front h1 { font-size: var(--text); margin: 0; }
.front h1 a { text-decoration: none; }
.loading { padding: 1.5rem; font: var(--text)/1.5 var(--font); }
a[href="https://redocly.com/redoc/"] p::after { content: " Redoc"; }
[data-testid=search-dialog] [data-component-name="Badge/Badge"] { background: var(--accent) !important; color: var(--on-accent) !important; }
:focus-visible { outline: 3px solid var(--focus) !important; outline-offset: 2px; }
`;

/**
 * The served contract, prepared for readers. Each paid operation shows its price in the list and in a badge, a link to the page on
 * which it can be tried and paid, and code that buys it. The introduction explains what each status means for the buyer's money.
 * @param served the document at /openapi.json
 */
export function readableContract(
  served: Json,
  { paid }: Contract,
  { terms, methods }: { terms: Terms; methods: Pick<Methods, 'requestHeaders'> },
): Json {
  const document = structuredClone(served) as { info: Json; paths: Record<string, Record<string, Json>> };
  // For crawlers only; it repeats what the pages say.
  delete document.info['x-guidance'];
  delete document.info['x-schemathesis'];
  delete document.info['x-logo'];
  document.info.description = `${typeof document.info.description === 'string' ? document.info.description : ''}\n\n${money()}`;
  for (const operation of paid) {
    const described = objectOf(document.paths[operation.path]?.[operation.method.toLowerCase()]);
    described['x-badges'] = [{ name: operation.price.shown, position: 'after' }];
    described['x-codeSamples'] = samplesOf(operation, terms);
    const parameters = Array.isArray(described.parameters) ? (described.parameters as unknown[]) : [];
    described.parameters = parameters.filter(each => !carriesPayment(document, each, methods));
    const text = typeof described.description === 'string' ? described.description : '';
    const link = `[Try this call, and pay for it](${examplePath(operation)})`;
    described.description = `${text}\n\n${link}\n\n${answerOf(operation)}`;
  }
  return document;
}

/** The headers that every paid operation takes are described once, in the introduction. */
function carriesPayment(
  document: Json,
  parameter: unknown,
  { requestHeaders }: Pick<Methods, 'requestHeaders'>,
): boolean {
  const { name, in: place } = follow(document, parameter);
  if (typeof name !== 'string') return false;
  return place === 'header' ? requestHeaders.includes(name.toLowerCase()) : name === 'x402Version';
}

/** Longer examples are cut here. The whole example is next to the schema of the answer. */
const ANSWER_LINES = 14;

/** The example of the answer, for the top of an operation, because Redoc itself shows it far below. */
function answerOf({ answers: [form] }: PricedOperation): string {
  const { example } = form;
  if (example === undefined || example === '') return `**You get** ${formName(form)}`;
  const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2);
  const lines = text.split('\n');
  const shown = lines.length > ANSWER_LINES ? [...lines.slice(0, ANSWER_LINES), '…'] : lines;
  return `**You get** ${formName(form)}\n\n${FENCE}json\n${shown.join('\n').replaceAll(FENCE, '')}\n${FENCE}`;
}

const FENCE = '```';

function samplesOf(operation: PricedOperation, terms: Terms): Json[] {
  const code = snippetsFor(operation, terms).map(({ id, label, code: source }) => ({
    ...{ lang: id === 'mcp' ? 'typescript' : id, label, source },
  }));
  const prompt = agentPrompt(operation, terms, terms.publicUrl);
  return [...code, { lang: 'text', label: 'Agent prompt', source: prompt }];
}

function money(): string {
  const rows = STATUS_MEANINGS.map(([status, meaning]) => `| ${status} | ${meaning} |`);
  const carried =
    'A payment goes in the header `PAYMENT-SIGNATURE` (`X-PAYMENT` in x402 v1, which `?x402Version=1` selects). Its receipt is in `PAYMENT-RESPONSE`.';
  return [
    '## What each answer means for your money',
    '',
    '| Status | Meaning |',
    '|---|---|',
    ...rows,
    '',
    carried,
  ].join('\n');
}
