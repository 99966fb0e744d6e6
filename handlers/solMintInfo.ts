import type { Handler } from '../src/operation.js';
import { readMint } from '../src/upstreams/solana/mint.js';
import type { SolanaChain } from '../src/upstreams/solana/rpc.js';

/** Sells the on-chain facts of a mint. `network` is the CAIP-2 name of the chain that is asked. */
export function solMintInfo(chain: SolanaChain, network: string): Handler<'solMintInfo'> {
  return async ({ body, signal }) => {
    const facts = await readMint(chain, body.mint, signal);
    return { status: 200, body: { ...facts, network, sources: ['solana-rpc'] } };
  };
}
