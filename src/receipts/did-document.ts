import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import type { Json } from '../contract/json.js';

/** The path where a host publishes its keys (the method did:web of Decentralized Identifiers). */
export const DID_PATH = '/.well-known/did.json';

/** An Ed25519 key of a shop, as its DID document lists it. `x` is the public key in base64url, `name` the part of its id after `#`. */
export type PublicKey = { name: string; x: string };

const NAME_LENGTH = 16;

/** The did:web identifier of a host, with the port if the URL has one. */
export function didOf(publicUrl: string): string {
  return `did:web:${new URL(publicUrl).host.replace(':', '%3A')}`;
}

/** The public key, named by the beginning of its thumbprint (RFC 7638), so that no two keys share a name. */
export function publicKeyOf(key: KeyObject): PublicKey {
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' });
  return { name: nameOf(x), x };
}

export function nameOf(x: string): string {
  const members = JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x });
  return createHash('sha256').update(members).digest('base64url').slice(0, NAME_LENGTH);
}

/** All keys that ever signed receipts of this host, so that old receipts stay verifiable. */
export function didDocument(did: string, keys: readonly PublicKey[]): Json {
  const ids = keys.map(({ name }) => `${did}#${name}`);
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: keys.map(({ x }, at) => ({
      id: ids[at],
      type: 'JsonWebKey2020',
      controller: did,
      publicKeyJwk: { kty: 'OKP', crv: 'Ed25519', x },
    })),
    assertionMethod: ids,
  };
}
