import { readdirSync, readFileSync } from 'node:fs';
import { Marked, type Tokens } from 'marked';

const ROOT = new URL('../../../', import.meta.url);

/** A code block of a page. `language` is the first word after the fence, or `indented`. */
export type Snippet = { page: string; language: string; text: string };

export const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...readdirSync(new URL('docs/', ROOT), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.md'))
    .map(file => `docs/${file.replaceAll('\\', '/')}`),
];

/** All code blocks of a page, including those in lists. */
export function snippetsOf(page: string): Snippet[] {
  const found: Snippet[] = [];
  const marked = new Marked();
  const tokens = marked.lexer(readFileSync(new URL(page, ROOT), 'utf8'));
  void marked.walkTokens(tokens, token => {
    if (token.type !== 'code') return;
    const { text, lang = '', codeBlockStyle } = token as Tokens.Code;
    const language = codeBlockStyle === 'indented' ? 'indented' : (lang.split(' ')[0] ?? '');
    found.push({ page, language: language || 'none', text });
  });
  return found;
}

/** How a snippet is checked. */
export type Held =
  /** Another test runs it: that test's file, and a string in the file that proves this. */
  | { by: string; part: string }
  /** snippets.slow.test.ts runs it. */
  | 'run here'
  /** It is data or a setting, and is read as such: JSON, YAML, TOML, names of settings. */
  | 'read'
  /** What a command prints, or a picture of folders. */
  | 'shown'
  /** Nothing runs it. */
  | { why: string };

const here = (file: string): string => `contract-tests/docs/${file}`;
const by = (file: string, part: string): Held => ({ by: file, part });
const NO_SYSTEMD: Held = { why: 'needs systemd; contract-tests/image/deploy-files.test.ts checks the units' };
const NO_DOCKER: Held = {
  why: 'needs Docker; contract-tests/image/ runs the steps of the images without it',
};

