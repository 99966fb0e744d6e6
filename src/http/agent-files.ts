import type { Contract } from '../contract/contract.js';
import { discoveryOf, type Selling } from '../documents/discovery.js';
import { serverJson, SERVER_JSON_PATH } from '../documents/mcp-server-json.js';
import { llmsTexts } from '../documents/llms-text.js';
import { skillText } from '../documents/skill-text.js';
import { SCHEMATHESIS_CONFIG, SCHEMATHESIS_PATH } from '../documents/schemathesis-config.js';
import { ICON_PATH } from '../methods/x402/service.js';
import { documentOf, fileOf, imageOf, type StaticDocuments } from './documents.js';
import { ICON_SVG, iconPng } from './icon.js';
import { answersUrl } from './serve-pick-up.js';

const TEXT = 'text/plain; charset=utf-8';
const HEADERS = { 'X-Content-Type-Options': 'nosniff' };
const ICON_PIXELS = 128;
const FAVICON_PIXELS = 32;

/**
 * The files that agents, crawlers and browsers ask for by convention, in addition to the operations of the
 * contract. If the contract has an operation at the same path, that operation is served.
 * @param exposed the headers that a page of another origin may read
 * @param pages the pages of operations, where people sign in; they are closed to crawlers
 */
export function agentFiles(
  contract: Contract,
  selling: Selling,
  exposed: string,
  pages: readonly { path: string }[] = [],
): StaticDocuments {
  const { short, full } = llmsTexts(contract, selling);
  const file = (content: string, type: string) => fileOf(content, type, exposed, HEADERS);
  const icon = (pixels: number) => imageOf(() => iconPng(pixels), 'image/png', exposed, HEADERS);
  const files = new Map([
    ['/llms.txt', file(short, TEXT)],
    ['/llms-full.txt', file(full, TEXT)],
    ['/skill.md', file(skillText(contract, selling), 'text/markdown; charset=utf-8')],
    ['/robots.txt', file(robots(contract, selling, pages), TEXT)],
    ['/.well-known/x402.json', documentOf(discoveryOf(contract.paid, selling), exposed)],
    [SERVER_JSON_PATH, documentOf(serverJson(contract, selling), exposed)],
    [SCHEMATHESIS_PATH, file(SCHEMATHESIS_CONFIG, 'application/toml; charset=utf-8')],
    ['/icon.svg', file(ICON_SVG, 'image/svg+xml')],
    [ICON_PATH, icon(ICON_PIXELS)],
    // Browsers request this path and accept a PNG there.
    ['/favicon.ico', icon(FAVICON_PIXELS)],
  ]);
  for (const { path } of [...contract.paid, ...contract.given, ...contract.free]) files.delete(path);
  return files;
}

/** Paid paths stay open, because crawlers read their prices there; `X-Robots-Tag` keeps them out of search results. */
function robots(contract: Contract, { publicUrl }: Selling, pages: readonly { path: string }[]): string {
  const answers = answersUrl(contract, '');
  return [
    `# Agents: start at ${publicUrl}/llms.txt`,
    'User-agent: *',
    'Allow: /',
    ...pages.map(({ path }) => `Disallow: ${path}/`),
    ...(answers === undefined ? [] : [`Disallow: ${answers}`]),
    '',
  ].join('\n');
}
