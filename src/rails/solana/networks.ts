export type NetworkName = 'sandbox' | 'devnet' | 'mainnet';

/** The names of a Solana network in x402 v2 (CAIP-2) and v1, and the address of its USDC mint. */
export type Network = { name: NetworkName; caip2: `solana:${string}`; v1: string; usdcMint: string };

export const DEVNET_GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
const MAINNET_GENESIS = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';

const DEVNET = {
  caip2: networkOf(DEVNET_GENESIS),
  v1: 'solana-devnet',
  usdcMint: '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU',
};

// The sandbox uses the name of devnet, because the official clients reject unknown chains and mints.
export const NETWORKS: Record<NetworkName, Network> = {
  sandbox: { name: 'sandbox', ...DEVNET },
  devnet: { name: 'devnet', ...DEVNET },
  mainnet: {
    name: 'mainnet',
    caip2: networkOf(MAINNET_GENESIS),
    v1: 'solana',
    usdcMint: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  },
};

/** The CAIP-2 name of the chain with this genesis hash. */
export function networkOf(genesis: string): Network['caip2'] {
  return `solana:${genesis.slice(0, 32)}`;
}

export const SYSTEM_PROGRAM = '11111111111111111111111111111111';
export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
export const ASSOCIATED_TOKEN_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';
export const COMPUTE_BUDGET_PROGRAM = 'ComputeBudget111111111111111111111111111111';
export const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr';
/** The Lighthouse program, whose assertions some wallets add to transactions. */
export const LIGHTHOUSE_PROGRAM = 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95';
export const CLOCK_SYSVAR = 'SysvarC1ock11111111111111111111111111111111';
export const RECENT_BLOCKHASHES_SYSVAR = 'SysvarRecentB1ockHashes11111111111111111111';
