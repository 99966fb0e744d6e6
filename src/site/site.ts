import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Contract } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import {
  documentOf,
  fileOf,
  type StaticDocument,
  type StaticDocuments,
  zippedFileOf,
} from '../http/documents.js';
import { servedContract } from '../documents/discovery.js';
import { REFERENCE_PATH } from '../contract/reserved-names.js';
import type { Methods } from '../methods/methods.js';
import type { Terms } from '../methods/x402/requirements.js';
import { browserScript } from '../pages/browser-script.js';
import { anchor, landingPage, type LandingParts } from './landing-page.js';
import { ownWords } from './own-words.js';
import { readableContract, referencePage, referenceStyle } from './reference-page.js';
import { siteStyle } from './site-style.js';

export type SiteParts = {
  contract: Contract;
  terms: Terms;
  methods: Methods;
  siteUrl: string;
  network: LandingParts['network'];
  hasWallet: boolean;
  sampleMint?: string;
  /** The headers that a page of another origin may read. */
  exposed: string;
  /** Whether the server has something else at a path; a page never takes its place. */
  isTaken: (path: string) => boolean;
};

/** What browsers see: the page at `/`, if the contract has nothing but its index there, and the documents of all pages. */
export type Site = { landing?: StaticDocument; documents: StaticDocuments };

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';
/** Redoc, compressed (contract-tests/tools/fetch-reference.sh). Not compiled, so it is beside dist/. */
const BUNDLE = fileURLToPath(new URL('../../../src/site/assets/redoc.js.gz', import.meta.url));

const OWN_ONLY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const LANDING_POLICY = `${OWN_ONLY}; style-src 'self'; img-src 'self' data: blob:; media-src blob:`;
/** Redoc writes its styles into the page. */
const REFERENCE_POLICY = `${OWN_ONLY}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:`;

/** Builds the pages of a shop from its contract, once. */
export async function createSite(parts: SiteParts): Promise<Site> {
  const { contract, terms, methods, siteUrl, exposed, isTaken } = parts;
  const words = ownWords(contract, terms.publicUrl);
  const page = (html: string, policy: string, more: Record<string, string> = {}): StaticDocument =>
    fileOf(html, HTML, exposed, { ...PAGE_HEADERS, 'Content-Security-Policy': policy, ...more });
  const file = (text: string, type: string): StaticDocument => fileOf(text, type, exposed, FILE_HEADERS);
  const hasIndex = contract.free.some(({ id, path }) => id === 'getIndex' && path === '/');
  const served: Json = servedContract(contract, { publicUrl: terms.publicUrl, methods }, siteUrl);
  const readable = readableContract(served, contract, operation => `/#${anchor(operation)}`);
  const zipped = await readFile(BUNDLE);
  const documents: [string, StaticDocument][] = [
    ['/site/style.css', file(siteStyle(words), STYLE)],
    ['/site/page.js', file(browserScript('site/assets/page.js'), SCRIPT)],
    [REFERENCE_PATH, page(referencePage(words), REFERENCE_POLICY)],
    ['/docs/style.css', file(referenceStyle(words), STYLE)],
    ['/docs/reference.js', file(browserScript('site/assets/reference.js'), SCRIPT)],
    ['/docs/redoc.js', zippedFileOf(zipped, SCRIPT, exposed, FILE_HEADERS)],
    ['/docs/contract.json', documentOf(readable, exposed)],
  ];
  const links = linksTo(isTaken);
  const landing = page(landingPage({ ...parts, words, links }), LANDING_POLICY, { Vary: 'Accept' });
  return {
    ...(hasIndex || !isTaken('/') ? { landing } : {}),
    documents: new Map(documents.filter(([path]) => !isTaken(path))),
  };
}

const FILE_HEADERS = { 'X-Content-Type-Options': 'nosniff' };
const PAGE_HEADERS = { ...FILE_HEADERS, 'Referrer-Policy': 'no-referrer' };

const FREE_DOCUMENTS: [string, string][] = [
  ['/openapi.json', 'openapi.json'],
  ['/.well-known/x402', 'x402 discovery'],
  ['/llms.txt', 'llms.txt'],
  ['/health', 'Health'],
];

function linksTo(isTaken: SiteParts['isTaken']): [string, string][] {
  return [[REFERENCE_PATH, 'API reference'], ...FREE_DOCUMENTS.filter(([path]) => isTaken(path))];
}
