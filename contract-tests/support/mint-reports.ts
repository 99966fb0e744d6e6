import { TOKEN_2022_PROGRAM_ID } from '@solana/spl-token';
import type { SolanaChain } from '../../src/rails/solana/rpc.js';
import { reportMint, type MintReport } from '../../handlers/mints/report.js';
import { ADDRESS, never } from './fake-rpc.js';

/** The slot at which the account was read. */
export const SLOT = 384_210_553;

/** The report about a mint with these bytes, on a chain that has nothing else and truncates accounts as an RPC server does. */
export function reportOf(
  data: Buffer,
  owner = TOKEN_2022_PROGRAM_ID.toBase58(),
  address = ADDRESS.toBase58(),
): Promise<MintReport> {
  const refused = (): Promise<never> => Promise.reject(new Error('this chain refuses it'));
  const accounts: SolanaChain['accounts'] = async (addresses, _signal, bytes) => ({
    slot: SLOT,
    accounts: addresses.map(asked =>
      asked === address
        ? { owner, data: data.subarray(0, bytes), executable: false, lamports: 1, slot: SLOT }
        : null,
    ),
  });
  const chain = { accounts, largestHoldings: refused, signaturesFor: refused };
  return reportMint(chain as unknown as SolanaChain, address, never);
}
