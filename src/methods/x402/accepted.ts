import type { PricedOperation } from '../../contract/contract.js';
import { toDecimal } from '../../price/amount.js';
import type { Terms } from './requirements.js';
import type { WirePayment } from './wire.js';

/** Why a payment can't be for any offer of this server, current or earlier. */
export function foreignTo({ network, v1Network }: Terms, wire: WirePayment): string | undefined {
  if (wire.scheme !== 'exact') return `scheme: '${wire.scheme}' is not offered; only exact is`;
  if (wire.network !== network && wire.network !== v1Network) {
    return `network: '${wire.network}' is not offered; only ${network} (v2) and ${v1Network} (v1) are`;
  }
  return undefined;
}

/** How the offer that the buyer accepted differs from the current one. v1 payments do not contain it. */
export function mismatchOf(
  { asset, payTo }: Terms,
  { accepted }: WirePayment,
  operation: PricedOperation,
): string | undefined {
  if (!accepted) return undefined;
  const price = operation.price.atomic;
  const amount = accepted.amount ?? accepted.maxAmountRequired;
  if (amount !== price.toString()) {
    return `amount: accepted ${inUsdc(amount)}, the price is ${toDecimal(price)} USDC`;
  }
  if (accepted.asset !== asset) return `asset: accepted ${accepted.asset}, must be ${asset}`;
  if (accepted.payTo !== payTo) return `payTo: accepted ${accepted.payTo}, must be ${payTo}`;
  const flow = accepted.extra?.paymentFlow ?? 'authorization';
  if (flow !== operation.flow) return `paymentFlow: accepted ${flow}, must be ${operation.flow}`;
  return undefined;
}

/** An amount in atomic units as a buyer sent it; other text is quoted as it is. */
function inUsdc(amount: string | undefined): string {
  return amount !== undefined && /^(0|[1-9][0-9]{0,19})$/.test(amount)
    ? `${toDecimal(BigInt(amount))} USDC`
    : `${amount}`;
}
