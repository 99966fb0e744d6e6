import { TOKEN_2022_PROGRAM_ID } from '@solana/spl-token';
import type { SolanaChain } from '../../src/rails/solana/rpc.js';
import { reportMint, type MintReport } from '../../handlers/sol-mint-info/report.js';
import { ADDRESS, never } from './fake-rpc.js';

/** Of the read. */
export const SLOT = 384_210_553;

/** The report of a mint with these bytes, on a chain that holds nothing else and cuts accounts as an RPC server does. */
export function reportOf(
  data: Buffer,
  owner = TOKEN_2022_PROGRAM_ID.toBase58(),
  address = ADDRESS.toBase58(),
): Promise<MintReport> {
  const account: SolanaChain['account'] = async (_address, _signal, bytes) => ({
    owner,
    data: data.subarray(0, bytes),
    executable: false,
    lamports: 1,
    slot: SLOT,
  });
  return reportMint({ account } as SolanaChain, address, never);
}