/** How snippets are checked, by parts of the page's name and of the snippet's text. The first row that matches a snippet applies. */
export const ROWS: readonly [page: RegExp, text: RegExp, held: Held][] = [
  [/^README/, /^\$ /, by(here('readme-commands.slow.test.ts'), "'README.md'")],
  [/^README/, /^(make|export|node) /, by(here('readme.test.ts'), 'RUN_BY')],
  [/^CONTRIBUTING/, /^openapi\.yaml/, 'shown'],
  [/^CONTRIBUTING/, /^make release/, by(here('release.test.ts'), 'PACKED')],
  [/a-week-as-operator/, /./, by(here('week.sh'), 'a-week-as-operator.md')],
  [/backup/, /^(pg_|archive_mode|cp -r)/, by(here('backup.slow.test.ts'), 'how-to/backup.md')],
  [/backup/, /systemctl/, NO_SYSTEMD],
  [/backup/, /^npx coinslot ledger/, 'run here'],
  [/be-listed/, /^npx/, by('contract-tests/cli/list/list.slow.test.ts', '--register')],
  [/be-listed/, /^info:/, 'read'],
  [/be-told/, /^(import|const)/, by('contract-tests/webhooks/told-through-kills.slow.test.ts', 'be-told.md')],
  [/be-told/, /^WEBHOOK/, 'read'],
  [/be-told/, /^(npx|echo)/, 'run here'],
  [/books/, /^npm run/, 'run here'],
  [/books/, /^(Statement|day,)/, 'shown'],
  [/buy\.md/, /^npm install/, by('contract-tests/cli/package.slow.test.ts', "'npm', 'install'")],
  [/buy\.md/, /createBuyer/, 'run here'],
  [
    /buy\.md/,
    /from '(ai|@langchain)/,
    { why: 'needs third-party packages; `make clients CLIENTS=hosts` buys with both' },
  ],
  [/buy\.md/, /Buyer\(/, by('contract-tests/clients/python/careful_buyer.py', 'Buyer(')],
  [/canary/, /^npx/, by('contract-tests/cli/canary/canary.slow.test.ts', 'canary')],
  [/canary/, /^solana-keygen/, { why: 'needs solana-keygen; the tests write its file themselves' }],
  [/canary/, /systemctl/, NO_SYSTEMD],
  [/clients/, /./, by(here('clients.test.ts'), 'word for word')],
  [/containers/, /^(docker|mkdir)/, NO_DOCKER],
  [/containers/, /^FROM/, NO_DOCKER],
  [/free-calls|contract-extensions/, /^x-/, 'read'],
  [
    /free-calls/,
    /^import/,
    { why: 'needs @x402/extensions; contract-tests/sign-in/ signs the same statement' },
  ],
  [/mcp\.md/, /^curl -X/, 'run here'],
  [
    /mcp\.md/,
    /mcp-publisher/,
    { why: 'needs mcp-publisher and an account; the document has tests of its own' },
  ],
  [
    /mcp\.md/,
    /MultiServerMCPClient|MCPServerStdio|createMCPClient/,
    { why: 'needs third-party packages; `make clients CLIENTS=hosts` buys with each' },
  ],
  [/mcp\.md/, /coinslot\.js/, by('contract-tests/cli/mcp/host-configuration.slow.test.ts', 'how-to/mcp.md')],
  [/mpp/, /^METHODS/, 'read'],
  [/on-a-vps/, /./, by(here('vps.sh'), 'on-a-vps.md')],
  [/operating/, /^make build/, by(here('readme.test.ts'), 'RUN_BY')],
  [/operating/, /^(useradd|\[Service\])/, NO_SYSTEMD],
  [/operating/, /ledger -- reject/, 'run here'],
  [/operating/, /^(scrape_configs|FACILITATOR_URL)/, 'read'],
  [
    /operating/,
    /opentelemetry/,
    { why: 'needs OpenTelemetry packages; contract-tests/observe/ reads the same spans' },
  ],
  [/pages/, /^info:/, 'read'],
  [/people/, /^https:/, 'shown'],
  [/receipts/, /^\{/, 'read'],
  [/receipts/, /verify-receipt/, 'run here'],
  [
    /receipts/,
    /verifyReceiptSignatureJWS/,
    by('contract-tests/clients/catalogue/receipts.js', 'verifyReceiptSignatureJWS(receipt)'),
  ],
  [/receipts/, /^openssl/, 'run here'],
  [/refunds/, /^npm run/, 'run here'],
  [/refunds/, /^REFUND/, 'read'],
  [
    /sell-an-existing/,
    /^npx coinslot import/,
    by('contract-tests/cli/import/import-and-sell.slow.test.ts', "'import'"),
  ],
  [/sell-an-existing/, /^(overlay| {2}\/v1)/, 'read'],
  [/testing/, /^(make mock|npx coinslot mock)/, by('contract-tests/cli/mock/mock.slow.test.ts', 'mock')],
  [/testing/, /anyKeyPair/, by('contract-tests/cli/mock/mock.slow.test.ts', '.mock/rpc')],
  [/testing/, /^curl -O|^docker/, by('contract-tests/fuzz/stock-lines.ts', 'how-to/testing.md')],
  [
    /testing/,
    /^(import assert|name: test)/,
    by('contract-tests/cli/package.slow.test.ts', 'how-to/testing.md'),
  ],
  [/testing/, /pytest/, by('contract-tests/clients/run.sh', 'examples/pytest')],
  [/upgrade/, /^npm install/, by('contract-tests/cli/upgrade/upgrade.slow.test.ts', 'upgrade')],
  [/reference\/cli/, /./, by(here('reference.slow.test.ts'), 'cli.md')],
  [/reports\/(images|going-live)/, /./, 'shown'],
  [/mint-facts/, /./, 'shown'],
  [/speech/, /^python3/, { why: 'needs a voice model of 60 MB from PyPI' }],
  [/first-calls/, /^\$ /, by(here('readme-commands.slow.test.ts'), 'first-calls.md')],
  [/first-calls|README/, /^make run/, by(here('sell-your-own.slow.test.ts'), 'sell-your-own.md')],
  [/sell-your-own/, /./, by(here('sell-your-own.slow.test.ts'), 'sell-your-own.md')],
];

export function heldBy({ page, text }: Snippet): Held | undefined {
  return ROWS.find(([pages, texts]) => pages.test(page) && texts.test(text))?.[2];
}
