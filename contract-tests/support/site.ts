import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Contract } from '../../src/contract/contract.js';
import { parseContract } from '../../src/contract/parse-contract.js';
import { exposedHeaders } from '../../src/http/exposed-headers.js';
import { documentOf } from '../../src/http/documents.js';
import { Routes } from '../../src/contract/routes.js';
import { createHttpServer } from '../../src/http/server.js';
import { indexOf } from '../../src/documents/discovery.js';
import { Offers } from '../../src/offers/offers.js';
import { SolanaHints } from '../../src/rails/solana/solana-hints.js';
import { createSite, type SiteParts } from '../../src/site/site.js';
import { ANY_SHOP } from './any-shop.js';
import { sellingOf } from './selling.js';

export const TERMS = {
  network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  v1Network: 'solana-devnet',
  asset: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
  payTo: '2wKupLR9q6wXYppw8Gr2NvWxKBUqm4PPJKkQfoxHDBg4',
  publicUrl: 'https://shop.example',
};

/** The headers that a browser sends for a page. */
export const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';

const ROOT = new URL('../../../', import.meta.url);
const read = (file: string): Contract => parseContract(readFileSync(new URL(file, ROOT), 'utf8'));

/** Contracts that have nothing in common. */
export const CONTRACTS: Record<string, Contract> = {
  'this repository': read('openapi.yaml'),
  'examples/petstore': read('examples/petstore/openapi.yaml'),
  'any shop': parseContract(ANY_SHOP),
};

/** A server that serves the pages of a contract and sells nothing. */
export async function serveSite(
  contract: Contract,
  more: Partial<SiteParts> = {},
): Promise<{ url: string; close(): void }> {
  const exposed = exposedHeaders(contract, sellingOf(TERMS).methods);
  const routes = await Routes.create(contract);
  const isTaken = (path: string): boolean => routes.match('GET', path).kind !== 'notFound';
  const siteUrl = TERMS.publicUrl;
  const site = await createSite({
    ...{ contract, ...sellingOf(TERMS), siteUrl, network: 'mainnet', hasWallet: false, exposed, isTaken },
    explorer: undefined,
    ...more,
  });
  const hints = new SolanaHints(TERMS.payTo);
  const offers = new Offers(sellingOf(TERMS).methods, hints);
  const index = documentOf(indexOf(contract, siteUrl), exposed, { Vary: 'Accept' });
  const hasIndex = contract.free.some(({ path }) => path === '/');
  const server: Server = createHttpServer({
    app: (_request, response) => void response.writeHead(404).end('{"error":"none"}'),
    ...{ offers, routes, exposed, ...site },
    documents: new Map([...site.documents, ...(hasIndex ? [['getIndex', index] as const] : [])]),
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = (): void => {
    hints.close();
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** The text of the element with this id. */
export function textOfElement(html: string, id: string): string {
  const [, text = ''] = new RegExp(` id="${id}"[^>]*>([^<]*)<`).exec(html) ?? [];
  const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (_all, name: string) => entities[name] ?? '');
}
