import type { NetworkName } from '../rails/solana/networks.js';
import { RECEIPT_HEADER_BYTES } from './header-bytes.js';
import { Methods } from './methods.js';
import { formerMppMethod, mppMethod, type MppOptions } from './mpp/mpp.js';
import type { Terms } from './x402/requirements.js';
import { x402Methods } from './x402/x402.js';

/** What the challenge of MPP takes of the headers of a 402. It gives way to a receipt, and x402's does not. */
export const MPP_HEADER_BYTES = 830 - RECEIPT_HEADER_BYTES;

/** The ways to carry a payment that a shop takes beside x402. */
export type OtherMethods = { mpp?: MppOptions | undefined; network: NetworkName };

/** The list of the ways to carry a payment that a shop takes. Without `others`, none but x402 is read, either. */
export function shopMethods(terms: Terms, others?: OtherMethods): Methods {
  if (!others) return new Methods(x402Methods(terms));
  const { asset, payTo, publicUrl } = terms;
  const own = { asset, payTo, network: others.network, realm: new URL(publicUrl).host };
  if (others.mpp) return new Methods([...x402Methods(terms), mppMethod(own, others.mpp)]);
  return new Methods(x402Methods(terms), [formerMppMethod(own)]);
}
