import type { ChainReads, Entry, Handler } from 'coinslot';
import type { operations } from '../../generated/openapi.js';
import { reportMint } from '../mints/report.js';

type SolMintInfo = operations['solMintInfo'];

/** Sells the on-chain facts of a mint, with its extensions and what they mean for holders. */
export const solMintInfo: Entry<SolMintInfo> = ({ chain, network }) => ({
  call: solMintInfoFrom(chain, network.caip2),
  backend: 'solana',
});

/** `network` is the CAIP-2 id of the chain, for example `solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp`. */
function solMintInfoFrom(chain: ChainReads, network: string): Handler<SolMintInfo> {
  return async ({ body, signal }) => {
    const report = await reportMint(chain, body.mint, signal);
    return { status: 200, body: { ...report, network, sources: ['solana-rpc'] } };
  };
}
