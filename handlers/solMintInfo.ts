import type { operations } from '../generated/openapi.js';
import type { Handler } from '../src/contract/operation.js';
import type { SolanaChain } from '../src/rails/solana/rpc.js';
import { reportMint } from '../src/upstreams/mints/report.js';

/**
 * Sells the on-chain facts of a mint, with its extensions and what they mean for holders. `network` is the CAIP-2 id of the chain, for
 * example `solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp`.
 */
export function solMintInfo(chain: SolanaChain, network: string): Handler<operations['solMintInfo']> {
  return async ({ body, signal }) => {
    const report = await reportMint(chain, body.mint, signal);
    return { status: 200, body: { ...report, network, sources: ['solana-rpc'] } };
  };
}
