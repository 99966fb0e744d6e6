import type { NetworkName } from './networks.js';

/** Names of block explorers, as in the setting EXPLORER. */
export const EXPLORERS = ['solscan', 'solana', 'none'] as const;
export type ExplorerName = (typeof EXPLORERS)[number];

/** URLs of a public page about a transaction or an address. */
export type Explorer = { transaction: (signature: string) => string; address: (address: string) => string };

const SITES = {
  solscan: { transaction: 'https://solscan.io/tx/', address: 'https://solscan.io/account/' },
  solana: { transaction: 'https://explorer.solana.com/tx/', address: 'https://explorer.solana.com/address/' },
} as const;

/** Undefined if no explorer is configured, or for a sandbox, whose chain is local. */
export function explorerOf(name: ExplorerName, network: NetworkName): Explorer | undefined {
  if (name === 'none' || network === 'sandbox') return undefined;
  const { transaction, address } = SITES[name];
  const cluster = network === 'mainnet' ? '' : `?cluster=${network}`;
  const page = (site: string) => (what: string) => `${site}${encodeURIComponent(what)}${cluster}`;
  return { transaction: page(transaction), address: page(address) };
}
