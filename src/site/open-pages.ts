import type { Config } from '../config.js';
import type { StaticDocuments } from '../http/documents.js';
import type { Routes } from '../contract/routes.js';
import { explorerOf } from '../rails/solana/explorer.js';
import { openSandboxWallet, type SandboxWallet, type WalletParts } from './sandbox-wallet.js';
import { createSite, type Site, type SiteParts } from './site.js';

export type PagesParts = Pick<SiteParts, 'contract' | 'terms' | 'methods' | 'siteUrl' | 'exposed'> &
  Pick<WalletParts, 'offers' | 'chain' | 'bodies' | 'closing' | 'log'> & {
    config: Pick<Config, 'network' | 'stateDir' | 'explorer'>;
    endpoints: { rpcUrls: readonly string[] };
    /** The server's documents other than its pages. */
    answers: { documents: StaticDocuments };
    routes: Pick<Routes, 'match'>;
    /** A mint on the chain of the sandbox whose data is in the state folder; undefined if there is none. */
    sampleMint: string | undefined;
  };

/** The pages, all static documents of the server and, in the sandbox, the wallet that the page pays with. */
export async function openPages(parts: PagesParts): Promise<Site & { wallet: SandboxWallet | undefined }> {
  const { contract, terms, methods, siteUrl, exposed, config, answers, routes, sampleMint } = parts;
  const isSandbox = config.network.name === 'sandbox';
  const wallet = isSandbox ? await walletOf(parts) : undefined;
  const site = await createSite({
    ...{
      contract,
      terms,
      methods,
      siteUrl,
      exposed,
      network: config.network.name,
      hasWallet: wallet !== undefined,
      explorer: explorerOf(config.explorer, config.network.name),
    },
    ...(isSandbox && sampleMint !== undefined ? { sampleMint } : {}),
    isTaken: path => answers.documents.has(path) || routes.match('GET', path).kind !== 'notFound',
  });
  return { ...site, wallet, documents: new Map([...site.documents, ...answers.documents]) };
}

function walletOf({ terms, endpoints, config, ...parts }: PagesParts): Promise<SandboxWallet | undefined> {
  const { contract, offers, chain, bodies, closing, log } = parts;
  const { publicUrl, asset } = terms;
  const [rpcUrl = ''] = endpoints.rpcUrls;
  return openSandboxWallet(config.stateDir, {
    ...{ contract, offers, chain, bodies, closing, log, publicUrl, asset, rpcUrl },
  });
}
