import { USDC, type Asset } from '../price/amount.js';

export { USDC };
/** What the chain's fees are paid in. */
export const SOL: Asset = { name: 'SOL', decimals: 9 };

type MovementKind = 'sale' | 'refund' | 'network fee';

/** Money that moved. */
export type Movement = {
  /** Ms since 1970. Of a sale: when the server knew it; of a refund: the time of its block. */
  at: number;
  kind: MovementKind;
  /** Atomic units of the asset; below zero if it went out. */
  amount: bigint;
  asset: Asset;
  /** The signature of the transaction; null if that is not recorded. */
  transaction: string | null;
  payment: string;
  operation: string;
  /** Whose account it came into or went out of: a receiver of the ledger, a wallet that refunds, a fee payer. */
  account: string;
  /** The payer, or who else got it. */
  counterparty: string;
};

const LEAST_DIGITS = 2;

/** Atomic units as a decimal string with a sign if it is below zero: -500000n USDC → '-0.50'. */
export function decimal(atomic: bigint, { decimals }: Asset): string {
  const digits = (atomic < 0n ? -atomic : atomic).toString().padStart(decimals + 1, '0');
  const fraction = digits
    .slice(-decimals)
    .replace(/0{1,9}$/, '')
    .padEnd(LEAST_DIGITS, '0');
  return `${atomic < 0n ? '-' : ''}${digits.slice(0, -decimals)}.${fraction}`;
}
