/** The currency of prices. */
export type Asset = { readonly name: string; readonly decimals: number };

/** An amount of money in atomic units of an asset. */
export type Amount = { readonly asset: Asset; readonly atomic: bigint };

/** USDC is the same on every Solana network. */
export const USDC: Asset = { name: 'USDC', decimals: 6 };

const DECIMAL = new RegExp(`^(0|[1-9][0-9]*)(?:\\.([0-9]{1,${USDC.decimals}}))?$`);

/**
 * Turns a decimal string of dollars into atomic units of USDC: '0.50' → 500000n.
 * @throws Error for anything that is not a plain positive decimal string with at most 6 fractional digits. Numbers are
 * rejected, too: 0.1 + 0.2 would silently overcharge.
 */
export function toAtomic(amount: unknown): bigint {
  if (typeof amount !== 'string') throw new Error(`must be a decimal string in quotes, not ${typeof amount}`);
  const match = DECIMAL.exec(amount);
  if (!match)
    throw new Error(`'${amount}' is not a decimal string with at most ${USDC.decimals} fractional digits`);
  const atomic = BigInt(`${match[1]}${(match[2] ?? '').padEnd(USDC.decimals, '0')}`);
  if (atomic === 0n) throw new Error('must be more than zero');
  return atomic;
}

/** Turns atomic units of USDC into a decimal string with at least two fractional digits: 500000n → '0.50', 25000n → '0.025'. */
export function toDecimal(atomic: bigint): string {
  const digits = atomic.toString().padStart(USDC.decimals + 1, '0');
  const fraction = digits.slice(-USDC.decimals).replace(/0{1,4}$/, '');
  return `${digits.slice(0, -USDC.decimals)}.${fraction}`;
}
