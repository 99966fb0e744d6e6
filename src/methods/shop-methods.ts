import type { NetworkName } from '../rails/solana/networks.js';
import { RECEIPT_HEADER_BYTES } from './header-bytes.js';
import { Methods } from './methods.js';
import { formerMppMethod, mppMethod, type MppOptions } from './mpp/mpp.js';
import type { Terms } from './x402/requirements.js';
import { x402Methods } from './x402/x402.js';

/** The header bytes of MPP's challenge in a 402. That challenge is dropped if a receipt needs the room; x402's challenge is not. */
export const MPP_HEADER_BYTES = 830 - RECEIPT_HEADER_BYTES;

/** The payment methods that a shop accepts besides x402. */
export type OtherMethods = { mpp?: MppOptions | undefined; network: NetworkName };

/** The payment methods of a shop. Without `others`, only x402. */
export function shopMethods(terms: Terms, others?: OtherMethods): Methods {
  if (!others) return new Methods(x402Methods(terms));
  const { asset, payTo, publicUrl } = terms;
  const own = { asset, payTo, network: others.network, realm: new URL(publicUrl).host };
  if (others.mpp) return new Methods([...x402Methods(terms), mppMethod(own, others.mpp)]);
  return new Methods(x402Methods(terms), [formerMppMethod(own)]);
}
