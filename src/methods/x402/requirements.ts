import type { PaymentRequirements } from '@x402/core/types';
import type { PricedOperation } from '../../contract/contract.js';
import type { Service } from './service.js';

/** The terms that all offers of this server share. They do not change while it runs. */
export type Terms = {
  /** CAIP-2 name of the chain (x402 v2) and its v1 name. */
  network: string;
  v1Network: string;
  /** Address of the USDC mint. */
  asset: string;
  /** Address that receives the money. */
  payTo: string;
  /** The public URL of this server, without trailing slash. Never taken from a Host header. */
  publicUrl: string;
  /** The seller, as challenges describe it; absent if there is nothing to show. */
  service?: Service;
  /** The header bytes that the challenges of other methods take in every 402. */
  otherMethodsBytes?: number;
};

/** Seconds from challenge to settlement. A Solana blockhash is valid for 60 to 90. */
export const MAX_TIMEOUT_SECONDS = 60;

/** The name of the chain in each version of x402. */
export function networkName(
  { network, v1Network }: Pick<Terms, 'network' | 'v1Network'>,
  version: 1 | 2,
): string {
  return version === 2 ? network : v1Network;
}

/** The URL of a paid operation, with examples for its path parameters. */
export function resourceUrl(
  { examplePath }: Pick<PricedOperation, 'examplePath'>,
  { publicUrl }: Pick<Terms, 'publicUrl'>,
): string {
  return publicUrl + examplePath;
}

/**
 * Our offer in the form that facilitators accept (x402 v2 PaymentRequirements, scheme `exact` on SVM).
 * Amount in atomic units. Without `recentBlockhash`, which is a hint for buyers only.
 */
export function requirementsOf(
  operation: { flow: PricedOperation['flow']; price: Pick<PricedOperation['price'], 'atomic'> },
  terms: Terms,
  feePayer: string,
): PaymentRequirements {
  return {
    scheme: 'exact',
    network: terms.network as PaymentRequirements['network'],
    amount: operation.price.atomic.toString(),
    asset: terms.asset,
    payTo: terms.payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: { feePayer, ...(operation.flow === 'upfront' ? { paymentFlow: 'upfront' } : {}) },
  };
}
