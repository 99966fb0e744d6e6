import type { Json } from '../../contract/json.js';

/**
 * A schema that covers only what this server sends. The extension's own schema also covers EIP-712 and takes
 * twice as many header bytes.
 */
const TEXT = { type: 'string' };
const SCHEMA = {
  type: 'object',
  properties: {
    receipt: {
      type: 'object',
      properties: { format: TEXT, signature: TEXT },
      required: ['format', 'signature'],
    },
  },
  required: ['receipt'],
};

/** A receipt in x402's extension "Signed Offers and Receipts". @param signature JWS in compact form */
export function signedReceipt(signature: string): Json {
  return { 'offer-receipt': { info: { receipt: { format: 'jws', signature } }, schema: SCHEMA } };
}
