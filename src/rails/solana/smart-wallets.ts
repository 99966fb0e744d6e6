import { keyOf } from './address.js';
import type { Key, SolanaTransaction } from './message.js';

/** Programs that move the money of wallets that have no key of their own. Crossmint's wallets are accounts of Squads or Swig. */
const PROGRAMS: Readonly<Record<string, string>> = {
  SQDS4ep65T869zMMBKyuUq6aD6EgTu8psMjkvj52pCf: 'Squads',
  SMPLecH534NA9acpos4G6x7uf3LWbCAwZQE9e8ZekMu: 'Squads',
  SMRTzfY6DfH5ik3TKiyLFfXexV8uSG3d2UksSCYdunG: 'Squads smart account, as used by Crossmint',
  swigypWHEksbC64pWKwah1WTeh9JXwx8H1rJHLdbQMB: 'Swig',
  SWiGmQedKzMz1tiTqoJCWeGDnGXfNBp2PkXLkpCAtQo: 'Swig',
  GovER5Lthms3bLBqWub97yVrMmEogzX7xNjdXpPPCVZw: 'SPL Governance',
};

const WALLETS: ReadonlyMap<Key, string> = new Map(
  Object.entries(PROGRAMS).map(([address, name]) => [keyOf(address).toString('latin1'), name]),
);

/**
 * Why a payment from a smart wallet is refused, and what the wallet's owner can do; undefined for a payment from any other wallet. The
 * amount that a program moves is only known when it runs, and the transaction contains no explicit transfer.
 */
export function smartWalletFault({ instructions, keys }: SolanaTransaction): string | undefined {
  for (const { program } of instructions) {
    const name = WALLETS.get(keys[program] ?? '');
    if (name !== undefined)
      return (
        `the program of a smart wallet (${name}) moves the money, which cannot be checked before the sale. ` +
        'Pay from a wallet that has a key of its own; the smart wallet can fund it'
      );
  }
  return undefined;
}
