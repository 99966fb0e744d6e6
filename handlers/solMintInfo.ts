import type { operations } from '../generated/openapi.js';
import type { Handler } from '../src/contract/operation.js';
import type { SolanaChain } from '../src/solana/rpc.js';
import { readMint } from '../src/upstreams/mints/mint.js';

/** Sells the on-chain facts of a mint. `network` is the CAIP-2 id of the chain, for example `solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp`. */
export function solMintInfo(chain: SolanaChain, network: string): Handler<operations['solMintInfo']> {
  return async ({ body, signal }) => {
    const facts = await readMint(chain, body.mint, signal);
    return { status: 200, body: { ...facts, network, sources: ['solana-rpc'] } };
  };
}
