import { base58 } from '@scure/base';
import { createPrivateKey, sign } from 'node:crypto';
import type { Json } from '../../contract/json.js';
import { toAddress } from '../../rails/solana/address.js';
import { signedFields, textToSign, UnsignableField, type SignedFields } from '../../sign-in/sign-in-text.js';
import { isObject, textOf } from '../conformance/http-call.js';

/** Signing in is impossible; the message says why, as the end of a sentence. */
export class SignInFault extends Error {}

/**
 * Signs in with a Solana key pair if a 402 has x402's extension `sign-in-with-x`. The signed message begins with the host name of the
 * server, so that no other server can use it, and it can't be a valid transaction.
 * @param extension of a 402: `{ info, supportedChains }`
 * @param secretKey 64 bytes: seed and public key
 * @param asked the URL that was called
 * @returns the header `SIGN-IN-WITH-X`
 * @throws SignInFault
 */
export function signIn(extension: unknown, secretKey: Uint8Array, asked: string): string {
  const info = infoOf(extension);
  const { host, origin } = new URL(asked);
  if (info['domain'] !== host)
    throw new SignInFault(`asks for a signature for ${textOf(info['domain'])}, not for ${host}`);
  const uri = textOf(info['uri']);
  if (!URL.canParse(uri) || new URL(uri).origin !== origin)
    throw new SignInFault(`asks for a signature for ${uri}, which is not at ${origin}`);
  const chainId = chainOf(extension, info);
  const address = toAddress(secretKey.subarray(32));
  const text = textToSign({ ...info, chainId }, address);
  const signature = base58.encode(sign(null, Buffer.from(text), privateKeyOf(secretKey)));
  const said = { ...info, chainId, type: 'ed25519', address, signature };
  return Buffer.from(JSON.stringify(said)).toString('base64');
}

/** The fields of the request that are part of the signed message. No others are sent back. */
function infoOf(extension: unknown): SignedFields {
  const info = isObject(extension) ? extension['info'] : undefined;
  if (!isObject(info)) throw new SignInFault('does not say what to sign');
  try {
    return signedFields(info);
  } catch (error) {
    if (!(error instanceof UnsignableField)) throw error;
    const { message: field, missing } = error;
    if (missing) throw new SignInFault(`asks for a signature without ${field}`);
    throw new SignInFault(
      `asks for a signature with ${field === 'resources' ? '' : 'a '}${field} that can't be signed`,
    );
  }
}

/** Older servers name their one chain in `info`. */
function chainOf(extension: unknown, info: SignedFields): string {
  const { supportedChains } = extension as Json;
  const chains = (Array.isArray(supportedChains) ? (supportedChains as unknown[]) : [])
    .map(each => (isObject(each) ? each['chainId'] : undefined))
    .concat(info['chainId'])
    .filter(each => typeof each === 'string');
  const solana = chains.find(chain => /^solana:\w+$/.test(chain));
  if (solana) return solana;
  throw new SignInFault(
    `accepts no Solana keys, only those of ${chains.join(', ').slice(0, 200) || 'chains that it does not name'}`,
  );
}

function privateKeyOf(secretKey: Uint8Array): ReturnType<typeof createPrivateKey> {
  const [d, x] = [secretKey.subarray(0, 32), secretKey.subarray(32)].map(bytes =>
    Buffer.from(bytes).toString('base64url'),
  );
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
}
