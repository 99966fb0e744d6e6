import { USDC, type Asset } from '../price/amount.js';

export { USDC };
/** The asset in which the chain's fees are paid. */
export const SOL: Asset = { name: 'SOL', decimals: 9 };

type MovementKind = 'sale' | 'refund' | 'network fee';

/** A movement of money. */
export type Movement = {
  /** Ms since 1970. For a sale, when the server learned of it; for a refund, the time of its block. */
  at: number;
  kind: MovementKind;
  /** Atomic units of the asset; negative for outgoing money. */
  amount: bigint;
  asset: Asset;
  /** The signature of the transaction; null if that is not recorded. */
  transaction: string | null;
  payment: string;
  operation: string;
  /** The owner of the account that received or sent the money: a receiver of the ledger, a wallet that refunds, or a fee payer. */
  account: string;
  /** The other party: the payer, or the recipient. */
  counterparty: string;
};

const LEAST_DIGITS = 2;

/** Formats atomic units as a decimal string, with a sign if negative: -500000n USDC → '-0.50'. */
export function decimal(atomic: bigint, { decimals }: Asset): string {
  const digits = (atomic < 0n ? -atomic : atomic).toString().padStart(decimals + 1, '0');
  const fraction = digits
    .slice(-decimals)
    .replace(/0{1,9}$/, '')
    .padEnd(LEAST_DIGITS, '0');
  return `${atomic < 0n ? '-' : ''}${digits.slice(0, -decimals)}.${fraction}`;
}
