import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Contract, PricedOperation } from '../contract/contract.js';
import type { Json } from '../contract/json.js';
import {
  documentOf,
  fileOf,
  type StaticDocument,
  type StaticDocuments,
  textOf,
  zippedFileOf,
} from '../http/documents.js';
import { servedContract } from '../documents/discovery.js';
import { GUIDES_PATH, REFERENCE_PATH } from '../contract/reserved-names.js';
import type { Methods } from '../methods/methods.js';
import type { Terms } from '../methods/x402/requirements.js';
import { browserScript } from '../pages/browser-script.js';
import type { People } from '../http/people.js';
import { NOT_INDEXED } from '../http/responses.js';
import { SELLING_SCRIPTS } from './call-panel.js';
import type { Explorer } from '../rails/solana/explorer.js';
import { faultPage } from './fault-page.js';
import { guidePage, guides } from './guides.js';
import { landingPage, type LandingParts } from './landing-page.js';
import { paywallPage } from './paywall-page.js';
import { ownWords, type OwnWords } from './own-words.js';
import { readableContract, referencePage, referenceStyle } from './reference-page.js';
import { siteStyle } from './site-style.js';

export type SiteParts = {
  contract: Contract;
  terms: Terms;
  methods: Methods;
  siteUrl: string;
  network: LandingParts['network'];
  hasWallet: boolean;
  explorer: Explorer | undefined;
  sampleMint?: string;
  /** The headers that a page from another origin may read. */
  exposed: string;
  /** Whether the server already serves something at a path; a page never replaces it. */
  isTaken: (path: string) => boolean;
};

/**
 * The pages for browsers. `landing`: the page at `/`, absent if the contract serves something other than its index there. `documents`:
 * the files of all pages. `people`: the pages of paid operations and of errors.
 */
export type Site = { landing?: StaticDocument; documents: StaticDocuments; people: People };

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';
/** Redoc, compressed (contract-tests/tools/fetch-reference.sh). Not compiled, so it is next to dist/. */
const BUNDLE = fileURLToPath(new URL('../../../src/site/assets/redoc.js.gz', import.meta.url));

/** The part of @wallet-standard/app that finds the browser's wallets, unchanged: a module without imports. */
const WALLET_STANDARD = '/site/wallet-standard.js';
const WALLET_STANDARD_FILE = new URL('wallets.js', import.meta.resolve('@wallet-standard/app'));

const OWN_ONLY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const SELLING_POLICY = `${OWN_ONLY}; style-src 'self'; img-src 'self' data: blob:; media-src blob:`;
/** Allows inline styles, because Redoc adds its styles to the page. */
const REFERENCE_POLICY = `${OWN_ONLY}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:`;

/** The guides have no script. */
const GUIDE_POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Builds the pages of a shop from its contract, once. */
export async function createSite(parts: SiteParts): Promise<Site> {
  const { contract, terms, methods, siteUrl, exposed, isTaken } = parts;
  const words = ownWords(contract, terms.publicUrl);
  const page = (html: string, policy: string, more: Record<string, string> = {}): StaticDocument =>
    fileOf(html, HTML, exposed, { ...PAGE_HEADERS, 'Content-Security-Policy': policy, ...more });
  const file = (text: string, type: string): StaticDocument => fileOf(text, type, exposed, FILE_HEADERS);
  const hasIndex = contract.free.some(({ id, path }) => id === 'getIndex' && path === '/');
  const served: Json = servedContract(contract, { publicUrl: terms.publicUrl, methods }, siteUrl);
  const readable = readableContract(served, contract, { terms, methods });
  const allGuides = guides();
  const hasGuides = allGuides.size > 0 && !isTaken(GUIDES_PATH);
  const zipped = await readFile(BUNDLE);
  const documents: [string, StaticDocument][] = [
    ['/site/style.css', file(siteStyle(words), STYLE)],
    ['/site/page.js', file(browserScript('site/assets/page.js'), SCRIPT)],
    ...SELLING_SCRIPTS.map((name): [string, StaticDocument] => [
      `/site/${name}`,
      file(browserScript(`site/assets/${name}`), SCRIPT),
    ]),
    [WALLET_STANDARD, file(await readFile(WALLET_STANDARD_FILE, 'utf8'), SCRIPT)],
    [REFERENCE_PATH, page(referencePage(words, hasGuides), REFERENCE_POLICY)],
    ['/docs/style.css', file(referenceStyle(words), STYLE)],
    ['/docs/reference.js', file(browserScript('site/assets/reference.js'), SCRIPT)],
    ['/docs/redoc.js', zippedFileOf(zipped, SCRIPT, exposed, FILE_HEADERS)],
    ['/docs/contract.json', documentOf(readable, exposed)],
    ...guideDocuments(allGuides, words, exposed),
  ];
  const links = linksTo(isTaken, hasGuides);
  const landing = page(landingPage({ ...parts, words, links }), SELLING_POLICY, { Vary: 'Accept' });
  const people: People = {
    paywall: eachOnce(operation =>
      page(paywallPage(operation, { ...parts, words }), SELLING_POLICY, { ...NOT_INDEXED, Vary: 'Accept' }),
    ),
    fault: faultPage(words, !isTaken(REFERENCE_PATH)),
    headers: { ...PAGE_HEADERS, 'Content-Security-Policy': SELLING_POLICY },
  };
  return {
    people,
    ...(hasIndex || !isTaken('/') ? { landing } : {}),
    documents: new Map(documents.filter(([path]) => !isTaken(path))),
  };
}

function guideDocuments(
  all: Map<string, string>,
  words: OwnWords,
  exposed: string,
): [string, StaticDocument][] {
  const headers = { ...PAGE_HEADERS, 'Content-Security-Policy': GUIDE_POLICY };
  return [...all].map(([path, name]) => [
    path,
    textOf(() => guidePage(name, words, all), HTML, exposed, headers),
  ]);
}

/** Makes a page at its first request, because a shop may have a thousand. */
function eachOnce(make: (operation: PricedOperation) => StaticDocument): People['paywall'] {
  const made = new Map<string, StaticDocument>();
  return operation => {
    const page = made.get(operation.id) ?? make(operation);
    made.set(operation.id, page);
    return page;
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

function linksTo(isTaken: SiteParts['isTaken'], hasGuides: boolean): [string, string][] {
  return [
    [REFERENCE_PATH, 'API reference'],
    ...(hasGuides ? [[GUIDES_PATH, 'Guides'] satisfies [string, string]] : []),
    ...FREE_DOCUMENTS.filter(([path]) => isTaken(path)),
  ];
}
